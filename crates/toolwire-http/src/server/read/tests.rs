use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Frame, SizeHint};
use http_body_util::{Empty, Full};
use toolwire_transport::ledger::{Account, Ceilings, Ledger};

use super::*;

const TIME: Duration = Duration::from_secs(30);

fn accept(text: &str) -> (bool, bool) {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, text.parse().unwrap());
    let accepts = Accepts::of(&headers);
    (accepts.json, accepts.events)
}

#[test]
fn accept_is_read() {
    for (text, expected) in [
        ("application/json, text/event-stream", (true, true)),
        ("Text/Event-Stream;q=0.5 , APPLICATION/JSON", (true, true)),
        ("*/*", (true, true)),
        ("application/*", (true, false)),
        ("text/*;q=0.1", (false, true)),
        ("application/json;q=0, text/event-stream", (false, true)),
        ("text/html", (false, false)),
        ("", (false, false)),
        (",;q=,", (false, false)),
    ] {
        assert_eq!(accept(text), expected, "{text:?}");
    }
    let none = Accepts::of(&HeaderMap::new());
    assert!(none.json && none.events);
}

#[test]
fn media_types_are_checked_in_order() {
    let check = |pairs: &[(&'static str, &'static str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        media_types(&Head::of(&headers), &headers)
    };
    assert!(check(&[("content-type", "application/json")]).is_ok());
    assert!(check(&[("content-type", "Application/JSON; charset=utf-8")]).is_ok());
    assert!(check(&[("content-type", "application/json"), ("content-encoding", "identity")]).is_ok());
    for pairs in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/jsonp")],
        &[("content-type", "application/json"), ("content-type", "application/json")],
    ] {
        assert_eq!(check(pairs), Err(Unreadable::MediaType), "{pairs:?}");
    }
    let gzip = [("content-type", "application/json"), ("content-encoding", "gzip")];
    assert_eq!(check(&gzip), Err(Unreadable::Encoding));
    let html = [("content-type", "application/json"), ("accept", "text/html")];
    assert_eq!(check(&html), Err(Unreadable::NotAcceptable));
}

/// A body in pieces that does not know its length; `None` breaks off.
struct Pieces(VecDeque<Option<&'static [u8]>>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let piece = self.0.pop_front();
        Poll::Ready(piece.map(|piece| piece.map(|bytes| Frame::data(Bytes::from_static(bytes))).ok_or("cut")))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

fn charge(limit: usize) -> Charge {
    let ceilings = Ceilings { bytes: ("held_bytes", limit), ..Ceilings::NONE };
    Ledger::root(ceilings).empty_charge(Account::RequestBytes)
}

#[tokio::test]
async fn a_body_is_charged_before_it_is_read_and_piece_by_piece() {
    let mut told = charge(2);
    let refused = body(Full::new(Bytes::from("abc")), 3, TIME, &mut told).await.unwrap_err();
    let Unreadable::Busy(reached) = refused else { panic!("{refused:?}") };
    assert_eq!((reached.limit_name(), told.amount()), ("held_bytes", 0));
    let mut untold = charge(2);
    let pieces = Pieces([Some(&b"ab"[..]), Some(b"c")].into());
    assert!(matches!(body(pieces, 3, TIME, &mut untold).await, Err(Unreadable::Busy(_))));
    assert_eq!(untold.amount(), 2);
}

/// A body that announces its length and gives nothing but its first bytes.
struct Announced(Option<&'static [u8]>, u64);

impl HttpBody for Announced {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(bytes))))),
            None => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.1)
    }
}

#[tokio::test]
async fn an_announced_length_is_not_charged_before_its_bytes_come() {
    for (first, expected) in [(None, 0), (Some(&b"ab"[..]), 2)] {
        let ledger = Ledger::root(Ceilings { bytes: ("held_bytes", 5), ..Ceilings::NONE });
        let mut announced = ledger.empty_charge(Account::RequestBytes);
        let mut reading = pin!(body(Announced(first, 1000), 1000, TIME, &mut announced));
        assert!(poll_fn(|task| Poll::Ready(reading.as_mut().poll(task))).await.is_pending());
        assert_eq!(ledger.used_bytes(), expected);
    }
    let mut none = charge(1000);
    let too_large = body(Announced(None, 1001), 1000, TIME, &mut none).await;
    assert_eq!(too_large, Err(Unreadable::TooLarge { limit: 1000 }));
}

#[tokio::test]
async fn a_body_is_put_together() {
    let pieces = Pieces([Some(&b"ab"[..]), Some(b""), Some(b"c")].into());
    assert_eq!(body(pieces, 3, TIME, &mut charge(3)).await.unwrap(), "abc");
    assert_eq!(body(Full::new(Bytes::from("abc")), 3, TIME, &mut charge(3)).await.unwrap(), "abc");
    assert_eq!(body(Empty::<Bytes>::new(), 3, TIME, &mut charge(3)).await.unwrap(), "");
}

#[tokio::test]
async fn a_body_stays_within_its_limit() {
    let pieces = Pieces([Some(&b"ab"[..]), Some(b"cd")].into());
    assert_eq!(body(pieces, 3, TIME, &mut charge(3)).await, Err(Unreadable::TooLarge { limit: 3 }));
    assert_eq!(
        body(Full::new(Bytes::from("abcd")), 3, TIME, &mut charge(3)).await,
        Err(Unreadable::TooLarge { limit: 3 })
    );
    let broken = Pieces([Some(&b"ab"[..]), None].into());
    assert_eq!(body(broken, 3, TIME, &mut charge(3)).await, Err(Unreadable::Broken));
}

/// A body that never comes.
struct Never;

impl HttpBody for Never {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_must_come_in_time() {
    assert_eq!(body(Never, 3, TIME, &mut charge(3)).await, Err(Unreadable::TooSlow { limit: TIME }));
}

#[test]
fn every_fault_has_its_status() {
    for (fault, status) in [
        (Unreadable::MediaType, 415),
        (Unreadable::Encoding, 415),
        (Unreadable::NotAcceptable, 406),
        (Unreadable::TooLarge { limit: 1 }, 413),
        (Unreadable::TooSlow { limit: TIME }, 408),
        (Unreadable::Broken, 400),
    ] {
        assert_eq!(fault.response().status(), status, "{fault:?}");
    }
}
