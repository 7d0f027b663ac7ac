//! `cargo xtask simulate`: more seeds of the deterministic simulation than the checks run.

use std::time::{Duration, Instant};

use crate::process::Program;
use crate::workspace::root;

/// Enough for a night; only a run that hangs ever meets it.
const LIMIT: Duration = Duration::from_hours(12);

/// How many seeds, and which is the first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    count: u64,
    from: u64,
}

/// Reads `--seeds N` and `--from S`.
pub(crate) fn parse(arguments: &[String]) -> Result<Seeds, String> {
    let mut seeds = Seeds { count: 20_000, from: 0 };
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(option) = arguments.next() {
        let place = match option {
            "--seeds" => &mut seeds.count,
            "--from" => &mut seeds.from,
            other => return Err(format!("unknown option `{other}`")),
        };
        let number = arguments.next().ok_or_else(|| format!("{option} needs a number"))?;
        *place = number.parse().map_err(|_| format!("{option} needs a number, not `{number}`"))?;
    }
    Ok(seeds)
}

/// Runs them. A seed that fails is shown, with everything that was said.
pub(crate) fn run(seeds: &Seeds) -> Result<bool, String> {
    let start = Instant::now();
    Program::cargo(&root(), LIMIT)
        .args(["test", "-p", "toolwire-testkit", "--all-features", "--test", "simulation"])
        .args(["whatever_happens_nothing_is_left_behind"])
        .env("TOOLWIRE_SEEDS", &seeds.count.to_string())
        .env("TOOLWIRE_SEED_FROM", &seeds.from.to_string())
        .run()?;
    println!("{} seeds from {} on in {:.0} s", seeds.count, seeds.from, start.elapsed().as_secs_f32());
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::{Seeds, parse};

    fn parsed(line: &str) -> Result<Seeds, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn seeds_are_counted_from_somewhere() {
        assert_eq!(parsed(""), Ok(Seeds { count: 20_000, from: 0 }));
        assert_eq!(parsed("--from 7 --seeds 5"), Ok(Seeds { count: 5, from: 7 }));
        assert_eq!(parsed("--seeds"), Err("--seeds needs a number".to_owned()));
        assert_eq!(parsed("--seeds many"), Err("--seeds needs a number, not `many`".to_owned()));
        assert_eq!(parsed("--fast"), Err("unknown option `--fast`".to_owned()));
    }
}
