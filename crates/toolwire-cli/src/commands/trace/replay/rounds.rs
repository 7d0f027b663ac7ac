//! One request, with as many rounds as the server needs.

use serde_json::{Map, Value, json};
use toolwire::{
    Client,
    client::{ClientLimits, ErrorKind},
};

use super::{SharedBook, look_up};
use crate::{failure::Result, trace::asks_for_input};

/// Sends a request, answers what comes back from the book, and gives what it ends with.
///
/// # Errors
/// When there is no answer at all, because the connection is gone.
pub(super) async fn ask(
    client: &Client,
    method: &str,
    mut params: Map<String, Value>,
    book: &SharedBook,
) -> Result<Value> {
    let rounds = ClientLimits::default().rounds;
    for _ in 0..=rounds {
        let result = match client.raw().request(method, &params).await {
            Ok(result) => result,
            Err(error) => {
                return match error.rpc() {
                    Some(rpc) => Ok(json!({ "error": rpc })),
                    None if error.kind() == ErrorKind::Timeout => Ok(json!({ "failed": error.to_string() })),
                    None => Err(error.into()),
                };
            }
        };
        let result: Value = result.decode().unwrap_or_default();
        if !asks_for_input(&result) {
            return Ok(json!({ "result": result }));
        }
        let mut answers = Map::new();
        for (key, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
            let asked = request.get("method").and_then(Value::as_str).unwrap_or_default();
            match look_up(book, asked, request.get("params").unwrap_or(&Value::Null)) {
                Some(answer) => answers.insert(key.clone(), answer),
                None => return Ok(json!({ "unanswered": request })),
            };
        }
        params.remove("inputResponses");
        if !answers.is_empty() {
            params.insert("inputResponses".to_owned(), answers.into());
        }
        match result.get("requestState") {
            Some(state) => params.insert("requestState".to_owned(), state.clone()),
            None => params.remove("requestState"),
        };
    }
    Ok(json!({ "failed": format!("the server asked for input {} times in a row", rounds + 1) }))
}
