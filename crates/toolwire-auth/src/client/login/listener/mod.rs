//! Waits for the browser to come back.
//!
//! Everybody on this machine, and every page in its browsers, can send requests here. What is not the answer that is
//! waited for changes nothing, however much of it comes.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

use super::{
    super::authorize::{AuthorizationUrl, Callback},
    page,
};

/// The largest head of a request. Browsers send the cookies of all programs of this machine, whatever their ports.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How many requests are read at once; further ones wait.
const MAX_CONNECTIONS: usize = 64;

/// Waits for the answer to `url`, at any of these listeners.
pub(super) async fn wait(listeners: Vec<TcpListener>, url: AuthorizationUrl) -> io::Result<Callback> {
    let place = Place::of(url.redirect()).ok_or_else(|| io::Error::other("the redirect is not a URL"))?;
    let (found, mut callbacks) = mpsc::channel(1);
    // Whatever is still being read ends with this.
    let mut reading = JoinSet::new();
    let mut accepting = JoinSet::new();
    let (arrived, mut streams) = mpsc::channel(1);
    for listener in listeners {
        let arrived = arrived.clone();
        accepting.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) if is_local(peer) => {
                        if arrived.send(stream).await.is_err() {
                            return;
                        }
                    }
                    Ok(_) => {}
                    // Out of files, most likely: it may be better in a moment.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        });
    }
    drop(arrived);
    loop {
        tokio::select! {
            biased;
            Some(callback) = callbacks.recv() => return Ok(callback),
            Some(_) = reading.join_next() => {}
            stream = streams.recv(), if reading.len() < MAX_CONNECTIONS => {
                let Some(stream) = stream else { return Err(io::Error::other("nobody listens any more")) };
                let (place, url, found) = (place.clone(), url.clone(), found.clone());
                reading.spawn(async move {
                    if let Ok(Some(callback)) = timeout(REQUEST_TIMEOUT, serve(stream, &place, &url)).await {
                        let _ = found.send(callback).await;
                    }
                });
            }
        }
    }
}

fn is_local(peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback()
}

/// Where the answer is expected.
#[derive(Clone, Debug)]
struct Place {
    authority: String,
    path: String,
}

impl Place {
    fn of(redirect: &str) -> Option<Self> {
        let rest = redirect.strip_prefix("http://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        Some(Self { authority: authority.to_ascii_lowercase(), path: format!("/{path}") })
    }
}

/// Reads one request, answers it, and gives back what it brought if that is what is waited for.
async fn serve(mut stream: TcpStream, place: &Place, url: &AuthorizationUrl) -> Option<Callback> {
    let mut head = Vec::with_capacity(1024);
    let end = loop {
        if let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break Some(end);
        }
        if head.len() >= MAX_HEAD_BYTES {
            break None;
        }
        let room = MAX_HEAD_BYTES - head.len();
        if (&mut stream).take(room as u64).read_buf(&mut head).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let callback = end
        .and_then(|end| head.get(..end))
        .and_then(|head| std::str::from_utf8(head).ok())
        .and_then(|head| query(head, place))
        .and_then(Callback::from_query)
        .filter(|callback| url.is_answered_by(callback));
    let answer = page::response(callback.is_some());
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        let _ = stream.shutdown().await;
    }
    callback
}

/// The query of a request, if it is a `GET` for this very place.
fn query<'a>(head: &'a str, place: &Place) -> Option<&'a str> {
    let mut lines = head.split("\r\n");
    let mut request = lines.next()?.split(' ');
    let (method, target, version) = (request.next()?, request.next()?, request.next()?);
    if method != "GET" || request.next().is_some() || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return None;
    }
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    // Another name that leads here is a page that was made to look like ours.
    if !hosts.next()?.eq_ignore_ascii_case(&place.authority) || hosts.next().is_some() {
        return None;
    }
    let (path, query) = target.split_once('?')?;
    (path == place.path).then_some(query)
}

#[cfg(test)]
pub(super) mod tests;
