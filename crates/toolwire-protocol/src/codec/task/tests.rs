//! One test per cell of the table of tasks.

use serde_json::{Value, json};

use super::*;
use crate::codec::WireResult;
use crate::{
    ErrorCode, RpcError,
    codec::ResultCodec,
    wire::{CallToolResult, Content, Implementation, InputRequests, Meta, TaskStatus, meta::RELATED_TASK},
};

const L: Version = Version::V2025_11_25;
const M: Version = Version::V2026_07_28;

fn state(status: TaskStatus) -> TaskState {
    TaskState {
        id: "t1".into(),
        status,
        is_error: false,
        message: Some("step 2 of 3".into()),
        created_ms: 1_764_066_600_000,
        updated_ms: 1_764_066_601_500,
        expires_ms: 1_764_070_200_000,
        poll_ms: 1000,
        open: InputRequests::new(),
        outcome: None,
    }
}

fn completed(is_error: bool) -> TaskState {
    let mut result = CallToolResult::new([Content::text("7 files")]);
    result.is_error = is_error.then_some(true);
    TaskState { is_error, outcome: Some(TaskOutcome::Result(result)), ..state(TaskStatus::Completed) }
}

fn failed() -> TaskState {
    let error = RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, "no such file");
    TaskState { outcome: Some(TaskOutcome::Error(error)), ..state(TaskStatus::Failed) }
}

