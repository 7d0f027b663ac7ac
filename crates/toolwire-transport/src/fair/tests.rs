use super::*;
use crate::ledger::{Account, Ceilings, Ledger};

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn drain(queue: &FairQueue) -> Vec<Bytes> {
    std::iter::from_fn(|| queue.try_next()).collect()
}

#[test]
fn lanes_take_turns_and_keep_their_order() {
    let queue = FairQueue::new();
    let (a, b) = (queue.lane(), queue.lane());
    for message in ["a1", "a2", "a3"] {
        a.push(bytes(message)).unwrap();
    }
    b.push(bytes("b1")).unwrap();
    b.finish(bytes("b2")).unwrap();
    queue.post(bytes("c")).unwrap();
    assert_eq!(drain(&queue), ["a1", "b1", "c", "a2", "b2", "a3"]);
    assert_eq!(queue.queued_bytes(), 0);
}

#[test]
fn many_large_messages_do_not_starve_a_small_one() {
    let queue = FairQueue::new();
    let large = queue.lane();
    for _ in 0..20 {
        large.push(Bytes::from(vec![b'x'; 100_000])).unwrap();
    }
    queue.post(bytes("small")).unwrap();
    assert_eq!(queue.try_next().unwrap().len(), 100_000);
    assert_eq!(queue.try_next().unwrap(), "small");
}

#[test]
fn a_lane_is_bounded_but_its_last_message_has_room() {
    let queue = FairQueue::new();
    let lane = queue.lane();
    for _ in 0..LANE_MESSAGES {
        lane.push(bytes("n")).unwrap();
    }
    assert_eq!(lane.push(bytes("more")), Err(Refused::Full(bytes("more"))));
    assert_eq!(lane.replace(1, bytes("more")), Err(Refused::Full(bytes("more"))));
    lane.finish(bytes("last")).unwrap();
    assert_eq!(lane.push(bytes("late")), Err(Refused::Closed(bytes("late"))));
    assert_eq!(lane.replace(1, bytes("late")), Err(Refused::Closed(bytes("late"))));
    assert_eq!(lane.finish(bytes("again")), Err(Closed(bytes("again"))));
    let written = drain(&queue);
    assert_eq!(written.len(), LANE_MESSAGES + 1);
    assert_eq!(written.last().unwrap(), "last");
}

#[test]
fn the_queue_is_bounded_in_bytes() {
    let queue = FairQueue::with_limits(Limits { queue_bytes: 10, ..Limits::default() });
    let (a, b) = (queue.lane(), queue.lane());
    a.push(bytes("123456")).unwrap();
    b.push(bytes("123456")).unwrap();
    assert_eq!(a.push(bytes("x")), Err(Refused::Full(bytes("x"))));
    queue.post(bytes("an answer")).unwrap();
    assert_eq!(queue.queued_bytes(), 21);
    queue.try_next().unwrap();
    queue.try_next().unwrap();
    a.push(bytes("x")).unwrap();
}

#[test]
fn a_full_lane_replaces_the_newest_message_with_the_same_key() {
    let queue = FairQueue::with_limits(Limits { lane_messages: 3, ..Limits::default() });
    let lane = queue.lane();
    lane.replace(7, bytes("10%")).unwrap();
    lane.replace(7, bytes("20%")).unwrap();
    lane.push(bytes("log")).unwrap();
    lane.replace(7, bytes("100 %")).unwrap();
    assert_eq!(lane.replace(8, bytes("other")), Err(Refused::Full(bytes("other"))));
    assert_eq!(queue.queued_bytes(), 3 + 5 + 3);
    assert_eq!(drain(&queue), ["10%", "100 %", "log"]);
}

#[test]
fn a_dropped_lane_is_written_and_its_place_used_again() {
    let queue = FairQueue::new();
    for _ in 0..1000 {
        let lane = queue.lane();
        let clone = lane.clone();
        lane.push(bytes("1")).unwrap();
        drop(lane);
        clone.push(bytes("2")).unwrap();
        drop(clone);
        let fresh = queue.lane();
        fresh.push(bytes("fresh")).unwrap();
        drop(fresh);
        assert_eq!(drain(&queue), ["1", "fresh", "2"]);
    }
    assert_eq!(lock(&queue.shared.state).slots(), 2);
}

#[tokio::test]
async fn senders_wait_for_room() {
    let queue = FairQueue::with_limits(Limits { lane_messages: 1, ..Limits::default() });
    let lane = queue.lane();
    let sender = tokio::spawn(async move {
        for _ in 0..1000 {
            lane.send(Bytes::from_static(b"m")).await.unwrap();
        }
        lane.finish(Bytes::from_static(b"end")).unwrap();
    });
    let mut count = 0;
    while queue.next().await.unwrap() != "end" {
        count += 1;
    }
    assert_eq!(count, 1000);
    sender.await.unwrap();
}

#[tokio::test]
async fn a_finished_lane_and_a_closed_queue_release_those_who_wait() {
    let queue = FairQueue::with_limits(Limits { lane_messages: 1, queue_bytes: 2 });
    let lane = queue.lane();
    lane.push(bytes("1")).unwrap();
    let waiting = lane.clone();
    let refused = tokio::spawn(async move { waiting.send(bytes("2")).await });
    tokio::task::yield_now().await;
    lane.finish(bytes("last")).unwrap();
    assert_eq!(refused.await.unwrap(), Err(Closed(bytes("2"))));

    let other = queue.lane();
    let crowded = queue.clone();
    let refused = tokio::spawn(async move { other.send(bytes("3")).await });
    let room = tokio::spawn(async move { crowded.room().await });
    tokio::task::yield_now().await;
    assert!(!room.is_finished());
    queue.close();
    assert_eq!(refused.await.unwrap(), Err(Closed(bytes("3"))));
    room.await.unwrap();
    assert_eq!(queue.post(bytes("late")), Err(Closed(bytes("late"))));
    assert_eq!(queue.next().await.unwrap(), "1");
    assert_eq!(queue.next().await.unwrap(), "last");
    assert_eq!(queue.next().await, None);
}

