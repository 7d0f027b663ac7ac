//! Everything that is shown to anybody: logs of all levels and targets, panics, and what a test adds.

use std::{
    error::Error,
    fmt::{self, Debug, Write as _},
    panic,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

static SHOWN: Mutex<String> = Mutex::new(String::new());

fn shown() -> MutexGuard<'static, String> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens to everything, from now on and for the whole process.
pub(crate) fn listen() {
    tracing::subscriber::set_global_default(Recorder).unwrap();
    log::set_logger(&Recorder).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        writeln!(shown(), "PANIC {panicked} {panicked:?}").unwrap();
        before(panicked);
    }));
}

/// Adds what a value shows of itself.
pub(crate) fn show(what: &str, value: &impl Debug) {
    writeln!(shown(), "DEBUG {what} {value:?} {value:#?}").unwrap();
}

/// Adds a text that somebody gets to see.
pub(crate) fn say(what: &str, text: &impl fmt::Display) {
    writeln!(shown(), "TEXT {what} {text}").unwrap();
}

/// Adds an error, and everything behind it, both for people and for programmers.
pub(crate) fn fail(what: &str, error: &(dyn Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        writeln!(shown(), "ERROR {what} {error} {error:?} {error:#?}").unwrap();
        next = error.source();
    }
}

/// What was shown since this was last asked.
pub(crate) fn take() -> String {
    std::mem::take(&mut *shown())
}

struct Recorder;

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Recorder {
    fn note(metadata: &Metadata<'_>, visit: impl FnOnce(&mut Fields<'_>)) {
        // What is logged is put together first: showing a value may log something itself.
        let mut line = format!("LOG {} {} {}", metadata.level(), metadata.target(), metadata.name());
        visit(&mut Fields(&mut line));
        writeln!(shown(), "{line}").unwrap();
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Self::note(span.metadata(), |fields| span.record(fields));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = String::from("LOG");
        values.record(&mut Fields(&mut line));
        writeln!(shown(), "{line}").unwrap();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        Self::note(event.metadata(), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl log::Log for Recorder {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("LOG {} {} {}", record.level(), record.target(), record.args());
        writeln!(shown(), "{line}").unwrap();
    }

    fn flush(&self) {}
}
