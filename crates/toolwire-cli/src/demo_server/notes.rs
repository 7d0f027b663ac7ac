//! Notes: state that handlers share, and a catalogue that changes while it is served.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde::Deserialize;
use toolwire::{
    Args, Context, State, ToolError, resource,
    schemars::{self, JsonSchema},
    wire::Content,
};

/// How many notes are kept.
pub(super) const MAX_NOTES: usize = 100;
/// How many characters a note may have.
pub(super) const MAX_NOTE_CHARS: usize = 10_000;

/// How many notes there are. The notes themselves are resources of the server.
#[derive(Clone, Default)]
pub(super) struct Notes(Arc<AtomicUsize>);

impl Notes {
    /// The number of the next note, unless there are too many already.
    fn next(&self) -> Option<usize> {
        let more = |taken: usize| (taken < MAX_NOTES).then_some(taken + 1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().and_then(more)
    }
}

/// The arguments of `add_note`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Note {
    /// What to remember.
    #[schemars(length(min = 1, max = MAX_NOTE_CHARS))]
    text: String,
}

pub(super) async fn add_note(
    Args(Note { text }): Args<Note>,
    State(notes): State<Notes>,
    cx: Context,
) -> toolwire::Result<Vec<Content>> {
    let full = || ToolError::message(format!("there are {MAX_NOTES} notes already, and no more room"));
    let number = notes.next().ok_or_else(full)?;
    let (uri, name) = (format!("demo://notes/{number}"), format!("note {number}"));
    let text: Arc<str> = text.into();
    let note = resource(uri.clone(), move || std::future::ready(text.to_string()));
    // Whoever listens for changes of the list hears of it.
    cx.server().add_resource(note.name(name.clone()).mime_type("text/plain"))?;
    Ok(vec![Content::text(format!("saved as {uri}")), Content::resource_link(uri, name)])
}
