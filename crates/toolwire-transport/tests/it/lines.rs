use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt, duplex, empty};
use tokio::time::Instant;
use toolwire_transport::ledger::{Ceilings, Ledger, UNCHARGED_BYTES};
use toolwire_transport::lines::Lines;
use toolwire_transport::{Duplex, ReceiveError, Sink, Source};

use crate::{receive_many, send_many};

/// Remembers each write.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<Vec<u8>>>>);

impl AsyncWrite for Writes {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap().push(buf.to_vec());
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn small_messages_are_written_together() {
    let writes = Writes::default();
    let (_, mut sink) = Lines::new(empty(), writes.clone()).split();
    for _ in 0..100 {
        sink.send(Bytes::from_static(b"{}")).await.unwrap();
    }
    assert!(writes.0.lock().unwrap().is_empty());
    sink.flush().await.unwrap();
    assert_eq!(*writes.0.lock().unwrap(), ["{}\n".repeat(100).into_bytes()]);
}

#[tokio::test]
async fn what_is_gathered_is_bounded() {
    let writes = Writes::default();
    let (_, mut sink) = Lines::new(empty(), writes.clone()).split();
    for _ in 0..100 {
        sink.send(Bytes::from(vec![b'x'; 10_000])).await.unwrap();
    }
    sink.flush().await.unwrap();
    let writes = writes.0.lock().unwrap();
    assert!(writes.iter().all(|write| write.len() <= 128 * 1024));
    assert_eq!(writes.concat().len(), 100 * 10_001);
}

#[tokio::test]
async fn large_messages_keep_their_place() {
    let writes = Writes::default();
    let (_, mut sink) = Lines::new(empty(), writes.clone()).split();
    let large = vec![b'x'; 100_000];
    let mut broken = large.clone();
    broken[50_000] = b'\n';
    for message in [b"a".to_vec(), large.clone(), b"b".to_vec(), broken, b"c".to_vec()] {
        sink.send(message.into()).await.unwrap();
    }
    sink.close().await.unwrap();
    let written = writes.0.lock().unwrap().concat();
    let lines: Vec<_> = written.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.iter().map(|line| line.len()).collect::<Vec<_>>(), [1, 100_000, 1, 100_000, 1, 0]);
    assert_eq!(lines[1], large);
    assert_eq!(lines[3][50_000], b' ');
}

#[tokio::test]
async fn a_dropped_send_leaves_no_half_line() {
    let (near, far) = duplex(1000);
    let (_, mut sink) = Lines::new(empty(), near).split();
    let (mut source, _) = Lines::new(far, tokio::io::sink()).split();
    let large = Bytes::from(vec![b'x'; 100_000]);
    tokio::select! {
        biased;
        _ = sink.send(large.clone()) => panic!("the pipe is too small for that"),
        () = std::future::ready(()) => {}
    }
    let sending = tokio::spawn(async move {
        sink.send(Bytes::from_static(b"next")).await.unwrap();
        sink.close().await.unwrap();
    });
    assert!(source.receive().await.unwrap().unwrap() == large);
    assert_eq!(source.receive().await.unwrap().unwrap(), "next");
    assert!(source.receive().await.unwrap().is_none());
    sending.await.unwrap();
}

#[tokio::test]
async fn an_over_long_line_does_not_end_the_connection() {
    let (mut near, far) = duplex(64);
    let (mut source, _) = Lines::new(far, tokio::io::sink()).max_message_bytes(100).split();
    tokio::spawn(async move {
        near.write_all(b"{\"first\":1}\n").await.unwrap();
        near.write_all(&[b'x'; 5000]).await.unwrap();
        near.write_all(b"\n{\"second\":2}").await.unwrap();
    });
    assert_eq!(source.receive().await.unwrap().unwrap(), "{\"first\":1}");
    let error = source.receive().await.unwrap_err();
    assert!(matches!(error, ReceiveError::TooLong { limit: 100, .. }), "{error:?}");
    assert!(!error.is_fatal());
    assert_eq!(source.receive().await.unwrap().unwrap(), "{\"second\":2}");
    assert!(source.receive().await.unwrap().is_none());
    assert!(source.receive().await.unwrap().is_none());
}

