//! What goes wrong on the wire: connections that are cut, go silent, are half closed, or read too slowly.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};
use toolwire::Result;

use crate::chance::Chance;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"0"}}}"#;

/// What an HTTP/2 connection begins with, and an empty frame of settings.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A call of a modern client.
fn call(tool: &str, amount: u64) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"amount":{amount}}},"#,
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientInfo":{{"name":"soak","version":"0"}},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        ),
        tool = tool,
        amount = amount
    )
}

/// Does one thing wrong. Nothing is expected of the server but that it goes on.
pub(crate) async fn commit(url: &str, chance: &mut Chance) -> Result<()> {
    let host = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await?;
    let pause = Duration::from_millis(chance.below(3000));
    // Whatever the server does in answer, including to hang up, is its right.
    let _ = match chance.below(10) {
        0 => Ok(()),
        1 => stream.write_all(b"\x16\x03\x01 this is not HTTP\r\n\r\n\0\0\0").await,
        2 => cut(&mut stream, &post(host, INITIALIZE, ""), chance).await,
        3 => silent(&mut stream, &post(host, INITIALIZE, ""), chance, pause).await,
        4 => left(&mut stream, &modern(host, "sleep", 20_000), pause).await,
        5 => slow(&mut stream, &modern(host, "big", 1024), pause).await,
        6 => half_closed(&mut stream, &modern(host, "echo", 1)).await,
        7 => silent(&mut stream, HTTP2, chance, pause).await,
        8 => left(&mut stream, &get(host, "/sse"), pause).await,
        _ => left(&mut stream, &post(host, INITIALIZE, ""), pause).await,
    };
    if chance.below(2) == 0 {
        // With what has not been read still there, closing is a reset.
        drop(stream);
    } else {
        let _ = stream.shutdown().await;
    }
    Ok(())
}

fn post(host: &str, body: &str, headers: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn modern(host: &str, tool: &str, amount: u64) -> Vec<u8> {
    let headers =
        format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
    post(host, &call(tool, amount), &headers)
}

fn get(host: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n\r\n").into_bytes()
}

/// Any beginning of a text.
fn part<'a>(bytes: &'a [u8], chance: &mut Chance) -> &'a [u8] {
    let end = usize::try_from(chance.below(bytes.len() as u64)).unwrap_or_default();
    bytes.get(..end).unwrap_or_default()
}

/// Says half of it and goes.
async fn cut(stream: &mut TcpStream, bytes: &[u8], chance: &mut Chance) -> std::io::Result<()> {
    stream.write_all(part(bytes, chance)).await
}

/// Says half of it and then nothing.
async fn silent(
    stream: &mut TcpStream,
    bytes: &[u8],
    chance: &mut Chance,
    pause: Duration,
) -> std::io::Result<()> {
    cut(stream, bytes, chance).await?;
    sleep(pause).await;
    Ok(())
}

/// Asks, and goes before the answer or in the middle of it.
async fn left(stream: &mut TcpStream, bytes: &[u8], pause: Duration) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    let mut some = [0; 512];
    let _ = timeout(pause, stream.read(&mut some)).await;
    Ok(())
}

/// Asks for much and reads little of it.
async fn slow(stream: &mut TcpStream, bytes: &[u8], pause: Duration) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    let mut some = [0; 64];
    for _ in 0..10 {
        let _ = stream.read(&mut some).await?;
        sleep(pause / 10).await;
    }
    Ok(())
}

/// Asks, says that this is all, and reads the answer.
async fn half_closed(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    let mut all = Vec::new();
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut all)).await;
    Ok(())
}
