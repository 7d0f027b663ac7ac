//! The HTTP request behind a call, for handlers that need it.

use std::{ops::Deref, sync::Arc};

use http::request::Parts;
use toolwire_protocol::RpcError;
use toolwire_server::{Context, FromContext, HandlerSpec, Rejection};

/// The HTTP request that brought a call: its path, headers, and what layers left in its extensions. An extractor.
///
/// Take `Option<HttpRequest>` in a handler that is also called over other transports.
///
/// ```
/// use toolwire_http::server::HttpRequest;
/// use toolwire_server::tool;
///
/// async fn tenant(request: HttpRequest) -> Result<String, &'static str> {
///     Ok(request.header("x-tenant").ok_or("which tenant?")?.to_owned())
/// }
///
/// let route = tool("tenant", tenant);
/// ```
#[derive(Clone, Debug)]
pub struct HttpRequest(Arc<Parts>);

impl HttpRequest {
    /// The value of a header that is there once and is text. A header that is there twice has no value: whoever stands
    /// in between may have read the other one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.0.headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        values.next().is_none().then_some(value)
    }
}

impl Deref for HttpRequest {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl FromContext for HttpRequest {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        cx.extension().map(Self).ok_or_else(|| {
            let message =
                "this call did not come over HTTP; its handler has to take Option<HttpRequest> for that";
            Rejection::absent(RpcError::internal(message))
        })
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.takes_from_request::<Self>();
    }

    fn describe_optional(_: &mut HandlerSpec) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_counts_once() {
        let request = http::Request::builder()
            .uri("/mcp")
            .header("x-tenant", "acme")
            .header("x-role", "reader")
            .header("x-role", "admin")
            .header("x-bytes", &b"\xff"[..])
            .body(())
            .unwrap();
        let request = HttpRequest(Arc::new(request.into_parts().0));
        assert_eq!(request.header("X-Tenant"), Some("acme"));
        assert_eq!(request.header("x-role"), None);
        assert_eq!(request.header("x-bytes"), None);
        assert_eq!(request.header("not a name"), None);
        assert_eq!(request.uri.path(), "/mcp");
    }
}
