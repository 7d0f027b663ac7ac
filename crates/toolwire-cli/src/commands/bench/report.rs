//! Tells what a measurement came to.

use std::time::Duration;

use owo_colors::OwoColorize;
use serde_json::json;
use toolwire::Version;

use super::load::{Load, Measured};
use crate::{
    failure::Result,
    terminal::{Table, Terminal, duration, printable_line},
};

/// The percentiles that are told, in parts of a thousand.
const PERCENTILES: [(&str, u32); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)];

/// How many rows the histogram has.
const ROWS: u32 = 12;

/// How wide the longest bar is.
const WIDTH: u64 = 40;

/// Prints the result.
pub(super) fn print(
    name: &str,
    version: Version,
    load: &Load,
    measured: &Measured,
    terminal: Terminal,
) -> Result<()> {
    if terminal.json {
        return terminal.print_json(&to_json(name, version, load, measured));
    }
    let callers = if load.concurrency == 1 { "caller" } else { "callers" };
    let mut lines = vec![
        format!(
            "{} · {version} · {} · {} {callers}",
            printable_line(name).bold(),
            printable_line(&measured.what),
            load.concurrency
        ),
        String::new(),
        format!(
            "  {} answers per second ({} in {:.1} s), {}",
            format!("{:.0}", rate(measured)).green().bold(),
            measured.latencies.total(),
            measured.took.as_secs_f64(),
            errors(measured.errors),
        ),
        String::new(),
    ];
    for example in &measured.examples {
        lines.push(format!(
            "  {} {}",
            "error:".red().bold(),
            printable_line(example.lines().next().unwrap_or_default())
        ));
    }
    lines.extend(percentiles(measured).map(|line| format!("  {line}")));
    lines.push(String::new());
    lines.extend(histogram(&measured.latencies.histogram(ROWS)));
    terminal.print(lines.join("\n").trim_end())
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown with a few digits")]
fn rate(measured: &Measured) -> f64 {
    measured.latencies.total() as f64 / measured.took.as_secs_f64().max(1e-9)
}

fn errors(count: u64) -> String {
    match count {
        0 => "no errors".to_owned(),
        1 => "1 error".red().to_string(),
        count => format!("{count} errors").red().to_string(),
    }
}

fn percentiles(measured: &Measured) -> Option<String> {
    let (_, max) = measured.latencies.range()?;
    let mut parts: Vec<_> = PERCENTILES
        .iter()
        .filter_map(|(name, share)| Some((*name, measured.latencies.percentile(*share)?)))
        .collect();
    parts.push(("max", max));
    let parts: Vec<_> =
        parts.iter().map(|(name, time)| format!("{} {}", name.dimmed(), duration(*time))).collect();
    Some(parts.join("   "))
}

/// One row per step of time, with a bar of eighths of a block.
fn histogram(rows: &[(Duration, u64)]) -> Vec<String> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default().max(1);
    let mut table = Table::default().right(&[0, 1]);
    for (end, count) in rows {
        let eighths = u128::from(*count) * u128::from(WIDTH) * 8 / u128::from(most);
        // What is there at all is seen.
        let eighths = usize::try_from(eighths).unwrap_or_default().max(usize::from(*count > 0));
        let bar = "█".repeat(eighths / 8) + EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
        table.row([format!("  ≤ {}", duration(*end)), count.to_string(), coloured(&bar)]);
    }
    if rows.is_empty() { Vec::new() } else { vec![table.to_string()] }
}

/// Nothing stays nothing, so that no line ends with a colour.
fn coloured(bar: &str) -> String {
    if bar.is_empty() { String::new() } else { bar.cyan().to_string() }
}

fn to_json(name: &str, version: Version, load: &Load, measured: &Measured) -> serde_json::Value {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let percentile = |share| measured.latencies.percentile(share).map(micros);
    let histogram = measured.latencies.histogram(ROWS);
    let histogram: Vec<_> = histogram
        .into_iter()
        .map(|(end, count)| json!({ "upToMicroseconds": micros(end), "count": count }))
        .collect();
    json!({
        "name": name,
        "version": version,
        "what": measured.what,
        "concurrency": load.concurrency,
        "seconds": measured.took.as_secs_f64(),
        "answers": measured.latencies.total(),
        "errors": measured.errors,
        "examples": measured.examples,
        "perSecond": rate(measured),
        "microseconds": {
            "min": measured.latencies.range().map(|(min, _)| micros(min)),
            "p50": percentile(500),
            "p90": percentile(900),
            "p99": percentile(990),
            "p99.9": percentile(999),
            "max": measured.latencies.range().map(|(_, max)| micros(max)),
        },
        "histogram": histogram,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let rows = [(1, 800), (2, 400), (3, 1), (4, 0)].map(|(ms, count)| (Duration::from_millis(ms), count));
        let text = histogram(&rows).join("\n");
        let text = anstream::adapter::strip_str(&text).to_string();
        let expected = format!(
            "  ≤ 1.00 ms  800  {}\n  ≤ 2.00 ms  400  {}\n  ≤ 3.00 ms    1  ▏\n  ≤ 4.00 ms    0",
            "█".repeat(40),
            "█".repeat(20)
        );
        assert_eq!(text, expected);
    }
}
