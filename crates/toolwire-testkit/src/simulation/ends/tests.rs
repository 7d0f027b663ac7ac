use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, timeout},
};

use super::*;
use crate::simulation::{Break, Cut, Faults, Stall};

fn slow(stall: Option<Duration>) -> Plan {
    let there = Faults { stall: Some(Stall { after: 1, time: stall }), ..Faults::calm() };
    Plan { there, ..Plan::calm() }
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_in_pieces_and_in_order() {
    let faults = Faults { piece_bytes: 7, capacity: 2, delay: Duration::from_millis(5), ..Faults::calm() };
    let plan = Plan { there: Faults { needless_wakes: 50, ..faults.clone() }, back: faults, cut: None };
    let (mut one, mut other, link) = byte_link(&mut Random::new(3), plan);
    let text = (0..=255).collect::<Vec<u8>>();
    let sent = text.clone();
    let sending = tokio::spawn(async move {
        one.write_all(&sent).await.unwrap();
        one
    });
    let mut received = vec![0; text.len()];
    other.read_exact(&mut received).await.unwrap();
    assert_eq!(received, text);
    assert!(link.polls() > 40);
    drop(sending.await.unwrap());
    assert_eq!(other.read(&mut received).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stall_ends_after_its_time_or_never() {
    for stall in [Some(Duration::from_secs(3)), None] {
        let (one, other, _link) = message_link(&mut Random::new(3), slow(stall));
        let ((_, mut sink), (mut source, _)) = (one.split(), other.split());
        for text in ["a", "b"] {
            sink.send(text.into()).await.unwrap();
        }
        let start = Instant::now();
        assert_eq!(source.receive().await.unwrap().unwrap(), "a");
        let second = timeout(Duration::from_secs(100), source.receive()).await;
        assert_eq!(second.is_ok(), stall.is_some());
        assert_eq!(start.elapsed(), stall.unwrap_or(Duration::from_secs(100)));
    }
}

#[tokio::test]
async fn a_cut_falls_upon_the_poll_it_is_planned_for() {
    let cut = |how| Plan { cut: Some(Cut { at_poll: 3, how }), ..Plan::calm() };
    let (one, other, _link) = message_link(&mut Random::new(3), cut(Break::Reset));
    let ((mut source, mut sink), _other) = (one.split(), other.split());
    sink.send("a".into()).await.unwrap();
    sink.send("b".into()).await.unwrap();
    assert!(sink.send("c".into()).await.is_err());
    assert!(source.receive().await.is_err());

    let (one, other, _link) = message_link(&mut Random::new(3), cut(Break::HalfClose));
    let ((mut source, mut sink), (mut theirs, mut back)) = (one.split(), other.split());
    sink.send("a".into()).await.unwrap();
    sink.send("b".into()).await.unwrap();
    assert!(sink.send("c".into()).await.is_err());
    for expected in [Some("a"), Some("b"), None] {
        assert_eq!(theirs.receive().await.unwrap().as_deref(), expected.map(str::as_bytes));
    }
    back.send("d".into()).await.unwrap();
    assert_eq!(source.receive().await.unwrap().unwrap(), "d");
}
