//! The tools that answer, report progress and fail.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolwire::{
    Args, Json, Log, Progress, ToolError,
    schemars::{self, JsonSchema},
};

/// The pause between two steps of `count`: long enough for each to be seen, short enough for tests.
const STEP: Duration = Duration::from_millis(5);

/// How far `count` goes: to where a patient person would still wait.
const MAX_COUNT: u8 = 100;

/// The arguments of `add`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Addends {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

/// The result of `add`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Sum {
    /// The first number plus the second.
    sum: i64,
}

pub(super) async fn add(Args(Addends { a, b }): Args<Addends>) -> Result<Json<Sum>, ToolError> {
    let sum =
        a.checked_add(b).ok_or_else(|| ToolError::message("the sum is too large; choose smaller numbers"))?;
    Ok(Json(Sum { sum }))
}

/// The arguments of `echo`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Echo {
    /// What to say.
    text: String,
}

pub(super) async fn echo(Args(echo): Args<Echo>) -> String {
    echo.text
}

pub(super) async fn fail() -> Result<String, ToolError> {
    Err(ToolError::message("this tool always fails; nothing was done"))
}

/// The arguments of `count`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Count {
    /// Where to stop.
    #[schemars(range(min = 1, max = MAX_COUNT))]
    to: u8,
}

pub(super) async fn count(Args(Count { to }): Args<Count>, progress: Progress, log: Log) -> String {
    let log = log.named("count");
    log.info(format!("counting to {to}"));
    for step in 1..=to {
        tokio::time::sleep(STEP).await;
        progress.report_message(f64::from(step), f64::from(to), format!("{step} of {to}"));
        log.info(step);
    }
    format!("counted to {to}")
}
