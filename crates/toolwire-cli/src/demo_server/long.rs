//! The tools whose calls go on as tasks, where a client can follow one: they survive a closed laptop.

use std::time::Duration;

use serde::Deserialize;
use toolwire::{
    Answer, Args, Context, Progress,
    schemars::{self, JsonSchema},
};

/// The pause between two steps: long enough for each to be seen, short enough for tests.
const STEP: Duration = Duration::from_millis(100);

/// The arguments of `report`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Year {
    /// The year that it is about.
    #[schemars(range(min = 1900, max = 2100))]
    year: u16,
}

pub(super) async fn report(
    Args(Year { year }): Args<Year>,
    cx: Context,
    progress: Progress,
) -> toolwire::Result<String> {
    let steps = ["fetched", "sorted", "written"];
    for (index, step) in (1_u8..).zip(steps) {
        // Whoever goes on with it after a crash does not do again what is done.
        cx.once(step, tokio::time::sleep(STEP)).await?;
        progress.report_message(f64::from(index), 3.0, step);
    }
    Ok(format!("the report of {year}: a good year"))
}

/// The arguments of `deploy`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Release {
    /// What is deployed.
    version: String,
}

/// The question of `deploy`.
#[derive(Deserialize, JsonSchema)]
struct Confirm {
    /// Is it to be used by everybody?
    #[schemars(title = "Go live")]
    #[serde(default)]
    live: bool,
}

pub(super) async fn deploy(
    Args(Release { version }): Args<Release>,
    cx: Context,
    progress: Progress,
) -> toolwire::Result<String> {
    cx.once("built", tokio::time::sleep(STEP)).await?;
    progress.report_message(1.0, 2.0, "built");
    let question = format!("{version} is built. Shall it go live?");
    Ok(match cx.elicit::<Confirm>(question).key("live").await? {
        Answer::Accept(Confirm { live: true }) => {
            cx.once("live", tokio::time::sleep(STEP)).await?;
            format!("{version} is live")
        }
        _ => format!("{version} is built and waits"),
    })
}