fn waiting() -> TaskState {
    let question = json!({"depth": {"method": "elicitation/create", "params": {"mode": "form", "message": "How deep?",
        "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}}});
    TaskState { open: serde_json::from_value(question).unwrap(), ..state(TaskStatus::InputRequired) }
}

fn write<R: WireResult>(version: Version, result: R) -> Value {
    let mut out = Vec::new();
    ResultCodec::new(&Implementation::new("demo", "1.0")).write(version, result, &mut out).unwrap();
    let mut value: Value = serde_json::from_slice(&out).unwrap();
    if let Some(meta) = value.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove("io.modelcontextprotocol/serverInfo");
    }
    value
}

fn shown(version: Version, state: &TaskState) -> Value {
    write(version, state.shown(version))
}

fn notified(version: Version, state: &TaskState, meta: Option<Meta>) -> Value {
    serde_json::to_value(state.notification(version, meta)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_created_task_is_wrapped_in_the_core_and_flat_in_the_extension() {
    for state in [state(TaskStatus::Working), completed(true), failed(), waiting()] {
        let legacy = write(L, CreatedTask::from(state.created()));
        assert_eq!(keys(&legacy), ["task"]);
        assert_eq!(legacy["task"]["status"], "working");
        assert_eq!(
            (&legacy["task"]["ttl"], &legacy["task"]["pollInterval"]),
            (&json!(3_600_000), &json!(1000))
        );
        let modern = write(M, CreatedTask::from(state.created()));
        assert_eq!(modern["resultType"], "task");
        assert_eq!(modern["status"], "working");
        assert_eq!((&modern["ttlMs"], &modern["pollIntervalMs"]), (&json!(3_600_000), &json!(1000)));
        for never in ["result", "error", "inputRequests", "requestState", "task", "ttl", "pollInterval"] {
            assert_eq!(modern.get(never), None, "{never}");
        }
    }
}

#[test]
fn times_are_utc_with_milliseconds_and_never_go_back() {
    let shown = shown(M, &state(TaskStatus::Working));
    assert_eq!(shown["createdAt"], "2025-11-25T10:30:00.000Z");
    assert_eq!(shown["lastUpdatedAt"], "2025-11-25T10:30:01.500Z");
    let odd = TaskState { updated_ms: 0, expires_ms: 0, poll_ms: 0, ..state(TaskStatus::Working) };
    let odd = self::shown(M, &odd);
    assert_eq!(odd["lastUpdatedAt"], odd["createdAt"]);
    assert_eq!((&odd["ttlMs"], &odd["pollIntervalMs"]), (&json!(1), &json!(1)), "integers above 0");
}

#[test]
fn get_says_the_task_alone_in_the_core_and_what_its_status_brings_in_the_extension() {
    let common = ["createdAt", "lastUpdatedAt"];
    for (state, detail) in [
        (state(TaskStatus::Working), None),
        (waiting(), Some("inputRequests")),
        (completed(false), Some("result")),
        (completed(true), Some("result")),
        (failed(), Some("error")),
        (state(TaskStatus::Cancelled), None),
    ] {
        let legacy = shown(L, &state);
        assert_eq!(
            keys(&legacy),
            [&common[..], &["pollInterval", "status", "statusMessage", "taskId", "ttl"]].concat()
        );
        let modern = shown(M, &state);
        assert_eq!(modern["resultType"], "complete");
        for name in ["inputRequests", "result", "error"] {
            assert_eq!(modern.get(name).is_some(), detail == Some(name), "{name} of {:?}", state.status);
        }
        assert_eq!(modern.get("requestState"), None);
        assert_eq!(modern["_meta"].get(RELATED_TASK), None);
    }
}

#[test]
fn a_result_that_is_an_error_fails_the_task_in_the_core_only() {
    for (state, legacy, modern) in [
        (completed(false), "completed", "completed"),
        (completed(true), "failed", "completed"),
        (failed(), "failed", "failed"),
        (state(TaskStatus::Cancelled), "cancelled", "cancelled"),
        (waiting(), "input_required", "input_required"),
        (state(TaskStatus::Working), "working", "working"),
    ] {
        assert_eq!(shown(L, &state)["status"], legacy);
        assert_eq!(shown(M, &state)["status"], modern);
    }
    assert_eq!(shown(M, &completed(true))["result"]["isError"], true);
}

#[test]
fn details_of_the_extension() {
    let asked = shown(M, &waiting());
    assert_eq!(asked["inputRequests"]["depth"]["params"]["message"], "How deep?");
    let mut done = completed(false);
    if let Some(TaskOutcome::Result(result)) = &mut done.outcome {
        relate(&mut result.meta, "t1");
    }
    let result = shown(M, &done)["result"].clone();
    assert_eq!(result, json!({"resultType": "complete", "content": [{"type": "text", "text": "7 files"}]}));
    // The revision has no code of its own for what is missing.
    assert_eq!(shown(M, &failed())["error"], json!({"code": -32602, "message": "no such file"}));
}

#[test]
fn the_message_says_what_matters() {
    let message = |state: &TaskState| shown(L, state)["statusMessage"].clone();
    assert_eq!(message(&state(TaskStatus::Working)), "step 2 of 3");
    assert_eq!(message(&waiting()), "waits for an answer: How deep?");
    assert_eq!(message(&completed(false)), "step 2 of 3");
    assert_eq!(message(&completed(true)), "7 files");
    assert_eq!(message(&failed()), "no such file");
    let silent = TaskState { message: None, ..state(TaskStatus::Working) };
    assert_eq!(message(&silent), Value::Null);
    let long = TaskState { message: Some("ä".repeat(300)), ..state(TaskStatus::Working) };
    assert_eq!(message(&long).as_str().unwrap().chars().count(), 200);
}

#[test]
fn notifications_are_what_get_says_without_the_stamps_of_a_result() {
    let mut meta = Meta::new();
    meta.set_subscription_id(&7.into());
    for state in [state(TaskStatus::Working), waiting(), completed(true), failed()] {
        let mut expected = shown(M, &state);
        expected.as_object_mut().unwrap().remove("resultType");
        expected["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": 7});
        assert_eq!(notified(M, &state, Some(meta.clone())), expected);
        assert_eq!(notified(L, &state, None), shown(L, &state));
    }
}

#[test]
fn the_payload_is_what_the_call_would_have_been_answered_with() {
    assert_eq!(state(TaskStatus::Working).payload(), None);
    assert_eq!(waiting().payload(), None);
    let payload = completed(true).payload().unwrap().unwrap();
    assert_eq!(payload.is_error, Some(true));
    assert_eq!(payload.meta.unwrap().get(RELATED_TASK), Some(&json!({"taskId": "t1"})));
    let error = failed().payload().unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
    let cancelled = TaskState { status: TaskStatus::Cancelled, ..completed(false) };
    assert_eq!(cancelled.payload().unwrap().unwrap_err().code, ErrorCode::INTERNAL_ERROR);
}

#[test]
fn every_question_can_say_which_task_it_belongs_to() {
    for question in [
        json!({"method": "elicitation/create", "params": {"message": "m",
            "requestedSchema": {"type": "object", "properties": {}}}}),
        json!({"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://a"}}),
        json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1, "_meta": {"k": 1}}}),
        json!({"method": "roots/list"}),
    ] {
        let mut question = serde_json::from_value(question).unwrap();
        relate_question(&mut question, "t1");
        let value = serde_json::to_value(&question).unwrap();
        assert_eq!(value["params"]["_meta"][RELATED_TASK], json!({"taskId": "t1"}), "{value}");
    }
}
