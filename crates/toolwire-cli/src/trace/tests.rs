//! Messages become a conversation.

use serde_json::{Value, json};

use super::{Conversation, Event, Item, Side, What};

/// Events one microsecond apart; what begins with `>` is the client's.
fn conversation(messages: &[(char, Value)]) -> Conversation {
    let events = messages.iter().zip(1..).map(|((from, message), micros)| {
        let side = if *from == '>' { Side::Client } else { Side::Server };
        Event { micros, server: "x".into(), what: What::Message(side, message.clone()) }
    });
    Conversation::of(events.collect())
}

fn methods(conversation: &Conversation, items: &[Item]) -> Vec<String> {
    let name = |item: &Item| match item {
        Item::Exchange(index) => conversation.exchange(*index).unwrap().method.clone(),
        Item::Notice(notice) => notice.method.clone(),
        Item::Failed { why, .. } | Item::Closed { why, .. } => why.clone(),
    };
    items.iter().map(name).collect()
}

#[test]
fn the_rounds_of_a_call_belong_together() {
    let ask =
        |state: &str| json!({"resultType": "input_required", "requestState": state, "inputRequests": {}});
    let talk = conversation(&[
        ('>', json!({"id": 1, "method": "tools/call", "params": {"name": "a"}})),
        ('>', json!({"id": 2, "method": "tools/call", "params": {"name": "b"}})),
        ('<', json!({"id": 2, "result": ask("b1")})),
        ('<', json!({"id": 1, "result": ask("a1")})),
        ('>', json!({"id": 3, "method": "tools/call", "params": {"name": "a", "requestState": "a1"}})),
        ('>', json!({"id": 4, "method": "tools/call", "params": {"name": "b", "requestState": "b1"}})),
        ('<', json!({"id": 3, "result": {"content": []}})),
        ('<', json!({"id": 4, "error": {"code": -1, "message": "no"}})),
    ]);
    let asked: Vec<_> = talk.asked().collect();
    assert_eq!(asked, [0, 1]);
    let names: Vec<_> = talk.rounds(0).map(|round| round.params["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "a"]);
    assert_eq!(talk.rounds(1).count(), 2);
    assert_eq!(talk.rounds(0).last().unwrap().took(), Some(2));
}

#[test]
fn questions_progress_and_logs_are_inside_of_their_call() {
    let talk = conversation(&[
        ('>', json!({"id": 1, "method": "tools/call", "params": {"_meta": {"progressToken": 1}}})),
        ('<', json!({"id": 1, "method": "elicitation/create", "params": {"message": "?"}})),
        ('>', json!({"id": 1, "result": {"action": "accept"}})),
        ('<', json!({"method": "notifications/progress", "params": {"progressToken": 1}})),
        ('<', json!({"method": "notifications/message", "params": {}})),
        ('<', json!({"method": "notifications/progress", "params": {"progressToken": "other"}})),
        ('<', json!({"id": 1, "result": {}})),
        ('<', json!({"method": "notifications/message", "params": {}})),
    ]);
    let call = talk.exchange(0).unwrap();
    let inside = ["elicitation/create", "notifications/progress", "notifications/message"];
    assert_eq!(methods(&talk, &call.during), inside);
    assert_eq!(talk.exchange(1).unwrap().result().unwrap()["action"], "accept");
    let outside = ["tools/call", "notifications/progress", "notifications/message"];
    assert_eq!(methods(&talk, &talk.items), outside);
}

#[test]
fn a_cancelled_call_has_no_answer_and_strange_messages_do_no_harm() {
    let talk = conversation(&[
        ('>', json!({"id": 1, "method": "tools/call"})),
        ('>', json!({"method": "notifications/cancelled", "params": {"requestId": 1}})),
        ('<', json!({"id": 1, "result": {}})),
        ('<', json!({"id": 99, "result": {}})),
        ('<', json!({})),
        ('<', json!({"method": 7, "id": {}, "params": []})),
    ]);
    let call = talk.exchange(0).unwrap();
    assert!(call.cancelled && call.outcome.is_none());
    assert_eq!(methods(&talk, &talk.items), ["tools/call"]);
}