#[tokio::test]
async fn an_aborted_queue_is_empty_and_over() {
    let queue = FairQueue::new();
    let lane = queue.lane();
    lane.push(bytes("1")).unwrap();
    queue.abort();
    assert_eq!(queue.queued_bytes(), 0);
    assert_eq!(queue.next().await, None);
    assert_eq!(lane.finish(bytes("2")), Err(Closed(bytes("2"))));
}

#[tokio::test]
async fn what_others_hold_never_stops_a_queue_that_is_empty() {
    let process = Ledger::root(Ceilings { bytes: ("held_bytes", 10), ..Ceilings::NONE });
    let charged = || FairQueue::charged(Limits::default(), process.empty_charge(Account::AnswerBytes));
    let (crowded, idle) = (charged(), charged());
    crowded.post(bytes("more than ten bytes")).unwrap();
    // Nothing is written here that could wake whoever waits, so nobody may have to.
    idle.room().await;
    let lane = idle.lane();
    lane.send(bytes("one")).await.unwrap();
    assert_eq!(lane.push(bytes("two")), Err(Refused::Full(bytes("two"))));
    assert_eq!(drain(&idle), ["one"]);
    lane.push(bytes("two")).unwrap();
}

#[test]
fn a_last_message_without_room_is_replaced_by_a_short_one() {
    let long = || Bytes::from(vec![b'x'; 2 * LIGHT_BYTES]);
    let process = Ledger::root(Ceilings { bytes: ("held_bytes", 5 * LIGHT_BYTES), ..Ceilings::NONE });
    let charge = process.empty_charge(Account::AnswerBytes);
    let queue = FairQueue::charged_or(Limits::default(), charge, |message, reached| {
        Bytes::from(format!("{} bytes: {}", message.len(), reached.limit_name()))
    });
    queue.post(long()).unwrap();
    queue.lane().finish(long()).unwrap();
    for _ in 0..2 {
        queue.post(long()).unwrap();
        queue.lane().finish_with(long(), bytes("short")).unwrap();
    }
    queue.post(Bytes::from(vec![b'y'; LIGHT_BYTES])).unwrap();
    assert_eq!(process.used_bytes(), queue.queued_bytes());
    let written = drain(&queue);
    assert_eq!(written.iter().filter(|message| **message == long()).count(), 2);
    assert_eq!(written.iter().filter(|message| **message == "2048 bytes: held_bytes").count(), 4);
    assert_eq!((written.len(), process.used_bytes()), (9, 0));
    queue.post(long()).unwrap();
    assert_eq!(drain(&queue), [long()], "there is room again");
}

#[test]
fn a_notification_behind_an_answer_is_queued_as_it_is() {
    let notification = || Bytes::from(vec![b'n'; 2 * LIGHT_BYTES]);
    for room in [0, 2 * LIGHT_BYTES] {
        let process = Ledger::root(Ceilings { bytes: ("held_bytes", room), ..Ceilings::NONE });
        let charge = process.empty_charge(Account::AnswerBytes);
        let queue = FairQueue::charged_or(Limits::default(), charge, |_, _| bytes("an error"));
        let answer = Bytes::from(vec![b'a'; 2 * LIGHT_BYTES]);
        queue.lane().finish_with(answer.clone(), notification()).unwrap();
        assert_eq!(process.used_bytes(), queue.queued_bytes());
        let answer = if room == 0 { bytes("an error") } else { answer };
        assert_eq!(drain(&queue), [answer, notification()]);
        assert_eq!(process.used_bytes(), 0);
    }
}

#[test]
fn a_last_message_that_is_charged_already_takes_the_room_of_its_charge() {
    let process = Ledger::root(Ceilings { bytes: ("held_bytes", 3000), ..Ceilings::NONE });
    let queue =
        FairQueue::charged_or(Limits::default(), process.empty_charge(Account::AnswerBytes), |_, _| {
            unreachable!("it has its room")
        });
    for (charged, length) in [(2990, 3000), (3000, 2990)] {
        let charge = process.charge(Account::AnswerBytes, charged).unwrap();
        queue.lane().finish_charged(Bytes::from(vec![b'x'; length]), charge).unwrap();
        assert_eq!((process.used_bytes(), queue.queued_bytes()), (length, length));
        assert_eq!(drain(&queue).len(), 1);
        assert_eq!(process.used_bytes(), 0);
    }
    let elsewhere = process.child(Ceilings::NONE).charge(Account::AnswerBytes, 10).unwrap();
    queue.lane().finish_charged(Bytes::from(vec![b'x'; 20]), elsewhere).unwrap();
    assert_eq!(process.used_bytes(), 20);
    queue.close();
    let charge = process.charge(Account::AnswerBytes, 10).unwrap();
    assert!(queue.lane().finish_charged(bytes("late"), charge).is_err());
    assert_eq!(process.used_bytes(), 20);
}
