//! Reading a trace. What cannot be read does not hide the rest.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use serde::Serialize;
use serde_json::Value;

use super::{Direction, FORMAT, Header, Line, MAX_BYTES, Side};
use crate::failure::{Code, Explain, Failure, Result};

/// How many problems are told; the rest is counted.
const MAX_PROBLEMS: usize = 20;

/// A trace that was read.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) header: Header,
    pub(crate) events: Vec<Event>,
    /// The lines that could not be used.
    pub(crate) problems: Vec<Problem>,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) struct Event {
    /// Microseconds since the start.
    pub(crate) micros: u64,
    pub(crate) server: String,
    pub(crate) what: What,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum What {
    Message(Side, Value),
    Failed(String),
    Closed(String),
}

/// A line that could not be used.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    pub(crate) why: String,
}

impl Trace {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read at all, or is no trace.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = File::open(path).context(&shown)?;
        let metadata = file.metadata().context(&shown)?;
        if metadata.is_dir() {
            return Err(no_trace(&shown, "it is a folder"));
        }
        if metadata.len() > MAX_BYTES {
            return Err(no_trace(&shown, &format!("it is larger than {} MiB", MAX_BYTES >> 20)));
        }
        Self::parse(BufReader::new(file)).map_err(|error| match error {
            NoTrace::Io(error) => Failure::from(error).context(&shown),
            NoTrace::Other(why) => no_trace(&shown, &why),
        })
    }

    fn parse(mut from: impl BufRead) -> std::result::Result<Self, NoTrace> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        let header: Header = serde_json::from_slice(&line)
            .map_err(|_| NoTrace::Other("its first line is not the header of one".to_owned()))?;
        if header.format > FORMAT {
            let text = format!("it has format {}, and this program knows {FORMAT}", header.format);
            return Err(NoTrace::Other(text));
        }
        let mut trace = Self { header, events: Vec::new(), problems: Vec::new() };
        let mut more = 0;
        for number in 2.. {
            line.clear();
            if from.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            match event(&line) {
                Ok(None) => {}
                Ok(Some(event)) => trace.events.push(event),
                Err(why) if trace.problems.len() < MAX_PROBLEMS => {
                    trace.problems.push(Problem { line: number, why });
                }
                Err(_) => more += 1,
            }
        }
        if more > 0 {
            let line = trace.problems.last().map_or(0, |last| last.line);
            trace.problems.push(Problem { line, why: format!("and {more} more after this") });
        }
        Ok(trace)
    }
}

/// What happened on a line; nothing on an empty one.
fn event(line: &[u8]) -> std::result::Result<Option<Event>, String> {
    let whole = line.ends_with(b"\n");
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let Line { micros, direction, server, message, text } =
        serde_json::from_slice(line).map_err(|error| broken(&error, whole))?;
    let what = match (direction, message, text) {
        (Direction::Sent, Some(message @ Value::Object(_)), _) => What::Message(Side::Client, message),
        (Direction::Received, Some(message @ Value::Object(_)), _) => What::Message(Side::Server, message),
        (Direction::Closed, _, text) => What::Closed(text.unwrap_or_default()),
        (_, None, Some(text)) => What::Failed(text),
        _ => return Err("there is no message in it".to_owned()),
    };
    Ok(Some(Event { micros, server, what }))
}

/// What is wrong with a line. Its number is known, so only the column is told.
fn broken(error: &serde_json::Error, whole: bool) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    let place = format!("{what} at column {}", error.column());
    if whole { place } else { format!("it ends in the middle: {place}") }
}

/// Why a file is no trace.
#[derive(Debug)]
enum NoTrace {
    Io(std::io::Error),
    Other(String),
}

impl From<std::io::Error> for NoTrace {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

fn no_trace(path: impl std::fmt::Display, why: &str) -> Failure {
    Failure::new(Code::Usage, format!("{path} is not a trace: {why}"))
        .hint("record one with --trace FILE, as in: toolwire tools --trace FILE -- COMMAND")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        r#"{"toolwireTrace":1,"program":"p","started":"s","server":"x","target":"x","transport":"t"}"#;
    const LINE: &str = r#"{"micros":1,"direction":"sent","server":"x","message":{"method":"a"}}"#;

    #[test]
    fn broken_lines_are_told_by_number_and_the_rest_is_used() {
        let text = format!("{HEADER}\n{LINE}\nwhat?\n\n{LINE}\n{{\"micros\":3}}\n{}", &LINE[..40]);
        let trace = Trace::parse(text.as_bytes()).unwrap();
        assert_eq!(trace.events.len(), 2);
        let lines: Vec<_> = trace.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [3, 6, 7]);
        assert!(trace.problems[2].why.starts_with("it ends in the middle"), "{:?}", trace.problems);
    }

    #[test]
    fn problems_are_counted_when_there_are_too_many() {
        let text = format!("{HEADER}\n{}", "x\n".repeat(MAX_PROBLEMS + 5));
        let trace = Trace::parse(text.as_bytes()).unwrap();
        assert_eq!(trace.problems.len(), MAX_PROBLEMS + 1);
        assert_eq!(trace.problems.last().unwrap().why, "and 5 more after this");
    }

    #[test]
    fn other_files_and_newer_formats_are_refused() {
        for text in ["", "{}", "hello\n", &HEADER.replace('1', "2")] {
            assert!(matches!(Trace::parse(text.as_bytes()), Err(NoTrace::Other(_))), "{text}");
        }
    }
}
