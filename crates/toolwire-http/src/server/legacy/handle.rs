//! What a handler may do with the stream that its answer goes to.

use std::sync::{Arc, Weak};

use super::{post_response::PostResponse, reconnects::PendingReconnects};

/// The stream that the answer to a request goes to, for handlers that work for a long time.
///
/// It is there for clients that know how to come back: those of 2025-11-25 with a session. Take it as
/// `Option<Extension<LegacyStream>>`; everybody else has none.
///
/// ```
/// use toolwire_http::server::LegacyStream;
/// use toolwire_server::{Extension, Server, tool};
///
/// async fn report(stream: Option<Extension<LegacyStream>>) -> &'static str {
///     if let Some(Extension(stream)) = stream {
///         // This takes a while: no need to hold a connection for it.
///         stream.close();
///     }
///     "done"
/// }
///
/// let server = Server::builder("demo", "1.0").tool(tool("report", report)).build().unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct LegacyStream {
    post: Weak<PostResponse>,
    reconnects: PendingReconnects,
}

impl LegacyStream {
    pub(super) fn new(post: &Arc<PostResponse>, reconnects: PendingReconnects) -> Self {
        Self { post: Arc::downgrade(post), reconnects }
    }

    /// Ends the connection, while the work goes on. The client comes back after the time set as `retry`, and
    /// then gets what was sent meanwhile, and the answer. A server that is shut down meanwhile waits for that, within
    /// its time.
    pub fn close(&self) {
        if let Some(post) = self.post.upgrade() {
            post.cut(self.reconnects.expect_one());
        }
    }
}
