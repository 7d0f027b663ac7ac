//! How many instructions each bench may take, and how what was counted compares.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::Measured;

/// How far a count may be above its budget before it is a failure, in percent: what a new compiler or another C
/// library may change without anybody having done anything.
const TOLERANCE: u64 = 5;

/// The lines of `benchmarks/budgets.txt`, in their order.
#[derive(Debug)]
pub(super) struct Budgets(Vec<Measured>);

impl Budgets {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let path = root.join("benchmarks/budgets.txt");
        let text = fs::read_to_string(&path).map_err(|error| format!("benchmarks/budgets.txt: {error}"))?;
        Self::parse(&text)
    }

    /// One budget per line: the group, the bench and the instructions; what follows a `#` is for people.
    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().map(|(index, line)| {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            match words[..] {
                [] => Ok(None),
                [group, bench, count] => match count.replace('_', "").parse() {
                    Ok(count) => Ok(Some((format!("{group} {bench}"), count))),
                    Err(_) => Err(format!("benchmarks/budgets.txt:{}: {count:?} is no number", index + 1)),
                },
                _ => Err(format!("benchmarks/budgets.txt:{}: not `GROUP BENCH INSTRUCTIONS`", index + 1)),
            }
        });
        let lines: Vec<Option<Measured>> = lines.collect::<Result<_, _>>()?;
        Ok(Self(lines.into_iter().flatten().collect()))
    }

    /// Budgets that are exceeded, and benches and budgets without each other, one sentence each.
    pub(super) fn violations(&self, counts: &[Measured]) -> Vec<String> {
        let mut violations = Vec::new();
        for (name, count) in counts {
            match find(&self.0, name) {
                None => violations.push(format!("`{name}` has no budget in benchmarks/budgets.txt")),
                Some(budget) if *count * 100 > budget * (100 + TOLERANCE) => violations.push(format!(
                    "`{name}` takes {count} instructions, {:.1} % more than its budget of {budget}",
                    percent(*count, budget)
                )),
                Some(_) => {}
            }
        }
        let unused = self.0.iter().filter(|(name, _)| find(counts, name).is_none());
        violations.extend(unused.map(|(name, _)| format!("the budget of `{name}` belongs to no bench")));
        violations
    }

    /// Everything that was measured, a line for each bench.
    pub(super) fn table(&self, counts: &[Measured], times: &[Measured]) -> String {
        let mut table = format!("{:<42}{:>14}{:>12}{:>8}{:>12}\n", "", "instructions", "budget", "", "time");
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let measured = counts.iter().chain(times).map(|(name, _)| name.as_str());
        for name in measured {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let (count, budget) = (find(counts, name), find(&self.0, name));
            let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            let change = count.zip(budget).map(|(count, budget)| format!("{:+.1} %", percent(count, budget)));
            let time = find(times, name).map(|time| format!("{time} ns"));
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "{name:<42}{:>14}{:>12}{:>8}{:>12}",
                number(count),
                number(budget),
                change.unwrap_or_default(),
                time.unwrap_or_default()
            );
        }
        table
    }
}

fn find(measured: &[Measured], name: &str) -> Option<u64> {
    measured.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

#[expect(clippy::cast_precision_loss, reason = "only shown, with one digit")]
fn percent(count: u64, budget: u64) -> f64 {
    (count as f64 / budget.max(1) as f64 - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(entries: &[(&str, u64)]) -> Vec<Measured> {
        entries.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn only_what_is_more_than_five_percent_above_is_a_violation() {
        let budgets = Budgets::parse("# all of them\nparse legacy 1_000 # small\n\npipe echo 200\n").unwrap();
        assert!(budgets.violations(&measured(&[("parse legacy", 1050), ("pipe echo", 10)])).is_empty());
        let violations = budgets.violations(&measured(&[("parse legacy", 1051), ("new bench", 1)]));
        assert_eq!(
            violations,
            [
                "`parse legacy` takes 1051 instructions, 5.1 % more than its budget of 1000",
                "`new bench` has no budget in benchmarks/budgets.txt",
                "the budget of `pipe echo` belongs to no bench",
            ]
        );
    }

    #[test]
    fn lines_that_make_no_sense_are_named() {
        assert!(Budgets::parse("parse legacy").unwrap_err().contains(":1: not"));
        assert!(Budgets::parse("\nparse legacy many").unwrap_err().contains(":2: \"many\""));
    }

    #[test]
    fn everything_measured_is_in_the_table() {
        let budgets = Budgets::parse("a b 100").unwrap();
        let table = budgets.table(&measured(&[("a b", 110), ("c d", 7)]), &measured(&[("c d", 5)]));
        assert!(table.contains("+10.0 %"), "{table}");
        assert!(table.lines().any(|line| line.starts_with("c d") && line.ends_with("5 ns")), "{table}");
    }
}
