//! How the tour looks: 80 columns, with the times of both eras in the last two.
//!
//! Colours have meanings and say nothing that the words do not: what was asked is cyan, what came back green,
//! an answer that is an error yellow, everything beside the point dim.

use std::{
    fmt::Display,
    io::{self, Write},
    time::Duration,
};

use owo_colors::{OwoColorize, Style};

use super::tap::Direction;
use crate::terminal::wrapped;

/// The whole width.
const WIDTH: usize = 80;
/// The width of one column of times.
const TIME: usize = 12;
/// What stands before an answer.
const INDENT: usize = 4;
/// What is left for the text of an answer, with a space before the times.
const TEXT: usize = WIDTH - 2 * TIME - INDENT;

/// What one era answered.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) is_error: bool,
    /// What came while the answer was on its way.
    pub(super) asides: Vec<String>,
}

impl Answer {
    /// An answer that is what was wanted.
    pub(super) fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false, asides: Vec::new() }
    }

    /// Whether both say the same. What comes on the way may be told in fewer words when there is haste.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        (&self.text, self.is_error) == (&other.text, other.is_error)
    }
}

/// The output.
#[derive(Debug)]
pub(super) struct Page<W>(W);

impl<W: Write> Page<W> {
    pub(super) fn new(out: W) -> Self {
        Self(out)
    }

    /// Text across the whole width.
    pub(super) fn paragraph(&mut self, text: &str) -> io::Result<()> {
        for line in wrapped(text, WIDTH) {
            writeln!(self.0, "{line}")?;
        }
        Ok(())
    }

    /// An empty line.
    pub(super) fn gap(&mut self) -> io::Result<()> {
        writeln!(self.0)
    }

    /// A line as it is, in the colour of what can be copied.
    pub(super) fn code(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "  {}", line.cyan())
    }

    /// The title of everything or of a stop.
    pub(super) fn title(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.0, "{}", text.bold())
    }

    /// The heads of the two columns of times.
    pub(super) fn column_heads(&mut self, upper: [&str; 2], lower: [&str; 2]) -> io::Result<()> {
        let edge = WIDTH - 2 * TIME;
        for (heads, style) in [(upper, Style::new().bold()), (lower, Style::new().dimmed())] {
            let [first, second] = heads.map(|head| right(head, TIME));
            writeln!(self.0, "{:edge$}{}{}", "", first.style(style), second.style(style))?;
        }
        Ok(())
    }

    /// What is asked; `note` stands dim behind it.
    pub(super) fn asked(&mut self, call: &str, note: &str) -> io::Result<()> {
        writeln!(self.0, "  {} {}{}", "→".cyan(), call.cyan(), note.dimmed())
    }

    /// Something that came before the answer, or is said beside it.
    pub(super) fn aside(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.0, "  {} {}", "·".dimmed(), text.dimmed())
    }

    /// Messages that went to and fro.
    pub(super) fn exchanged(
        &mut self,
        messages: &[(Direction, String)],
        took: [Option<Duration>; 2],
    ) -> io::Result<()> {
        let mut width = 1;
        write!(self.0, " ")?;
        for (direction, name) in messages {
            let (arrow, style) = match direction {
                Direction::Sent => ("→", Style::new().cyan()),
                Direction::Received => ("←", Style::new().green()),
            };
            write!(self.0, " {} {}", arrow.style(style), name.style(style))?;
            width += " → ".chars().count() + name.chars().count();
        }
        let pad = (WIDTH - 2 * TIME).saturating_sub(width);
        writeln!(self.0, "{:pad$}{}", "", times(took).dimmed())
    }

    /// What came back, and how long each era took.
    pub(super) fn answered(&mut self, answer: &Answer, took: [Option<Duration>; 2]) -> io::Result<()> {
        let (style, text) = if answer.is_error {
            (Style::new().yellow(), format!("isError: {}", answer.text))
        } else {
            (Style::new().green(), answer.text.clone())
        };
        let mut sign = "←";
        let mut times = Some(times(took));
        for line in wrapped(&text, TEXT) {
            let pad = TEXT.saturating_sub(line.chars().count());
            write!(self.0, "  {} {}", sign.style(style), line.style(style))?;
            match times.take() {
                Some(times) => writeln!(self.0, "{:pad$}{}", "", times.dimmed())?,
                None => writeln!(self.0)?,
            }
            sign = " ";
        }
        Ok(())
    }

    /// Makes sure that everything can be seen.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A duration for people: three digits at most.
pub(super) fn duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    let (whole, tenths, unit) = match micros {
        0..1_000 => return format!("{micros} µs"),
        1_000..1_000_000 => (micros / 1_000, micros % 1_000 / 100, "ms"),
        _ => (micros / 1_000_000, micros % 1_000_000 / 100_000, "s"),
    };
    if whole < 10 { format!("{whole}.{tenths} {unit}") } else { format!("{whole} {unit}") }
}

/// Both columns of times; an era that did not take part leaves its column empty.
fn times(took: [Option<Duration>; 2]) -> String {
    let columns = took.map(|took| right(&took.map_or_else(String::new, duration), TIME)).concat();
    columns.trim_end().to_owned()
}

fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (micros, text) in [
            (0, "0 µs"),
            (999, "999 µs"),
            (1_000, "1.0 ms"),
            (9_999, "9.9 ms"),
            (10_000, "10 ms"),
            (999_999, "999 ms"),
            (1_250_000, "1.2 s"),
            (75_000_000, "75 s"),
        ] {
            assert_eq!(duration(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn times_stand_in_their_columns() {
        let mut page = Page::new(anstream::StripStream::new(Vec::new()));
        let took = |micros| Some(Duration::from_micros(micros));
        page.column_heads(["legacy", "modern"], ["2025-11-25", "2026-07-28"]).unwrap();
        page.exchanged(&[(Direction::Sent, "ping".to_owned())], [took(9), None]).unwrap();
        page.answered(&Answer::good("5"), [took(61), took(4800)]).unwrap();
        let long = Answer { is_error: true, ..Answer::good("word ".repeat(12).trim()) };
        page.answered(&long, [None, took(7)]).unwrap();
        let text = String::from_utf8(page.0.into_inner()).unwrap();
        let expected = "
                                                              legacy      modern
                                                          2025-11-25  2026-07-28
  → ping                                                        9 µs
  ← 5                                                          61 µs      4.8 ms
  ← isError: word word word word word word word word                        7 µs
    word word word word
";
        assert_eq!(text, expected.trim_start_matches('\n'));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }
}
