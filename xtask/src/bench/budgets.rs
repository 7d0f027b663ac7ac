//! The instructions that each bench may take, and the comparison with those that were counted.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::Measured;

/// The percentage above its budget at which a count is a failure. A new compiler or another C library may cost some of it.
const TOLERANCE: u64 = 10;

/// The percentage above its budget from which on a count is told.
const TOLD: u64 = 3;

/// The percentage by which two benches that cost the same may differ.
const EQUAL: u64 = 1;

/// The lines of `benchmarks/budgets.txt`, in their order.
#[derive(Debug)]
pub(super) struct Budgets(Vec<(String, Budget)>);

#[derive(Debug, PartialEq)]
enum Budget {
    /// At most this number of instructions.
    Most(u64),
    /// As many as another bench.
    Equal(String),
}

impl Budgets {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let path = root.join("benchmarks/budgets.txt");
        let text = fs::read_to_string(&path).map_err(|error| format!("benchmarks/budgets.txt: {error}"))?;
        Self::parse(&text)
    }

    /// Reads one budget per line: the group, the bench, and the instructions or `=` with the group and the name of another
    /// bench. The rest of a line after `#` is a comment.
    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().map(|(index, line)| {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            match words[..] {
                [] => Ok(None),
                [group, bench, count] => match count.replace('_', "").parse() {
                    Ok(count) => Ok(Some((format!("{group} {bench}"), Budget::Most(count)))),
                    Err(_) => Err(format!("benchmarks/budgets.txt:{}: {count:?} is no number", index + 1)),
                },
                [group, bench, "=", other_group, other_bench] => {
                    let other = format!("{other_group} {other_bench}");
                    Ok(Some((format!("{group} {bench}"), Budget::Equal(other))))
                }
                _ => Err(format!(
                    "benchmarks/budgets.txt:{}: neither `GROUP BENCH INSTRUCTIONS` nor `GROUP BENCH = GROUP BENCH`",
                    index + 1
                )),
            }
        });
        let lines: Vec<Option<(String, Budget)>> = lines.collect::<Result<_, _>>()?;
        Ok(Self(lines.into_iter().flatten().collect()))
    }

    /// Returns the budgets that are exceeded, and benches and budgets without each other, one sentence each.
    pub(super) fn violations(&self, counts: &[Measured]) -> Vec<String> {
        let mut violations = Vec::new();
        for (name, count) in counts {
            match find(&self.0, name) {
                None => violations.push(format!("`{name}` has no budget in benchmarks/budgets.txt")),
                Some(Budget::Most(most)) if exceeds(*count, *most, TOLERANCE) => violations.push(format!(
                    "`{name}` takes {count} instructions, {:.1} % more than its budget of {most}",
                    percent(*count, *most)
                )),
                Some(Budget::Most(_)) => {}
                Some(Budget::Equal(other)) => match find(counts, other) {
                    None => violations.push(format!("`{name}` is to equal `{other}`, which is no bench")),
                    Some(&as_many) if exceeds(*count, as_many, EQUAL) || exceeds(as_many, *count, EQUAL) => {
                        violations.push(format!(
                            "`{name}` takes {count} instructions, `{other}` {as_many}: they are to differ by {EQUAL} % \
                             at most"
                        ));
                    }
                    Some(_) => {}
                },
            }
        }
        let unused = self.0.iter().filter(|(name, _)| find(counts, name).is_none());
        violations.extend(unused.map(|(name, _)| format!("the budget of `{name}` belongs to no bench")));
        violations
    }

    /// Returns the benches that are well above their budget, but not yet too far, one sentence each.
    pub(super) fn warnings(&self, counts: &[Measured]) -> Vec<String> {
        let warning = |(name, count): &Measured| match find(&self.0, name)? {
            &Budget::Most(most) if exceeds(*count, most, TOLD) && !exceeds(*count, most, TOLERANCE) => {
                Some(format!(
                    "`{name}` is {:.1} % above its budget; {TOLERANCE} % is a failure",
                    percent(*count, most)
                ))
            }
            _ => None,
        };
        counts.iter().filter_map(warning).collect()
    }

    /// Returns a table with a line for each bench that was measured or has a budget.
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
            let count = find(counts, name).copied();
            let budget = find(&self.0, name).and_then(|budget| match budget {
                Budget::Most(most) => Some(*most),
                Budget::Equal(other) => find(counts, other).copied(),
            });
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

fn find<'a, T>(named: &'a [(String, T)], name: &str) -> Option<&'a T> {
    named.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Returns whether a count is more than this percentage above another.
const fn exceeds(count: u64, other: u64, percentage: u64) -> bool {
    count * 100 > other * (100 + percentage)
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
    fn count_more_than_ten_percent_above_its_budget_is_a_violation() {
        let budgets = Budgets::parse("# all of them\nparse legacy 1_000 # small\n\npipe echo 200\n").unwrap();
        assert!(budgets.violations(&measured(&[("parse legacy", 1100), ("pipe echo", 10)])).is_empty());
        let violations = budgets.violations(&measured(&[("parse legacy", 1101), ("new bench", 1)]));
        assert_eq!(
            violations,
            [
                "`parse legacy` takes 1101 instructions, 10.1 % more than its budget of 1000",
                "`new bench` has no budget in benchmarks/budgets.txt",
                "the budget of `pipe echo` belongs to no bench",
            ]
        );
    }

    #[test]
    fn count_between_three_and_ten_percent_above_its_budget_is_told() {
        let budgets = Budgets::parse("a b 1000\nc d = a b").unwrap();
        let warnings = |count| budgets.warnings(&measured(&[("a b", count), ("c d", 5000)]));
        assert_eq!(warnings(1030), Vec::<String>::new());
        assert_eq!(warnings(1031), ["`a b` is 3.1 % above its budget; 10 % is a failure"]);
        assert_eq!(warnings(1101), Vec::<String>::new());
    }

    #[test]
    fn benches_that_cost_the_same_are_compared_with_each_other() {
        let budgets = Budgets::parse("a b 1000\nc d = a b\n").unwrap();
        let violations = |one, other| budgets.violations(&measured(&[("a b", one), ("c d", other)]));
        for (one, other) in [(500, 505), (505, 500), (1000, 1010)] {
            assert_eq!(violations(one, other), Vec::<String>::new());
        }
        let reason = "`c d` takes 506 instructions, `a b` 500: they are to differ by 1 % at most";
        assert_eq!(violations(500, 506), [reason]);
        assert_eq!(violations(506, 500).len(), 1);
        let unknown = Budgets::parse("c d = x y").unwrap().violations(&measured(&[("c d", 1)]));
        assert_eq!(unknown, ["`c d` is to equal `x y`, which is no bench"]);
        let table = budgets.table(&measured(&[("a b", 500), ("c d", 504)]), &[]);
        assert!(table.contains("+0.8 %"), "{table}");
    }

    #[test]
    fn lines_that_make_no_sense_are_named() {
        assert!(Budgets::parse("parse legacy").unwrap_err().contains(":1: neither"));
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
