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
use toolwire::Client;

use crate::{
    arguments, ask,
    commands::call,
    failure::{Code, Explain, Failure, Result},
    session,
    target::{self, Target, TargetOptions},
    terminal::Terminal,
    tools,
};
use load::{Load, Work};

const USAGE: &str = "toolwire bench [SERVER] [TOOL] [KEY=VALUE]... [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
Without a tool, the server is asked for next to nothing: ping, or server/discover from
2026-07-28 on. Arguments are written as for toolwire call.

Examples:
  toolwire bench -- some-server
  toolwire bench github search query=mcp --concurrency 2 --duration 10
  toolwire bench add a=2 b=3 --calls 1000 --json -- some-server";

/// Measure how fast a server answers
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server (not with -- COMMAND), the tool, and its arguments
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    /// All arguments as a JSON object: text, @FILE or -
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,

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
    let words = call::with_server(&options.words, &options.target);
    let words = options.target.words(&words, terminal)?;
    let given = options.args.as_ref().map(|text| arguments::object("--args", text)).transpose()?;
    if given.is_some() && words.rest.is_empty() {
        return Err(Failure::new(Code::Usage, "arguments are for a tool: which one?"));
    }
    let load = Load {
        concurrency: options.concurrency,
        duration: options.duration,
        warmup: options.warmup,
        calls: options.calls.map(NonZeroU32::get),
    };
    let builder = ask::declare(target::unobserved(&words.target));
    let measure = async |client: &Client| {
        let work = work(client, words.rest, given.unwrap_or_default(), &words.target, terminal).await?;
        if terminal.is_live() {
            let all = options.warmup + options.duration;
            terminal.note(format!("asking for up to {} s …", all.as_secs_f64()));
        }
        let measured = load.run(client, work).await;
        Ok((
            client.version(),
            measured.hint("the first answer decides what is correct, so it must not fail")?,
        ))
    };
    let (version, measured) = session::with_client(&words.target, builder, measure).await?;
    if measured.latencies.total() == 0 && measured.errors == 0 {
        let text = format!("no answer was complete within {} s", load.duration.as_secs_f64());
        return Err(Failure::new(Code::Timeout, text).hint("measure for longer: --duration 10"));
    }
    report::print(&words.target.name, version, &load, &measured, terminal)?;
    if measured.errors > 0 { Err(Failure::told(Code::Unhealthy)) } else { Ok(()) }
}

/// What is asked: a tool with its arguments as `toolwire call` has them, or nothing in particular.
async fn work(
    client: &Client,
    words: &[String],
    given: Map<String, Value>,
    target: &Target,
    terminal: Terminal,
) -> Result<Work> {
    let Some((name, assignments)) = words.split_first() else { return Ok(Work::Nothing) };
    let tool = call::find(tools::all(client).await?, name, target)?;
    let schema = Value::Object(tool.input_schema.clone());
    let arguments = arguments::assign(assignments, &schema, given)?;
    call::check_arguments(&tool, &schema, &arguments, terminal)?;
    Ok(Work::Tool { name: tool.name, arguments })
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
    use super::*;

    #[test]
    fn numbers_have_limits() {
        assert!(callers("0").is_err() && callers("1025").is_err() && callers("1024").is_ok());
        assert!(seconds("-1").is_err() && seconds("NaN").is_err() && seconds("1e9").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
    }
}
