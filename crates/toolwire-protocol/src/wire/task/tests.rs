use serde_json::{Value, json};

use super::*;
use crate::{
    Version,
    wire::tests::{refusal, round_trip},
};

const LEGACY: &str = r#"{"taskId":"1","status":"working","statusMessage":"m","createdAt":"2025-11-25T10:30:00Z",
    "lastUpdatedAt":"2025-11-25T10:40:00Z","ttl":60000,"pollInterval":5000,"new":1}"#;
const MODERN: &str = r#"{"taskId":"1","status":"working","statusMessage":"m","createdAt":"2025-11-25T10:30:00Z",
    "lastUpdatedAt":"2025-11-25T10:40:00Z","ttlMs":60000,"pollIntervalMs":5000,"new":1}"#;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn both_spellings_are_read_and_each_revision_has_its_own() {
    let task: Task = round_trip(LEGACY);
    assert_eq!(serde_json::from_str::<Task>(MODERN).unwrap(), task);
    assert_eq!((task.ttl, task.poll_interval), (Some(60_000), Some(5_000)));
    assert_eq!(serde_json::to_value(task.in_version(Version::V2025_11_25)).unwrap(), value(LEGACY));
    assert_eq!(serde_json::to_value(task.in_version(Version::V2026_07_28)).unwrap(), value(MODERN));
}

#[test]
fn no_end_of_life_is_written_as_null_and_must_be_said() {
    let task = Task::new("1", TaskStatus::Working, "c", "u", None);
    let legacy = r#"{"taskId":"1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":null}"#;
    assert_eq!(serde_json::to_string(&task).unwrap(), legacy);
    let modern = legacy.replace("ttl", "ttlMs");
    assert_eq!(serde_json::to_string(&task.in_version(Version::V2026_07_28)).unwrap(), modern);
    assert_eq!(serde_json::from_str::<Task>(&modern).unwrap(), task);
    assert!(refusal::<Task>(&legacy.replace(r#","ttl":null"#, "")).contains("missing field `ttl`"));
    assert!(refusal::<Task>(&legacy.replace("null", r#"1,"ttlMs":2"#)).contains("duplicate field `ttl`"));
}

#[test]
fn a_detailed_task_is_flat() {
    let mut expected = value(MODERN);
    for (name, member) in [
        ("resultType", json!("complete")),
        ("_meta", json!({"k": 1})),
        ("inputRequests", json!({"q": {"method": "roots/list"}})),
        ("result", json!({"content": []})),
        ("error", json!({"code": 1, "message": "m"})),
    ] {
        expected[name] = member;
    }
    let task: DetailedTask = serde_json::from_str(&expected.to_string()).unwrap();
    assert_eq!(task.result_type, Some(ResultType::Complete));
    assert_eq!(task.input_requests.as_ref().map(InputRequests::len), Some(1));
    assert_eq!(task.task.extra.get("new"), Some(&json!(1)));
    assert_eq!(serde_json::to_value(task.in_version(Version::V2026_07_28)).unwrap(), expected);
    assert_eq!(round_trip::<DetailedTask>(LEGACY), DetailedTask::new(round_trip(LEGACY)));
    let twice = MODERN.replacen('{', r#"{"result":1,"result":1,"#, 1);
    assert!(refusal::<DetailedTask>(&twice).contains("duplicate field `result`"));
}

#[test]
fn a_created_task_is_wrapped_in_the_core_and_flat_in_the_extension() {
    let wrapped = format!(r#"{{"task":{LEGACY},"_meta":{{"k":1}},"beside":2}}"#);
    let created: CreateTaskResult = round_trip(&wrapped);
    assert_eq!(created.extra.get("beside"), Some(&json!(2)));
    assert_eq!(created.task.extra.get("new"), Some(&json!(1)));

    let mut flat = value(MODERN);
    flat["resultType"] = json!("task");
    let created: CreateTaskResult = serde_json::from_str(&flat.to_string()).unwrap();
    assert_eq!(created.result_type, Some(ResultType::Task));
    assert_eq!(serde_json::to_value(created.in_version(Version::V2026_07_28)).unwrap(), flat);
    let legacy = serde_json::to_value(created.in_version(Version::V2025_11_25)).unwrap();
    assert_eq!(legacy["task"], value(LEGACY));
}

#[test]
fn only_the_last_three_states_are_final() {
    use TaskStatus::{Cancelled, Completed, Failed, InputRequired, Working};
    let states = [Working, InputRequired, Completed, Failed, Cancelled];
    assert_eq!(states.map(TaskStatus::is_terminal), [false, false, true, true, true]);
}
