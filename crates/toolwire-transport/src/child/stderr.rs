//! The child's standard error: the last lines are kept, and every line can be seen as it comes.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::handle::Shared;
use crate::lock::lock;

/// How many of the last lines are kept.
pub const STDERR_LINES: usize = 20;

/// How much of one line is kept; the rest of it is dropped.
pub const STDERR_LINE_BYTES: usize = 4 * 1024;

const READ_BYTES: usize = 8 * 1024;

/// The last lines of standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail {
    lines: VecDeque<String>,
}

impl StderrTail {
    pub(super) fn add(&mut self, line: String) {
        if self.lines.len() == STDERR_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}

/// Who wants to see the lines as they come; the same one when a process is started again.
#[derive(Clone)]
pub(super) struct Listener(Arc<Mutex<Tell>>);

type Tell = dyn FnMut(&str) + Send;

impl Listener {
    pub(super) fn new(listener: impl FnMut(&str) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(listener)))
    }

    fn tell(&self, line: &str) {
        (lock(&self.0))(line);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// Reads until the end, for as long as anyone holds the other side open.
pub(super) async fn follow(
    mut stderr: impl AsyncRead + Unpin,
    shared: &Shared,
    mut listener: Option<Listener>,
) {
    let mut splitter = Splitter::default();
    let mut chunk = vec![0; READ_BYTES];
    let mut deliver = |line: String| {
        // A listener that panics is left out from then on; the pipe must be read in any case, or the child
        // would block.
        if let Some(known) = &listener
            && catch_unwind(AssertUnwindSafe(|| known.tell(&line))).is_err()
        {
            listener = None;
        }
        shared.add_stderr(line);
    };
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        splitter.push(chunk.get(..count).unwrap_or_default(), &mut deliver);
    }
    splitter.finish(&mut deliver);
}

/// Splits bytes into lines, of which it keeps only the beginning.
#[derive(Debug, Default)]
struct Splitter {
    line: Vec<u8>,
    started: bool,
}

impl Splitter {
    fn push(&mut self, bytes: &[u8], deliver: &mut impl FnMut(String)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, ended) = match part.split_last() {
                Some((b'\n', content)) => (content, true),
                _ => (part, false),
            };
            let room = STDERR_LINE_BYTES - self.line.len();
            self.line.extend_from_slice(content.get(..room).unwrap_or(content));
            self.started = true;
            if ended {
                self.finish(deliver);
            }
        }
    }

    fn finish(&mut self, deliver: &mut impl FnMut(String)) {
        if std::mem::take(&mut self.started) {
            let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
            deliver(String::from_utf8_lossy(line).into_owned());
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut splitter = Splitter::default();
        for chunk in chunks {
            splitter.push(chunk, &mut |line| lines.push(line));
        }
        splitter.finish(&mut |line| lines.push(line));
        lines
    }

    #[test]
    fn lines_are_found_across_chunks() {
        assert_eq!(split(&[b"on", b"e\r\n\ntw", b"o\nth", b"ree"]), ["one", "", "two", "three"]);
        assert_eq!(split(&[b"\xff\n"]), ["\u{fffd}"]);
        assert!(split(&[]).is_empty());
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let long = vec![b'x'; 3 * STDERR_LINE_BYTES];
        let lines = split(&[&long, &long, b"\nnext\n"]);
        assert_eq!(lines, ["x".repeat(STDERR_LINE_BYTES), "next".to_owned()]);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut tail = StderrTail::default();
        for number in 0..50 {
            tail.add(number.to_string());
        }
        let kept = tail.lines();
        assert_eq!(kept.len(), STDERR_LINES);
        assert_eq!((kept[0].as_str(), kept[STDERR_LINES - 1].as_str()), ("30", "49"));
    }
}
