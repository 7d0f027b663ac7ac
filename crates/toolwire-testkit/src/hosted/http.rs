//! At a port of this machine, by HTTP and by WebSocket.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use toolwire_http::{
    client::{Http, WebSocket},
    server::{Guard, HttpBuilder, HttpService, Serve},
};
use toolwire_protocol::Version;
use toolwire_server::Server;

use super::{Hosted, server};
use crate::Target;

/// Where Streamable HTTP is spoken, and WebSocket.
const PATH: &str = "/mcp";

/// Where clients of the first revision read, and where they write.
const SSE_PATHS: [&str; 2] = ["/sse", "/messages"];

impl Hosted<Http> {
    /// Serves `target` by HTTP at a free port of this machine.
    ///
    /// # Panics
    /// When it is not in this process, or there is no port.
    pub(crate) async fn http(target: &impl Target, version: Version) -> Self {
        let (address, serving) = listen(server(target)).await;
        let http = Http::builder(http_url(address, version)).no_proxy().build();
        Self::new(http.expect("the address is good"), serving.into_future())
    }

    /// Serves `target` by HTTP behind a guard, to a client with a token or with none. The two are made for the URL that the
    /// guard is to protect.
    ///
    /// # Panics
    /// When it is not in this process, or there is no port, or the guard is for another URL.
    pub(crate) async fn guarded_http<G: Guard>(
        target: &impl Target,
        version: Version,
        protect: impl FnOnce(&str) -> (G, Option<String>),
    ) -> Self {
        let (address, serving, token) = listen_guarded(server(target), protect).await;
        let http = Http::builder(http_url(address, version)).no_proxy();
        let http = token.iter().fold(http, |http, token| http.bearer(token)).build();
        Self::new(http.expect("the address is good"), serving.into_future())
    }
}

/// Returns the URL at which a revision is spoken over HTTP.
fn http_url(address: SocketAddr, version: Version) -> String {
    let path = if version == Version::V2024_11_05 { SSE_PATHS[0] } else { PATH };
    format!("http://{address}{path}")
}

impl Hosted<WebSocket> {
    /// Serves `target` by WebSocket at a free port of this machine.
    ///
    /// # Panics
    /// When it is not in this process, or there is no port.
    pub(crate) async fn websocket(target: &impl Target) -> Self {
        let (address, serving) = listen(server(target)).await;
        let socket = WebSocket::builder(format!("ws://{address}{PATH}")).no_proxy().build();
        Self::new(socket.expect("the address is good"), serving.into_future())
    }

    /// Serves `target` by WebSocket behind a guard, to a client with a token or with none. The two are made for the URL that
    /// the guard is to protect.
    ///
    /// # Panics
    /// When it is not in this process, or there is no port, or the guard is for another URL.
    pub(crate) async fn guarded_websocket<G: Guard>(
        target: &impl Target,
        protect: impl FnOnce(&str) -> (G, Option<String>),
    ) -> Self {
        let (address, serving, token) = listen_guarded(server(target), protect).await;
        let socket = WebSocket::builder(format!("ws://{address}{PATH}")).no_proxy();
        let socket = token.iter().fold(socket, |socket, token| socket.bearer(token)).build();
        Self::new(socket.expect("the address is good"), serving.into_future())
    }
}

async fn listen(server: Server) -> (SocketAddr, Serve) {
    let (listener, address) = bind().await;
    (address, service(server).build().expect("the paths are good").serve(listener))
}

async fn listen_guarded<G: Guard>(
    server: Server,
    protect: impl FnOnce(&str) -> (G, Option<String>),
) -> (SocketAddr, Serve, Option<String>) {
    let (listener, address) = bind().await;
    let (guard, token) = protect(&format!("http://{address}{PATH}"));
    let service = service(server).guard(guard).build().expect("the guard is for this address");
    (address, service.serve(listener), token)
}

async fn bind() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("no port is free");
    let address = listener.local_addr().expect("a listener has an address");
    (listener, address)
}

fn service(server: Server) -> HttpBuilder {
    let [stream, messages] = SSE_PATHS;
    HttpService::builder(server).path(PATH).sse2024(stream, messages).websocket(true)
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpStream, time::timeout};
    use toolwire_client::Client;

    use super::*;
    use crate::{Link, Matrix, wire::DEFAULT_PATIENCE};

    #[tokio::test]
    async fn a_server_is_served_as_long_as_its_client_is_there() {
        let server = Server::builder("demo", "1.0").build().unwrap();
        let hosted = Hosted::http(&server, Version::LATEST).await;
        let url = hosted.connector.url();
        let address = url.trim_start_matches("http://").trim_end_matches(PATH).to_owned();
        let client = Client::builder("test", "1.0").connect(hosted).await.unwrap();
        client.discover().await.unwrap();
        TcpStream::connect(&address).await.unwrap();
        drop(client);
        let gone = async { while TcpStream::connect(&address).await.is_ok() {} };
        timeout(DEFAULT_PATIENCE, gone).await.expect("it is still served");
    }

    #[test]
    fn clients_are_run_over_http_in_every_revision_and_wires_never() {
        for link in [Link::Http, Link::WebSocket] {
            let over = |matrix: Matrix| matrix.setups().iter().filter(|setup| setup.link == link).count();
            assert_eq!(over(Matrix::clients()), Version::ALL.len());
            assert_eq!(over(Matrix::new()), 0);
        }
    }
}
