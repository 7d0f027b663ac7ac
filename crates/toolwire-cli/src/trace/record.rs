//! Writing a trace while a conversation goes on.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use owo_colors::OwoColorize;
use toolwire::client::Observed;

use super::{Direction, FORMAT, Header, Line, MAX_BYTES};
use crate::{
    failure::{Code, Failure, Result},
    private_file, redact,
    target::Address,
    terminal::{self, Moment},
};

/// How much of a file is looked at to find out whether it is a trace.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// Writes a trace. Clones write into the same one.
#[derive(Clone)]
pub(crate) struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    begun: Instant,
    output: Mutex<Output<Box<dyn Write + Send>>>,
}

struct Output<W> {
    to: W,
    written: u64,
    /// Nothing more is written, and that has been said.
    over: bool,
}

impl Recorder {
    /// Begins a trace of a conversation with the server at an address.
    ///
    /// # Errors
    /// When the file cannot be written, or is there already and is not a trace.
    pub(crate) fn create(path: &Path, name: &str, address: &Address) -> Result<Self> {
        let failed = |error: io::Error| {
            Failure::new(Code::Io, format!("--trace: {} cannot be written: {error}", path.display()))
        };
        if !may_be_overwritten(path).map_err(failed)? {
            let text = format!("--trace: {} is there already and is not a trace", path.display());
            return Err(Failure::new(Code::Usage, text).hint("give another name, or remove it first"));
        }
        let header = Header {
            format: FORMAT,
            program: concat!("toolwire ", env!("CARGO_PKG_VERSION")).to_owned(),
            started: Moment::now().to_second(),
            server: server_name(name, address),
            target: redact::address(address),
            transport: address.transport().to_owned(),
        };
        let mut first = Output { to: Vec::new(), written: 0, over: false };
        first.line(&header).map_err(failed)?;
        let begin = |file: &mut File| file.write_all(&first.to);
        let path = private_file::real(path);
        let file = if path.exists() && !path.is_file() {
            // A device or a pipe has no contents that could be replaced.
            let mut device = OpenOptions::new().write(true).open(&path).map_err(failed)?;
            begin(&mut device).map(|()| device)
        } else {
            private_file::place(&path, begin)
        };
        let recorder = Self::over(&path, Box::new(file.map_err(failed)?));
        recorder.lock().written = first.written;
        Ok(recorder)
    }

    fn over(path: &Path, to: Box<dyn Write + Send>) -> Self {
        let output = Mutex::new(Output { to, written: 0, over: false });
        Self { inner: Arc::new(Inner { path: path.to_owned(), begun: Instant::now(), output }) }
    }

    /// What a client that speaks to this server is to be observed with.
    pub(crate) fn listener(
        &self,
        name: &str,
        address: &Address,
    ) -> impl Fn(Observed) + Send + Sync + 'static + use<> {
        let (recorder, server) = (self.clone(), server_name(name, address));
        move |observed| recorder.note(&server, observed)
    }

    fn note(&self, server: &str, observed: Observed) {
        let message = |bytes: &[u8]| match serde_json::from_slice(bytes) {
            Ok(mut message) => {
                redact::message(&mut message);
                (Some(message), None)
            }
            // What cannot be read cannot be rid of its secrets either.
            Err(error) => (None, Some(format!("a message that cannot be recorded: {error}"))),
        };
        let (direction, (message, text)) = match observed {
            Observed::Sent(bytes) => (Direction::Sent, message(&bytes)),
            Observed::Received(bytes) => (Direction::Received, message(&bytes)),
            Observed::Closed(why) => (Direction::Closed, (None, Some(redact::sentence(&why)))),
            Observed::Failed(why) | Observed::TooLarge(why) => {
                (Direction::Failed, (None, Some(redact::sentence(&why))))
            }
            other => (Direction::Failed, (None, Some(format!("{other:?}")))),
        };
        let mut output = self.lock();
        // Under the lock, so that times never go backwards.
        let micros = u64::try_from(self.inner.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let line = Line { micros, direction, server: server.to_owned(), message, text };
        if output.over {
            return;
        }
        if let Err(error) = output.line(&line) {
            output.over = true;
            drop(output);
            self.give_up(&error);
        }
    }

    /// Says once that the trace is not complete. The command goes on: it is not about the trace.
    fn give_up(&self, error: &io::Error) {
        let path = self.inner.path.display();
        let text = format!("the trace {path} ends here: {error}");
        let text = terminal::plain(&text);
        let _ = writeln!(anstream::stderr(), "{} {text}", "warning:".yellow().bold());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Output<Box<dyn Write + Send>>> {
        self.inner.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Output<W> {
    fn line(&mut self, line: &impl serde::Serialize) -> io::Result<()> {
        let mut text = redact::outgoing(&serde_json::to_string(line)?).into_owned().into_bytes();
        text.push(b'\n');
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.written = self.written.saturating_add(length);
        if self.written > MAX_BYTES {
            return Err(io::Error::other(format!("it would be larger than {} MiB", MAX_BYTES >> 20)));
        }
        // In one piece, so that a program that is killed leaves whole lines behind.
        self.to.write_all(&text)
    }
}

/// What a server is called in a trace. One without a name is called by its address, which may hold secrets.
fn server_name(name: &str, address: &Address) -> String {
    if name == address.to_string() { redact::address(address) } else { name.to_owned() }
}

/// Whether nothing is lost: there is no such file, or an empty one, or a trace, or it is a device.
fn may_be_overwritten(path: &Path) -> io::Result<bool> {
    if !path.is_file() {
        // A folder is found out when it is opened.
        return Ok(true);
    }
    let mut first = Vec::new();
    BufReader::new(File::open(path)?).take(MAX_HEADER_BYTES).read_until(b'\n', &mut first)?;
    Ok(first.is_empty() || serde_json::from_slice::<Header>(&first).is_ok())
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({})", self.inner.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for so many lines, and whether anything was tried after that.
    struct Small(Arc<Mutex<(usize, usize)>>);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.lock().unwrap();
            state.1 += 1;
            if state.0 == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            state.0 -= 1;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_met_once_and_then_left_alone() {
        let state = Arc::new(Mutex::new((2, 0)));
        let recorder = Recorder::over(Path::new("x"), Box::new(Small(Arc::clone(&state))));
        let address = Address::parse("http://x/").unwrap();
        let listener = recorder.listener("x", &address);
        for _ in 0..10 {
            listener(Observed::Closed("over".to_owned()));
        }
        assert_eq!(*state.lock().unwrap(), (0, 3));
    }

    #[test]
    fn a_trace_does_not_grow_without_end() {
        let state = Arc::new(Mutex::new((usize::MAX, 0)));
        let recorder = Recorder::over(Path::new("x"), Box::new(Small(Arc::clone(&state))));
        recorder.lock().written = MAX_BYTES - 10;
        recorder.note("x", Observed::Closed("over".to_owned()));
        assert!(recorder.lock().over);
        assert_eq!(state.lock().unwrap().1, 0);
    }
}
