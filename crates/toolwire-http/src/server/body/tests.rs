use std::{collections::VecDeque, future::poll_fn};

use http_body::Body as _;

use super::*;

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
