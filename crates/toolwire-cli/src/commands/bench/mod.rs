//! `toolwire bench`: measure how fast a server answers.
//!
//! The load is a closed loop: each of the callers waits for its answer before it asks again. So a server that is too
//! slow is asked less often, and the times say how long one caller waits, not how the server does when it drowns.

mod latencies;
mod load;
mod report;

use std::{num::NonZeroU32, time::Duration};

use clap::Args;
use serde_json::{Map, Value};

use crate::{
    failure::{Code, Explain, Failure, Result},
    target::{self, TargetOptions},
    terminal::Terminal,
};
use load::{Load, Work};

/// Measure how fast a server answers
///
/// Without a tool, the server is asked for next to nothing: `ping`, or `server/discover` from 2026-07-28 on.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// [SERVER] [TOOL] [KEY=VALUE]... What to call, and with which arguments
    pub(crate) words: Vec<String>,

    /// The arguments of the tool, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) args: Option<Map<String, Value>>,

    /// How many callers ask at the same time
    #[arg(short, long, value_name = "N", default_value = "8", value_parser = callers)]
    pub(crate) concurrency: u32,

    /// How many seconds to measure
    #[arg(short, long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) duration: Duration,

    /// How many seconds to let the server warm up, unmeasured
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) warmup: Duration,

    /// Stop after this many calls, if that is earlier
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) calls: Option<NonZeroU32>,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// More callers than this only wait for each other.
const MAX_CALLERS: u32 = 1024;

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let words = options.target.words(&options.words, terminal)?;
    let work = work(words.rest, options.args.as_ref())?;
    let load = Load {
        concurrency: options.concurrency,
        duration: options.duration,
        warmup: options.warmup,
        calls: options.calls.map(NonZeroU32::get),
    };
    let client = target::connect(&words.target, target::builder(&words.target)).await?;
    if !terminal.json && terminal.is_live() {
        let all = options.warmup + options.duration;
        terminal.note(format!("asking for up to {} s …", all.as_secs_f64()));
    }
    let measured = load.run(&client, work).await;
    let version = client.version();
    client.close().await?;
    let measured = measured.hint("the first answer decides what counts as correct, so it must not fail")?;
    report::print(&words.target.name, version, &load, &measured, terminal)?;
    if measured.errors > 0 { Err(Failure::told(Code::Unhealthy)) } else { Ok(()) }
}

/// What is asked: a tool with its arguments, or nothing in particular.
fn work(words: &[String], args: Option<&Map<String, Value>>) -> Result<Work> {
    let Some((tool, pairs)) = words.split_first() else {
        return match args {
            None => Ok(Work::Nothing),
            Some(_) => Err(Failure::new(Code::Usage, "arguments are for a tool: which one?")),
        };
    };
    let mut arguments = args.cloned().unwrap_or_default();
    for pair in pairs {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Failure::new(Code::Usage, format!("`{pair}` is no argument; one looks like this: key=value"))
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        arguments.insert(key.to_owned(), value);
    }
    Ok(Work::Tool { name: tool.clone(), arguments })
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

fn callers(text: &str) -> Result<u32, String> {
    let callers = text.parse().ok().filter(|callers| (1..=MAX_CALLERS).contains(callers));
    callers.ok_or_else(|| format!("not a number from 1 to {MAX_CALLERS}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    let seconds = text.parse().ok().filter(|seconds| (0.0..=DAY).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "not a number of seconds of at most a day".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arguments_are_json_where_they_can_be_and_text_otherwise() {
        let given = object(r#"{"a":1,"c":[]}"#).unwrap();
        let Work::Tool { name, arguments } = work(&words(&["add", "a=2", "b=x=y"]), Some(&given)).unwrap()
        else {
            panic!("no tool")
        };
        assert_eq!(
            (name.as_str(), Value::Object(arguments)),
            ("add", json!({ "a": 2, "b": "x=y", "c": [] }))
        );
        assert!(matches!(work(&[], None), Ok(Work::Nothing)));
        assert_eq!(work(&[], Some(&given)).unwrap_err().code(), Code::Usage);
        assert_eq!(work(&words(&["add", "a"]), None).unwrap_err().code(), Code::Usage);
    }

    #[test]
    fn numbers_have_limits() {
        assert!(callers("0").is_err() && callers("1025").is_err() && callers("1024").is_ok());
        assert!(seconds("-1").is_err() && seconds("NaN").is_err() && seconds("1e9").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
    }
}