#[tokio::test]
async fn the_id_of_an_over_long_request_is_told_even_if_it_comes_last() {
    let (mut near, far) = duplex(64);
    let (mut source, _) = Lines::new(far, tokio::io::sink()).max_message_bytes(100).split();
    tokio::spawn(async move {
        let filler = "x".repeat(5000);
        let request =
            |id| format!(r#"{{"method":"a","params":{{"x":"{filler}"}},"jsonrpc":"2.0","id":{id}}}"#);
        near.write_all(format!("{}\n{{}}\n{}", request(7), request(8)).as_bytes()).await.unwrap();
    });
    let error = source.receive().await.unwrap_err();
    assert_eq!(error.outline().unwrap().request_id(), Some(&7.into()));
    assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
    let error = source.receive().await.unwrap_err();
    assert_eq!(error.outline().unwrap().request_id(), Some(&8.into()), "also without a newline at the end");
    assert!(source.receive().await.unwrap().is_none());
}

#[tokio::test]
async fn a_dropped_receive_loses_nothing() {
    let (mut near, far) = duplex(64);
    let (mut source, _) = Lines::new(far, tokio::io::sink()).split();
    for part in [&b"{\"a\""[..], b":1", b"}"] {
        near.write_all(part).await.unwrap();
        tokio::select! {
            biased;
            _ = source.receive() => panic!("the line has not ended"),
            () = std::future::ready(()) => {}
        }
    }
    near.write_all(b"\n").await.unwrap();
    assert_eq!(source.receive().await.unwrap().unwrap(), "{\"a\":1}");
}

#[tokio::test]
async fn both_ways_at_once_through_small_pipes() {
    let (near, far) = duplex(4096);
    let (near_reader, near_writer) = tokio::io::split(near);
    let (far_reader, far_writer) = tokio::io::split(far);
    let (near_source, near_sink) = Lines::new(near_reader, near_writer).split();
    let (far_source, far_sink) = Lines::new(far_reader, far_writer).split();
    let sending = (tokio::spawn(send_many(near_sink)), tokio::spawn(send_many(far_sink)));
    tokio::join!(receive_many(near_source), receive_many(far_source));
    sending.0.await.unwrap().unwrap();
    sending.1.await.unwrap().unwrap();
}

/// Reads what has come, which is no whole line.
async fn read_on(source: &mut impl Source) {
    tokio::select! {
        biased;
        received = source.receive() => panic!("the line has not ended: {received:?}"),
        () = std::future::ready(()) => {}
    }
}

const LARGE: usize = 300_000;

#[tokio::test]
async fn a_line_is_charged_while_it_comes() {
    let ledger = Ledger::root(Ceilings::NONE);
    let (mut near, far) = duplex(2 * LARGE);
    let (mut source, _) = Lines::new(far, tokio::io::sink()).split();
    source.charge_to(&ledger);
    for (more, charged) in
        [(UNCHARGED_BYTES, 0), (1, UNCHARGED_BYTES + 1), (LARGE, UNCHARGED_BYTES + 1 + LARGE)]
    {
        near.write_all(&vec![b'x'; more]).await.unwrap();
        read_on(&mut source).await;
        assert_eq!(ledger.used_bytes(), charged);
    }
    near.write_all(b"\n{}\n").await.unwrap();
    let long = source.receive().await.unwrap().unwrap();
    assert_eq!((long.len(), ledger.used_bytes()), (UNCHARGED_BYTES + 1 + LARGE, 0));
    let short = source.receive().await.unwrap().unwrap();
    assert_eq!(short, "{}");
    assert!(long.is_unique(), "a short line keeps the memory of a long one");

    near.write_all(&vec![b'x'; LARGE]).await.unwrap();
    read_on(&mut source).await;
    assert_eq!(ledger.used_bytes(), LARGE);
    drop(source);
    assert_eq!(ledger.used_bytes(), 0);
}

#[tokio::test]
async fn a_line_over_the_limit_is_not_charged_any_more() {
    let ledger = Ledger::root(Ceilings::NONE);
    let (mut near, far) = duplex(2 * LARGE);
    let (mut source, _) = Lines::new(far, tokio::io::sink()).max_message_bytes(LARGE).split();
    source.charge_to(&ledger);
    near.write_all(&vec![b'x'; LARGE]).await.unwrap();
    read_on(&mut source).await;
    assert_eq!(ledger.used_bytes(), LARGE);
    near.write_all(b"x\n").await.unwrap();
    assert!(!source.receive().await.unwrap_err().is_fatal());
    assert_eq!(ledger.used_bytes(), 0);
}

#[tokio::test]
async fn a_line_that_may_not_be_held_is_refused_and_the_connection_goes_on() {
    let ledger = Ledger::root(Ceilings { bytes: ("held_bytes", LARGE), ..Ceilings::NONE });
    let (mut near, far) = duplex(3 * LARGE);
    let (mut source, _) = Lines::new(far, tokio::io::sink()).split();
    source.charge_to(&ledger);
    let filler = "x".repeat(2 * LARGE);
    // The id comes first, or last, or the line is not JSON.
    let (first, last) = (r#"{"jsonrpc":"2.0","method":"m","id":7,"params":""#, r#"","id":8,"method":"m"}"#);
    for (line, id) in [
        (format!("{first}{filler}\"}}"), Some(7)),
        (format!(r#"{{"jsonrpc":"2.0","params":"{filler}{last}"#), Some(8)),
        (filler.clone() + "x", None),
    ] {
        near.write_all(format!("{line}\n{{}}\n").as_bytes()).await.unwrap();
        let error = source.receive().await.unwrap_err();
        assert!(matches!(error, ReceiveError::Busy { .. }) && !error.is_fatal(), "{error:?}");
        assert!(error.to_string().contains("held_bytes"), "{error}");
        assert_eq!(error.outline().unwrap().request_id(), id.map(Into::into).as_ref());
        assert_eq!(ledger.used_bytes(), 0);
        assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
    }
    near.write_all(format!("{filler}x").as_bytes()).await.unwrap();
    drop(near);
    assert!(
        matches!(source.receive().await, Err(ReceiveError::Busy { .. })),
        "also without a newline at the end"
    );
    assert!(source.receive().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_line_begins_anew_after_a_blank_one_and_after_one_that_is_too_long() {
    let limit = Duration::from_secs(30);
    let (mut near, far) = duplex(1000);
    let (mut source, _) =
        Lines::new(far, tokio::io::sink()).max_message_bytes(10).message_timeout(limit).split();
    near.write_all(b"{").await.unwrap();
    for rest in [&b"     too long     }\n{"[..], b"}\n ", b"  \n  \n{"] {
        read_until_paused(&mut source).await;
        tokio::time::advance(limit.mul_f64(0.9)).await;
        near.write_all(rest).await.unwrap();
    }
    read_until_paused(&mut source).await;
    tokio::time::advance(limit.mul_f64(0.9)).await;
    near.write_all(b"}\n").await.unwrap();
    assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
}

/// Receives all that has come, and stops when more is needed.
async fn read_until_paused(source: &mut impl Source) {
    loop {
        tokio::select! {
            biased;
            received = source.receive() => match received {
                Ok(line) => assert!(line.is_some(), "the connection has ended"),
                Err(error) => assert!(!error.is_fatal(), "{error}"),
            },
            () = std::future::ready(()) => return,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_that_has_begun_has_to_end_in_time() {
    let limit = Duration::from_secs(30);
    let (mut near, far) = duplex(64);
    let (mut source, _) = Lines::new(far, tokio::io::sink()).message_timeout(limit).split();
    tokio::spawn(async move {
        tokio::time::sleep(10 * limit).await;
        near.write_all(b"{}\n{").await.unwrap();
        loop {
            tokio::time::sleep(limit / 4).await;
            near.write_all(b" ").await.unwrap();
        }
    });
    assert_eq!(source.receive().await.unwrap().unwrap(), "{}", "one that is idle is not hurried");
    let begun = Instant::now();
    let error = source.receive().await.unwrap_err();
    assert!(matches!(error, ReceiveError::TimedOut { limit: told } if told == limit), "{error:?}");
    assert!(error.is_fatal());
    assert_eq!(
        (error.to_string().as_str(), begun.elapsed()),
        ("a message was not complete within 30s", limit)
    );
    assert!(source.receive().await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_not_written_stays_charged() {
    let ledger = Ledger::root(Ceilings::NONE);
    let (near, mut far) = duplex(1000);
    let (_, mut sink) = Lines::new(empty(), near).split();
    sink.charge_to(&ledger);
    let sending = tokio::spawn(async move { sink.send(vec![b'x'; LARGE].into()).await.map(|()| sink) });
    tokio::task::yield_now().await;
    assert_eq!(ledger.used_bytes(), LARGE);
    tokio::io::AsyncReadExt::read_exact(&mut far, &mut vec![0; LARGE + 1]).await.unwrap();
    let _sink = sending.await.unwrap().unwrap();
    assert_eq!(ledger.used_bytes(), 0);
}
