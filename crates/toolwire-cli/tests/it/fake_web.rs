//! Web servers that answer everything with the same bytes, or not at all, and addresses without one.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::program::PATIENCE;

/// A web server on this machine, gone when it is dropped.
pub(crate) struct FakeWeb {
    address: SocketAddr,
    gone: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What was asked: the method and path, and the body.
pub(crate) struct Asked {
    pub(crate) line: String,
    /// The line and the headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl FakeWeb {
    /// Answers with what `answer` makes of a request; with `None`, it never answers.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gone = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let gone = Arc::clone(&gone);
            move || {
                let mut silent = Vec::new();
                for stream in listener.incoming() {
                    if gone.load(Ordering::SeqCst) {
                        break;
                    }
                    silent.extend(stream.ok().and_then(|stream| serve(stream, &answer)));
                }
            }
        });
        Self { address, gone, thread: Some(thread) }
    }

    /// Answers everything with this status, these headers and this body.
    pub(crate) fn canned(status: &str, headers: &str, body: &str) -> Self {
        let answer = response(status, headers, body);
        Self::start(move |_| Some(answer.clone()))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Replaces what is different each time.
    pub(crate) fn hide_port(&self, text: &str) -> String {
        text.replace(&self.address.to_string(), "127.0.0.1:[port]")
    }
}

impl Drop for FakeWeb {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        // Wakes the thread up, so that it sees that it is to end.
        let _ = TcpStream::connect(self.address);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the web server panicked");
    }
}

/// Takes an address that refuses connections for as long as the socket is kept: it is bound, and nothing listens on it.
pub(crate) fn refusing() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A response with its length.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// A server of 2025-06-18 at one path.
pub(crate) fn server_at(path: &'static str) -> impl Fn(&Asked) -> Option<Vec<u8>> {
    move |asked| {
        if !asked.line.starts_with(&format!("POST {path} ")) {
            return Some(response("404 Not Found", "", ""));
        }
        let message: Value = serde_json::from_str(&asked.body).unwrap();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "prompts": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            }),
            Some("prompts/list") => json!({ "prompts": [{ "name": "hello" }] }),
            Some("ping") => json!({}),
            Some("notifications/initialized") => return Some(response("202 Accepted", "", "")),
            _ => return Some(response("400 Bad Request", "", "")),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        Some(response("200 OK", "Content-Type: application/json\r\n", &answer.to_string()))
    }
}

/// Answers one request. A stream that is not answered is kept open.
fn serve(mut stream: TcpStream, answer: &impl Fn(&Asked) -> Option<Vec<u8>>) -> Option<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let asked = read(&mut stream);
    let Some(answer) = answer(&asked) else { return Some(stream) };
    // The client may have left, which is its right.
    let _ = stream.write_all(&answer);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read(&mut [0; 1024]);
    None
}

fn read(stream: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
            });
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if body.len() >= length {
                let line = head.lines().next().unwrap_or_default().to_owned();
                return Asked { line, head: head.to_owned(), body: body.to_owned() };
            }
        }
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => {
                bytes.extend_from_slice(&chunk[..count]);
                // What does not look like HTTP has no end to wait for.
                if !bytes[0].is_ascii_uppercase() {
                    return Asked { line: String::new(), head: String::new(), body: String::new() };
                }
            }
            _ => return Asked { line: text, head: String::new(), body: String::new() },
        }
    }
}
