use std::{collections::VecDeque, future::poll_fn};

use http_body::Body as _;

use super::*;
use crate::server::io::Activity;

/// Gives its items, waiting where there is a `None`.
struct Script(VecDeque<Option<&'static [u8]>>);

impl Stream for Script {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.0.pop_front() {
            Some(Some(bytes)) => Poll::Ready(Some(Bytes::from_static(bytes))),
            Some(None) => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

async fn next(body: &mut Body) -> Option<Bytes> {
    let frame = poll_fn(|task| Pin::new(&mut *body).poll_frame(task)).await?;
    frame.unwrap().into_data().ok()
}

#[tokio::test]
async fn a_full_body_comes_in_one_piece_of_known_size() {
    let mut body = Body::full("abc");
    assert_eq!(body.size_hint().exact(), Some(3));
    assert!(!body.is_end_stream());
    assert_eq!(next(&mut body).await.unwrap(), "abc");
    assert!(body.is_end_stream());
    assert_eq!(next(&mut body).await, None);
    assert!(Body::empty().is_end_stream());
    assert_eq!(Body::default().size_hint().exact(), Some(0));
}

#[tokio::test]
async fn a_stream_ends_when_its_source_does() {
    let mut body = Body::stream(Script([Some(&b"a"[..]), Some(b"b")].into()));
    assert_eq!(body.size_hint().exact(), None);
    assert_eq!(next(&mut body).await.unwrap(), "a");
    assert_eq!(next(&mut body).await.unwrap(), "b");
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn comments_fill_the_gaps() {
    let interval = Duration::from_secs(5);
    let script = Script([Some(&b"a"[..]), None, None, Some(b"b")].into());
    let mut body = Body::stream(KeepAlive::new(script, interval));
    let start = Instant::now();
    assert_eq!(next(&mut body).await.unwrap(), "a");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(next(&mut body).await.unwrap(), KEEP_ALIVE);
    assert_eq!(start.elapsed().as_secs(), 5);
    assert_eq!(next(&mut body).await.unwrap(), "b");
    assert_eq!(next(&mut body).await, None);
}

#[test]
fn a_message_is_one_data_line() {
    assert_eq!(event(None, b"{}"), "data: {}\n\n");
    assert_eq!(event(Some("7"), b"{\n  \"a\":\r\n1}"), "id: 7\ndata: {   \"a\":  1}\n\n");
}

async fn lengths(body: &mut Body) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let Some(piece) = next(body).await {
        lengths.push(piece.len());
    }
    lengths
}

#[tokio::test]
async fn what_is_long_is_given_in_pieces() {
    let long = Bytes::from(vec![b'x'; 2 * PIECE_BYTES + 5]);
    let mut body = Body::full(long.clone());
    assert_eq!(body.size_hint().exact(), Some(long.len() as u64));
    assert_eq!(lengths(&mut body).await, [PIECE_BYTES, PIECE_BYTES, 5]);
    assert_eq!(lengths(&mut Body::full(vec![b'x'; PIECE_BYTES])).await, [PIECE_BYTES]);
    let items = VecDeque::from([long, Bytes::new(), Bytes::from_static(b"end")]);
    assert_eq!(lengths(&mut Body::stream(Items(items))).await, [PIECE_BYTES, PIECE_BYTES, 5, 3]);
}

struct Items(VecDeque<Bytes>);

impl Stream for Items {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(self.0.pop_front())
    }
}

#[tokio::test]
async fn on_http2_the_last_piece_is_short_and_does_not_keep_the_others() {
    for (length, expected) in [
        (10, vec![10]),
        (LAST_PIECE_BYTES, vec![LAST_PIECE_BYTES]),
        (LAST_PIECE_BYTES + 1, vec![1, LAST_PIECE_BYTES]),
        (STREAM_PIECE_BYTES, vec![STREAM_PIECE_BYTES - LAST_PIECE_BYTES, LAST_PIECE_BYTES]),
        (
            2 * STREAM_PIECE_BYTES + 5,
            vec![STREAM_PIECE_BYTES, STREAM_PIECE_BYTES + 5 - LAST_PIECE_BYTES, LAST_PIECE_BYTES],
        ),
    ] {
        let mut body = Body::full(vec![b'x'; length]);
        body.hold(Activity::new().stream());
        assert_eq!(lengths(&mut body).await, expected, "{length}");
    }
    let whole = Bytes::from(vec![b'x'; STREAM_PIECE_BYTES]);
    let memory = whole.as_ptr_range();
    let mut body = Body::full(whole);
    body.hold(Activity::new().stream());
    assert!(memory.contains(&next(&mut body).await.unwrap().as_ptr()));
    assert!(!memory.contains(&next(&mut body).await.unwrap().as_ptr()));
}
