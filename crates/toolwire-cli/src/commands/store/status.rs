//! `toolwire store status`: whether a store works, and what it promises.

use std::time::{Duration, Instant};

use owo_colors::OwoColorize;
use serde_json::{Value, json};
use toolwire::store::{Store, StoreError, TaskId};

use super::place::{Migrations, Place};
use crate::{
    failure::Result,
    terminal::{Terminal, duration},
};

/// How many answers are measured. Each takes a few seconds at most: that is what stores promise.
const ANSWERS: usize = 10;

/// Where the values begin.
const LABEL: usize = 10;

/// What was found out about a store that works.
struct Status {
    is_durable: bool,
    is_shared: bool,
    /// How long opening it took.
    opened: Duration,
    /// How long its answers took, from the fastest to the slowest.
    answers: [Duration; ANSWERS],
}

/// Runs the command.
pub(super) async fn run(place: &Place, terminal: Terminal) -> Result<()> {
    place.expect_file()?;
    let begun = Instant::now();
    // It only opens with tables that are up to date.
    let store = place.open_with(Migrations::Off).await?;
    let opened = begun.elapsed();
    let answers = measure(&store).await.map_err(|error| place.failed(&error))?;
    let status = Status { is_durable: store.is_durable(), is_shared: store.is_shared(), opened, answers };
    if terminal.json {
        return terminal.print_json(&status.to_json(place.shown()));
    }
    terminal.print(status.lines(place.shown()).join("\n"))
}

/// Asks for a task that there is not, a few times, and for an empty sweep, for which some stores need the right to write.
async fn measure(store: &Store) -> Result<[Duration; ANSWERS], StoreError> {
    let nobody = TaskId::from_bytes([0; TaskId::BYTES]);
    let mut answers = [Duration::ZERO; ANSWERS];
    for answer in &mut answers {
        let begun = Instant::now();
        store.tasks().revs(&[nobody]).await?;
        *answer = begun.elapsed();
    }
    store.tasks().sweep(0).await?;
    answers.sort_unstable();
    Ok(answers)
}

impl Status {
    /// The fastest answer, the one in the middle, and the slowest.
    fn times(&self) -> [Duration; 3] {
        let [min, .., max] = self.answers;
        [min, self.answers.get(ANSWERS / 2).copied().unwrap_or(max), max]
    }

    fn lines(&self, shown: &str) -> Vec<String> {
        let row = |label: &str, value: &str| format!("  {:LABEL$}{value}", label.dimmed());
        let durable = if self.is_durable {
            "yes: what it has acknowledged is there after its restart"
        } else {
            "no: its restart may lose everything"
        };
        let shared =
            if self.is_shared { "yes: several processes can use it" } else { "no: each process has its own" };
        let [min, median, max] = self.times().map(duration);
        vec![
            format!("{} {}", shown.bold(), "works".green().bold()),
            row("durable", durable),
            row("shared", shared),
            row("schema", "up to date"),
            row("open", &duration(self.opened)),
            row("answers", &format!("{min} … {median} … {max}")),
            row("", &format!("the fastest, median and slowest of {ANSWERS} × looking for a task")),
        ]
    }

    fn to_json(&self, shown: &str) -> Value {
        let [min, median, max] = self.times().map(microseconds);
        json!({
            "url": shown,
            "durable": self.is_durable,
            "shared": self.is_shared,
            "schemaUpToDate": true,
            "openMicroseconds": microseconds(self.opened),
            "answers": {
                "count": ANSWERS,
                "minMicroseconds": min,
                "medianMicroseconds": median,
                "maxMicroseconds": max,
            },
        })
    }
}

/// A time for scripts.
fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
