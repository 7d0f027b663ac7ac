//! Sends every message back that comes in on standard input.
//!
//! It also does what a server should not do and prints to standard output; the client never sees it.

use std::io;

use bytes::Bytes;
use toolwire_transport::{Duplex, FairQueue, Source, stdio, write_loop};

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "the point is that printing does no harm")]
async fn main() -> io::Result<()> {
    print!("begun before the claim, ");
    let (mut source, sink) = stdio()?.split();
    println!("ended after it");

    let queue = FairQueue::new();
    let writer = tokio::spawn(write_loop(queue.clone(), sink));
    if let Err(error) = stdio() {
        println!("the second claim says: {error}");
    }
    loop {
        match source.receive().await {
            Ok(Some(message)) => {
                println!("echoing {} bytes", message.len());
                queue.room().await;
                if queue.post(message).is_err() {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) if error.is_fatal() => return Err(io::Error::other(error)),
            Err(error) => {
                let _ = queue.post(Bytes::from(format!("{{\"error\":\"{error}\"}}")));
            }
        }
    }
    queue.close();
    writer.await.map_err(io::Error::other)?
}
