//! One test body, run over every revision and every link.

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use toolwire_client::{Client, ClientBuilder, EraChoice, Error};
#[cfg(feature = "http")]
use toolwire_http::server::Guard;
use toolwire_protocol::Version;

#[cfg(any(feature = "http", all(unix, feature = "unix")))]
use crate::hosted::Hosted;
use crate::{AnyDuplex, Link, Program, Target, Wire, WireBuilder};

/// Runs `body` once for each revision and each link inside this process.
///
/// ```
/// use serde_json::json;
/// use toolwire_server::{Server, tool};
/// use toolwire_testkit::each;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// each(async |setup| {
///     let server = Server::builder("demo", "1.0").tool(tool("hello", || async { "hello" })).build().unwrap();
///     let mut wire = setup.wire(&server).await;
///     let reply = wire.request("tools/call", json!({ "name": "hello" })).await;
///     assert_eq!(reply.result()["content"][0]["text"], "hello");
/// })
/// .await;
/// # }
/// ```
///
/// # Panics
/// When the body panics; the text then says with which revision and link.
pub async fn each(body: impl AsyncFn(Setup)) {
    Matrix::new().run(body).await;
}

/// Runs `body` once for each revision and each link that [`Setup::client`] can take: with the feature `http` also
/// over HTTP and WebSocket, with the feature `unix` also over unix sockets.
///
/// ```
/// use serde_json::json;
/// use toolwire_server::{Server, tool};
/// use toolwire_testkit::each_client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::builder("demo", "1.0").tool(tool("hello", || async { "hello" })).build().unwrap();
/// each_client(async |setup| {
///     let client = setup.client(&server).await;
///     assert_eq!(client.call("hello", json!({})).await.unwrap().text(), "hello");
/// })
/// .await;
/// # }
/// ```
///
/// # Panics
/// When the body panics; the text then says with which revision and link.
pub async fn each_client(body: impl AsyncFn(Setup)) {
    Matrix::clients().run(body).await;
}

/// Which revisions and links a test body is run over.
///
/// ```
/// use toolwire_protocol::Version;
/// use toolwire_testkit::{Link, Matrix};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let matrix = Matrix::new().since(Version::V2025_06_18).links([Link::Memory]);
/// assert_eq!(matrix.setups().len(), 3);
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Matrix {
    versions: Vec<Version>,
    links: Vec<Link>,
    program: Option<Arc<Program>>,
}

impl Default for Matrix {
    fn default() -> Self {
        Self::new()
    }
}

impl Matrix {
    /// Every revision, over every link inside this process.
    pub fn new() -> Self {
        Self { versions: Version::ALL.to_vec(), links: Link::IN_PROCESS.to_vec(), program: None }
    }

    /// Every revision, over every link inside this process that Toolwire's own client can take.
    pub fn clients() -> Self {
        Self::new().links(Link::OF_CLIENTS.iter().copied())
    }

    /// The revisions that start with `initialize`.
    pub fn legacy() -> Self {
        Self::new().versions(Version::ALL.into_iter().filter(|version| !version.is_modern()))
    }

    /// The revisions without a handshake.
    pub fn modern() -> Self {
        Self::new().versions(Version::ALL.into_iter().filter(|version| version.is_modern()))
    }

    /// Only these revisions.
    pub fn versions(mut self, versions: impl IntoIterator<Item = Version>) -> Self {
        self.versions = versions.into_iter().collect();
        self
    }

    /// Only revisions from this one on.
    pub fn since(mut self, first: Version) -> Self {
        self.versions.retain(|version| *version >= first);
        self
    }

    /// Only these links.
    pub fn links(mut self, links: impl IntoIterator<Item = Link>) -> Self {
        self.links = links.into_iter().collect();
        self
    }

    /// Also over a child process. There the program is talked to instead of the server that the body brings,
    /// so it should serve the same.
    pub fn program(mut self, program: Program) -> Self {
        self.program = Some(Arc::new(program));
        if !self.links.contains(&Link::Child) {
            self.links.push(Link::Child);
        }
        self
    }

    /// Every combination, oldest revision first.
    pub fn setups(&self) -> Vec<Setup> {
        let setup = |version, link| Setup { version, link, program: self.program.clone() };
        let versions = self.versions.iter();
        versions.flat_map(|version| self.links.iter().map(move |link| setup(*version, *link))).collect()
    }

