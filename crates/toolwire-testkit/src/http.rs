//! A server of this process behind a socket, for as long as somebody is connected to it.
//!
//! Only whole clients are connected like this. What single HTTP requests look like is tested where they are made.

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::{net::TcpListener, task::JoinHandle};
use toolwire_client::{
    Connection, Connector,
    link::{Exchange, Inbox, Link, LinkError, Outgoing},
};
use toolwire_http::{client::Http, server::HttpService};
use toolwire_protocol::{RequestId, Version, probe::ProbeLink};
use toolwire_transport::BoxFuture;

use crate::Target;

/// Where Streamable HTTP is spoken.
const PATH: &str = "/mcp";

/// Where clients of the first revision read, and where they write.
const SSE_PATHS: [&str; 2] = ["/sse", "/messages"];

/// A server that is served by HTTP until the last link to it is gone.
#[derive(Clone)]
pub(crate) struct Hosted {
    http: Http,
    serving: Arc<Serving>,
}

impl Hosted {
    /// Serves `target` at a free port of this machine.
    ///
    /// # Panics
    /// When it is not in this process, or there is no port.
    pub(crate) async fn start(target: &impl Target, version: Version) -> Self {
        let server = target.server().expect("only a server in this process is reached over HTTP");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("no port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let [stream, messages] = SSE_PATHS;
        let service = HttpService::builder(server.clone()).path(PATH).sse2024(stream, messages);
        let serving = service.build().expect("the paths are good").serve(listener).into_future();
        let path = if version == Version::V2024_11_05 { stream } else { PATH };
        let http = Http::builder(&format!("http://{address}{path}")).no_proxy().build();
        Self {
            http: http.expect("the address is good"),
            serving: Arc::new(Serving { task: tokio::spawn(serving) }),
        }
    }
}

impl Connector<Self> for Hosted {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        let Connection { link, key, again, fallback } = self.http.connect(inbox).await?;
        let serving = self.serving;
        let hosted = |http| Self { http, serving: Arc::clone(&serving) };
        let (again, fallback) = (again.map(hosted), fallback.map(hosted));
        Ok(Connection { link: Arc::new(HostedLink { link, _serving: serving }), key, again, fallback })
    }
}

/// The task that serves. It does not shut the server down, which may be served elsewhere too.
#[derive(Debug)]
struct Serving {
    task: JoinHandle<io::Result<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A link that keeps its own server going.
#[derive(Debug)]
struct HostedLink {
    link: Arc<dyn Link>,
    _serving: Arc<Serving>,
}

impl Link for HostedLink {
    fn family(&self) -> ProbeLink {
        self.link.family()
    }

    fn start(&self, request: Outgoing) -> Exchange {
        self.link.start(request)
    }

    fn abandon(&self, id: &RequestId, tell: bool) {
        self.link.abandon(id, tell);
    }

    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        self.link.notify(message)
    }

    fn has_room(&self) -> bool {
        self.link.has_room()
    }

    fn room(&self) -> BoxFuture<'static, ()> {
        self.link.room()
    }

    fn negotiated(&self, version: Version) {
        self.link.negotiated(version);
    }

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        self.link.why_closed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.link.close()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{net::TcpStream, time::timeout};
    use toolwire_client::Client;
    use toolwire_server::Server;

    use super::*;
    use crate::Matrix;

    #[tokio::test]
    async fn a_server_is_served_as_long_as_its_client_is_there() {
        let server = Server::builder("demo", "1.0").build().unwrap();
        let hosted = Hosted::start(&server, Version::LATEST).await;
        let url = hosted.http.url();
        let address = url.trim_start_matches("http://").trim_end_matches(PATH).to_owned();
        let client = Client::builder("test", "1.0").connect(hosted).await.unwrap();
        client.discover().await.unwrap();
        TcpStream::connect(&address).await.unwrap();
        drop(client);
        let gone = async { while TcpStream::connect(&address).await.is_ok() {} };
        timeout(Duration::from_secs(10), gone).await.expect("it is still served");
    }

    #[test]
    fn clients_are_run_over_http_in_every_revision_and_wires_never() {
        let over_http =
            |matrix: Matrix| matrix.setups().iter().filter(|setup| setup.link == crate::Link::Http).count();
        assert_eq!(over_http(Matrix::clients()), Version::ALL.len());
        assert_eq!(over_http(Matrix::new()), 0);
    }
}
