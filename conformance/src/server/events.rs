//! Tools that say something before they return: progress, log messages, changes. And one that hangs up.

use std::time::Duration;

use tokio::time::sleep;
use toolwire::{Context, Extension, Group, Log, Progress, routes, tool};
use toolwire_http::server::LegacyStream;

/// The pause between two messages.
const STEP: Duration = Duration::from_millis(50);

/// How long the work goes on after the stream was closed.
const WORK: Duration = Duration::from_millis(100);

pub(super) fn routes() -> Group {
    routes![
        test_tool_with_progress,
        test_tool_with_logging,
        test_logging_tool,
        test_trigger_tool_change,
        test_trigger_prompt_change,
        test_reconnection
    ]
}

/// Reports progress three times.
#[tool]
async fn test_tool_with_progress(progress: Progress) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        progress.report(done, 100.0);
        sleep(STEP).await;
    }
    "The work is done."
}

/// Sends three log messages.
#[tool]
async fn test_tool_with_logging(log: Log) -> &'static str {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        log.info(message);
        sleep(STEP).await;
    }
    "The work is logged."
}

/// Sends a log message to those who want it.
#[tool]
async fn test_logging_tool(log: Log) -> &'static str {
    log.info("This tool was called.");
    "Logged for whoever wants to know."
}

/// Says that the list of tools has changed.
#[tool]
async fn test_trigger_tool_change(cx: Context) -> &'static str {
    cx.notify().tools_changed();
    "The tools have changed."
}

/// Says that the list of prompts has changed.
#[tool]
async fn test_trigger_prompt_change(cx: Context) -> &'static str {
    cx.notify().prompts_changed();
    "The prompts have changed."
}

/// Closes the stream it was called on, works on, and answers those who come back.
#[tool]
async fn test_reconnection(stream: Option<Extension<LegacyStream>>) -> &'static str {
    if let Some(Extension(stream)) = stream {
        stream.close();
    }
    sleep(WORK).await;
    "Welcome back."
}
