//! A protected server and its issuer, which passes on the code of another one.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// Starts it, and returns the address of the server.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
    let server = format!("{origin}/mcp");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = answer(&stream, &origin);
        }
    });
    server
}

fn answer(stream: &TcpStream, origin: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    reader.take(length).read_to_end(&mut Vec::new())?;
    let (status, body) = match first.split(' ').nth(1).unwrap_or_default() {
        "/mcp" => ("401 Unauthorized", String::new()),
        "/.well-known/oauth-protected-resource/mcp" => {
            ("200 OK", format!(r#"{{"resource":"{origin}/mcp","authorization_servers":["{origin}"]}}"#))
        }
        "/.well-known/oauth-authorization-server" => (
            "200 OK",
            format!(
                r#"{{"issuer":"{origin}","token_endpoint":"{origin}/token","registration_endpoint":"{origin}/register",
                "device_authorization_endpoint":"{origin}/device","token_endpoint_auth_methods_supported":["none"]}}"#
            ),
        ),
        "/register" => ("201 Created", r#"{"client_id":"made"}"#.to_owned()),
        // It expires before the first question.
        "/device" => (
            "200 OK",
            r#"{"device_code":"d","user_code":"ABCD","expires_in":1,"verification_uri":"https://login.example/go"}"#
                .to_owned(),
        ),
        _ => ("404 Not Found", String::new()),
    };
    let challenge = if status.starts_with("401") { "WWW-Authenticate: Bearer\r\n" } else { "" };
    let kind = "Content-Type: application/json\r\nConnection: close\r\n";
    write!(
        &mut &*stream,
        "HTTP/1.1 {status}\r\n{kind}{challenge}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
