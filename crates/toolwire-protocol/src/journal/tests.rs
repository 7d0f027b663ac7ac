use serde_json::json;

use super::*;
use crate::seal::Memory;

fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

fn entry(text: &str) -> Entry {
    Entry::parse(&raw(text)).unwrap()
}

fn refused(text: &str) -> String {
    Entry::parse(&raw(text)).unwrap_err().to_string()
}

fn ask(key: &str, wire: &str, digest: &str) -> Entry {
    Entry::Ask { key: key.into(), wire: wire.into(), digest: digest.into(), q: Some(raw("{}")) }
}

fn folded(entries: &[Entry]) -> Folded {
    fold("c", entries).unwrap()
}

#[test]
fn each_kind_has_its_form() {
    for (text, kind, name) in [
        (r#"{"k":"step","name":"fetch","v":[1]}"#, "step", "fetch"),
        (r#"{"k":"step","name":"fetch","v":null}"#, "step", "fetch"),
        (r#"{"k":"begun","name":"pay"}"#, "begun", "pay"),
        (r#"{"k":"ask","key":"d","wire":"d#2","digest":"x","q":{"method":"roots/list"}}"#, "ask", "d#2"),
        (r#"{"k":"ask","key":"d","wire":"d","digest":"x"}"#, "ask", "d"),
        (r#"{"k":"answer","wire":"d","v":{"action":"accept"}}"#, "answer", "d"),
        (r#"{"k":"answer","wire":"d","error":{"code":-1,"message":"no"}}"#, "answer", "d"),
        (r#"{"k":"unfit","key":"d"}"#, "unfit", "d"),
        (r#"{"k":"closed","wire":"d"}"#, "closed", "d"),
        (r#"{"k":"timer","name":"cool down","until":1700000000000}"#, "timer", "cool down"),
        (r#"{"k":"user","v":{"page":3}}"#, "user", ""),
        (r#"{"k":"user"}"#, "user", ""),
    ] {
        let entry = entry(text);
        assert_eq!((entry.kind(), entry.name()), (kind, name), "{text}");
        assert_eq!(serde_json::to_string(&entry).unwrap(), text);
        assert!(entry.weight() > entry.name().len());
    }
}

#[test]
fn what_is_not_an_entry_is_refused_and_says_why() {
    for (text, why) in [
        (
            r#"{"k":"jump","name":"a"}"#,
            "entries of kind \"jump\" are not known to this version; a newer one wrote it",
        ),
        (r#"{"k":"step","name":"a"}"#, "the entry of kind \"step\" has no \"v\""),
        (r#"{"k":"step","v":1}"#, "the entry of kind \"step\" has no \"name\""),
        (r#"{"k":"ask","key":"a","digest":"d"}"#, "the entry of kind \"ask\" has no \"wire\""),
        (r#"{"k":"answer","wire":"a"}"#, "the entry of kind \"answer\" has no \"v\""),
        (
            r#"{"k":"answer","wire":"a","v":1,"error":2}"#,
            "the entry of kind \"answer\" has the odd member \"error\"",
        ),
        (r#"{"k":"begun","name":"a","v":1}"#, "the entry of kind \"begun\" has the odd member \"v\""),
        (r#"{"k":"timer","name":"a"}"#, "the entry of kind \"timer\" has no \"until\""),
        (r#"{"k":"timer","name":"a","until":-1}"#, "invalid value"),
        (r#"{"k":"unfit","key":"a","later":1}"#, "unknown field `later`"),
        (r#"{"name":"a"}"#, "missing field `k`"),
        ("[]", "invalid"),
    ] {
        let refused = refused(text);
        assert!(refused.contains(why), "{text}: {refused}");
        assert!(refused.starts_with("the journal of the task cannot be read: "), "{refused}");
    }
}

#[test]
fn values_can_be_sealed_where_they_are() {
    for text in [
        r#"{"k":"step","name":"a","v":1}"#,
        r#"{"k":"ask","key":"a","wire":"a","digest":"d","q":1}"#,
        r#"{"k":"answer","wire":"a","v":1}"#,
        r#"{"k":"answer","wire":"a","error":1}"#,
        r#"{"k":"user","v":1}"#,
    ] {
        let mut entry = entry(text);
        assert_eq!(entry.value(), Some(&raw("1")));
        *entry.value_mut().unwrap() = raw("\"sealed\"");
        assert_eq!(serde_json::to_string(&entry).unwrap(), text.replace(":1}", ":\"sealed\"}"));
    }
    for text in [r#"{"k":"begun","name":"a"}"#, r#"{"k":"timer","name":"a","until":1}"#, r#"{"k":"user"}"#] {
        assert_eq!(entry(text).value_mut(), None, "{text}");
    }
}

#[test]
fn steps_answers_and_what_the_handler_remembers_are_what_a_run_starts_with() {
    let folded = folded(&[
        Entry::step("fetch", raw("[1]")),
        Entry::User { v: Some(raw("1")) },
        ask("depth", "depth", "d"),
        Entry::answer("depth", raw(r#"{"action":"accept"}"#)),
        Entry::User { v: Some(raw("2")) },
    ]);
    let memory = &folded.memory;
    assert_eq!(memory.call, "c");
    assert_eq!(memory.steps["fetch"], raw("[1]"));
    assert_eq!(memory.asked["depth"], "d");
    assert_eq!(memory.answers["depth"], raw(r#"{"action":"accept"}"#));
    assert_eq!(memory.user, Some(raw("2")));
    assert!(folded.open.is_empty());
    let mut forgotten = folded.clone();
    forgotten.add(&Entry::User { v: None }).unwrap();
    assert_eq!(forgotten.memory.user, None);
}

#[test]
fn a_key_of_the_client_never_stands_for_two_questions() {
    let mut folded = folded(&[]);
    assert_eq!(folded.wire_for("a", "d"), ("a".into(), true));
    folded.add(&ask("a", "a", "d")).unwrap();
    assert_eq!(folded.wire_for("a", "d"), ("a".into(), false), "it is still open");
    assert_eq!(folded.wire_for("a", "other"), ("a#2".into(), true), "it asks something else");
    folded.add(&ask("a", "a#2", "other")).unwrap();
    assert_eq!(folded.open.len(), 1, "the first is no longer asked");
    folded.add(&Entry::answer("a#2", raw("1"))).unwrap();
    assert_eq!(folded.wire_for("a", "other"), ("a#3".into(), true), "it was answered");
    folded.add(&Entry::Unfit { key: "a".into() }).unwrap();
    assert!(folded.memory.answers.is_empty() && folded.memory.asked_twice.contains("a"));
    folded.add(&ask("a", "a#3", "other")).unwrap();
    folded.add(&Entry::Closed { wire: "a#3".into() }).unwrap();
    assert!(folded.open.is_empty());
    assert_eq!(folded.wire_for("a", "other"), ("a#4".into(), true), "an answer may have been thrown away");
    assert_eq!(folded.wire_for("b", "other"), ("b".into(), true));
}

#[test]
fn an_answer_belongs_to_the_question_that_has_its_key() {
    let mut folded = folded(&[ask("a", "a", "d"), ask("b", "b", "d")]);
    folded.add(&Entry::refusal("b", raw(r#"{"code":-1,"message":"no"}"#))).unwrap();
    assert_eq!(folded.refused["b"], raw(r#"{"code":-1,"message":"no"}"#));
    assert!(!folded.memory.answers.contains_key("b"));
    folded.add(&ask("a", "a#2", "changed")).unwrap();
    folded.add(&Entry::answer("a", raw("1"))).unwrap();
    assert!(folded.memory.answers.is_empty(), "it answers what is no longer asked");
    folded.add(&Entry::answer("a#2", raw("2"))).unwrap();
    assert_eq!(folded.memory.answers["a"], raw("2"));
    folded.add(&ask("b", "b#2", "d")).unwrap();
    assert!(folded.refused.is_empty(), "it was asked again");
}

#[test]
fn steps_that_began_and_timers_are_known() {
    let folded = folded(&[
        Entry::Begun { name: "pay".into() },
        Entry::Begun { name: "send".into() },
        Entry::step("pay", raw("1")),
        Entry::Timer { name: "cool down".into(), until: 9 },
    ]);
    assert_eq!(folded.begun.iter().collect::<Vec<_>>(), ["send"]);
    assert_eq!(folded.timers["cool down"], 9);
}

#[test]
fn the_first_result_of_a_step_counts() {
    let folded = folded(&[
        Entry::Begun { name: "pay".into() },
        Entry::step("pay", raw("1")),
        Entry::step("fetch", raw("2")),
        Entry::step("pay", raw("3")),
    ]);
    assert_eq!(folded.memory.steps["pay"], raw("1"));
    assert_eq!(folded.memory.steps["fetch"], raw("2"));
    assert!(folded.begun.is_empty());
}

#[test]
fn a_journal_that_contradicts_itself_is_not_run() {
    let timer = || Entry::Timer { name: "t".into(), until: 1 };
    for (entries, why) in [
        (vec![timer(), timer()], "has the timer \"t\" twice"),
        (vec![ask("a", "a", "d"), ask("a", "a", "e")], "has the ask \"a\" twice"),
        (vec![ask("a", "a#3", "d"), ask("a", "a#2", "d")], "has the ask \"a#2\" twice"),
        (vec![ask("a", "b", "d")], "under the key \"b\", which is not its own"),
        (vec![ask("a", "a#1", "d")], "under the key \"a#1\", which is not its own"),
        (vec![ask("a", "a#02", "d")], "under the key \"a#02\", which is not its own"),
        (vec![Entry::answer("a", raw("1"))], "an answer to \"a\", which was never asked"),
        (
            vec![ask("a", "a", "d"), Entry::answer("a#2", raw("1"))],
            "an answer to \"a#2\", which was never asked",
        ),
    ] {
        let error = fold("c", &entries).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn what_rounds_have_left_becomes_the_first_entries() {
    let memory: Memory = serde_json::from_value(json!({
        "r": 2, "i": "c", "q": {"who": "d", "open": "e"}, "a": {"who": {"action": "accept"}, "read": 1},
        "s": {"fetch": 1}, "t": ["who"], "u": {"page": 1},
    }))
    .unwrap();
    let folded = fold("c", &unfold(&memory)).unwrap();
    assert_eq!(folded.memory.answers, memory.answers);
    assert_eq!(folded.memory.steps, memory.steps);
    assert_eq!(folded.memory.asked_twice, memory.asked_twice);
    assert_eq!(folded.memory.user, memory.user);
    assert_eq!(folded.memory.asked["who"], "d");
    assert_eq!(folded.memory.asked["read"], "", "it fits no question that is asked now");
    assert_eq!(folded.wire_for("open", "e"), ("open".into(), true));
    assert_eq!(unfold(&Memory::default()), []);
}

#[test]
fn keys_leave_room_for_the_numbers() {
    assert_eq!(check_key("depth"), Ok(()));
    for key in ["", "a#2", "#", &"a".repeat(257)] {
        assert!(check_key(key).is_err(), "{key}");
    }
    assert_eq!((wire_key("a", 1), wire_key("a", 2)), ("a".to_owned(), "a#2".to_owned()));
}