    /// Runs `body` once for each combination, one after the other.
    ///
    /// # Panics
    /// When the body panics; the text then says with which revision and link.
    pub async fn run(&self, body: impl AsyncFn(Setup)) {
        for setup in self.setups() {
            let mut running = pin!(body(setup.clone()));
            let outcome = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
                Err(panic) => Poll::Ready(Err(panic)),
            });
            if let Err(panic) = outcome.await {
                panic!("in {setup}: {}", text_of(panic.as_ref()));
            }
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(|text| &**text)).unwrap_or("a panic without a text")
}

/// One combination of a revision and a link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The revision to speak.
    pub version: Version,
    /// The link to speak it over.
    pub link: Link,
    program: Option<Arc<Program>>,
}

impl Setup {
    /// Opens a connection.
    ///
    /// # Panics
    /// When `target` cannot be reached over this link.
    pub fn open(&self, target: &impl Target) -> AnyDuplex {
        let opened = match &self.program {
            Some(program) if self.link == Link::Child => program.open(self.link),
            _ => target.open(self.link),
        };
        opened.unwrap_or_else(|error| panic!("no connection over {}: {error}", self.link))
    }

    /// A raw client that speaks this revision.
    pub async fn wire(&self, target: &impl Target) -> Wire {
        self.wire_with(target, |builder| builder).await
    }

    /// A raw client that speaks this revision, described further by `describe`.
    pub async fn wire_with(
        &self,
        target: &impl Target,
        describe: impl FnOnce(WireBuilder) -> WireBuilder,
    ) -> Wire {
        describe(Wire::builder(self.version)).over(self.open(target)).await
    }

    /// A client that speaks only this revision.
    ///
    /// # Panics
    /// When it cannot be connected.
    pub async fn client(&self, target: &impl Target) -> Client {
        self.client_with(target, |builder| builder).await
    }

    /// A client that speaks only this revision, described further by `describe`.
    ///
    /// # Panics
    /// When it cannot be connected.
    pub async fn client_with(
        &self,
        target: &impl Target,
        describe: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Client {
        let builder = Client::builder("toolwire-testkit", env!("CARGO_PKG_VERSION"));
        let builder = describe(builder.era(EraChoice::Version(self.version)));
        let connected = self.connect(target, builder).await;
        connected.unwrap_or_else(|error| panic!("the client could not be connected: {error:?}"))
    }

    /// Connects a client that is described already, which may be refused. It speaks this revision only if it was
    /// told to.
    ///
    /// # Errors
    /// When the two do not come together.
    ///
    /// # Panics
    /// When `target` cannot be reached over this link.
    pub async fn connect(&self, target: &impl Target, builder: ClientBuilder) -> Result<Client, Error> {
        match self.link {
            #[cfg(feature = "http")]
            Link::Http => builder.connect(Hosted::http(target, self.version).await).await,
            #[cfg(feature = "http")]
            Link::WebSocket => builder.connect(Hosted::websocket(target).await).await,
            #[cfg(all(unix, feature = "unix"))]
            Link::Unix => builder.connect(Hosted::unix(target).await).await,
            Link::Memory | Link::Pipe | Link::Child => builder.connect(self.open(target)).await,
        }
    }
}

#[cfg(feature = "http")]
impl Setup {
    /// Connects a client to `target` behind a guard, over HTTP or WebSocket. `protect` makes the guard for the URL that it is
    /// given, and the token that the client sends, if any.
    ///
    /// # Errors
    /// When the two do not come together.
    ///
    /// # Panics
    /// When `target` is not in this process, the link is another one, or the guard is for another URL.
    #[doc(hidden)]
    pub async fn connect_guarded<G: Guard>(
        &self,
        target: &impl Target,
        builder: ClientBuilder,
        protect: impl FnOnce(&str) -> (G, Option<String>),
    ) -> Result<Client, Error> {
        match self.link {
            Link::Http => builder.connect(Hosted::guarded_http(target, self.version, protect).await).await,
            Link::WebSocket => builder.connect(Hosted::guarded_websocket(target, protect).await).await,
            link => panic!("there are no guards over {link}"),
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.version, self.link)
    }
}
