//! From the entries of a journal to what the next run starts with.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt,
};

use super::{Entry, Reply};
use crate::{RawJson, seal::Memory};

/// What the entries of a journal come to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Folded {
    /// What the next run of the handler starts with.
    pub memory: Memory,
    /// The questions that the client refused with an error, by the handler's key. They have no answer in the memory.
    pub refused: BTreeMap<String, RawJson>,
    /// Steps that may run at most once and have begun, without a result: nobody knows whether they happened.
    pub begun: BTreeSet<String>,
    /// Until when each timer runs, in milliseconds since 1970 by the clock of the store.
    pub timers: BTreeMap<String, u64>,
    /// The questions that wait for an answer, by the handler's key.
    pub open: BTreeMap<String, OpenQuestion>,
    /// How many keys of the client each key of the handler has had.
    wires: BTreeMap<String, u32>,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// The key it has for the client.
    pub wire: String,
    /// A digest of what was asked.
    pub digest: String,
    /// The question.
    pub q: Option<RawJson>,
}

impl Folded {
    /// The key for the client under which a question is asked, and whether it is a new one, which has to be written down
    /// as [`Entry::Ask`]. The same question that is still open keeps its key; everything else gets one that has never
    /// been used in this task.
    pub fn wire_for(&self, key: &str, digest: &str) -> (String, bool) {
        match self.open.get(key).filter(|open| open.digest == digest) {
            Some(open) => (open.wire.clone(), false),
            None => (wire_key(key, self.wires.get(key).copied().unwrap_or(0).saturating_add(1)), true),
        }
    }

    /// Adds what was written since. Entries come in the order of the store.
    ///
    /// # Errors
    /// When the journal contradicts itself.
    pub fn add(&mut self, entry: &Entry) -> Result<(), JournalError> {
        match entry {
            Entry::Step { name, v } => {
                self.begun.remove(name);
                // The first result counts: the handler may have gone on with it. A run that does not know of a write
                // which was still under way may have added another one.
                self.memory.steps.entry(name.clone()).or_insert_with(|| v.clone());
            }
            Entry::Begun { name } => {
                self.begun.insert(name.clone());
            }
            Entry::Ask { key, wire, digest, q } => self.ask(key, wire, digest, q.as_ref())?,
            Entry::Answer { wire, reply } => self.answer(wire, reply)?,
            Entry::Unfit { key } => {
                self.memory.answers.remove(key);
                self.refused.remove(key);
                self.memory.asked_twice.insert(key.clone());
            }
            Entry::Closed { wire } => {
                self.open.retain(|_, open| open.wire != *wire);
            }
            Entry::Timer { name, until } => {
                if self.timers.insert(name.clone(), *until).is_some() {
                    return Err(JournalError::Twice("timer", name.clone()));
                }
            }
            Entry::User { v } => self.memory.user.clone_from(v),
        }
        Ok(())
    }

    fn ask(&mut self, key: &str, wire: &str, digest: &str, q: Option<&RawJson>) -> Result<(), JournalError> {
        let number = wire_number(key, wire).ok_or_else(|| JournalError::WrongKey(wire.to_owned()))?;
        let last = self.wires.entry(key.to_owned()).or_default();
        if number <= *last {
            return Err(JournalError::Twice("ask", wire.to_owned()));
        }
        *last = number;
        self.memory.asked.insert(key.to_owned(), digest.to_owned());
        // An answer to what was asked before under this key is not an answer to this.
        self.memory.answers.remove(key);
        self.refused.remove(key);
        let open = OpenQuestion { wire: wire.to_owned(), digest: digest.to_owned(), q: q.cloned() };
        self.open.insert(key.to_owned(), open);
        Ok(())
    }

    fn answer(&mut self, wire: &str, reply: &Reply) -> Result<(), JournalError> {
        let key = self.open.iter().find(|(_, open)| open.wire == wire).map(|(key, _)| key.clone());
        let Some(key) = key else {
            // The question was asked anew, with other words, before the answer to the old one came.
            let asked = split_wire(wire)
                .is_some_and(|(key, number)| self.wires.get(key).is_some_and(|last| number <= *last));
            return if asked { Ok(()) } else { Err(JournalError::NeverAsked(wire.to_owned())) };
        };
        self.open.remove(&key);
        match reply {
            Reply::Value(v) => self.memory.answers.insert(key, v.clone()),
            Reply::Error(error) => self.refused.insert(key, error.clone()),
        };
        Ok(())
    }
}

/// Makes of a journal what the next run of the handler starts with. `call` names the logical call, for idempotency keys.
///
/// # Errors
/// When the journal contradicts itself; it is not run then.
///
/// ```
/// use toolwire_protocol::{RawJson, journal::{Entry, fold}};
///
/// let fetched = Entry::parse(&RawJson::parse(r#"{"k":"step","name":"fetch","v":[1,2]}"#).unwrap()).unwrap();
/// let folded = fold("c1", &[fetched]).unwrap();
/// assert_eq!(folded.memory.steps["fetch"].text(), "[1,2]");
/// ```
pub fn fold(call: &str, entries: &[Entry]) -> Result<Folded, JournalError> {
    let mut folded = Folded::default();
    call.clone_into(&mut folded.memory.call);
    entries.iter().try_for_each(|entry| folded.add(entry))?;
    Ok(folded)
}

/// The journal that a task starts with when its call has been through rounds of questions before.
pub fn unfold(memory: &Memory) -> Vec<Entry> {
    let mut entries: Vec<_> =
        memory.steps.iter().map(|(name, v)| Entry::step(name.clone(), v.clone())).collect();
    entries.extend(memory.asked_twice.iter().map(|key| Entry::Unfit { key: key.clone() }));
    for (key, v) in &memory.answers {
        // What was asked in an earlier round is not known any longer; such an answer is for whoever reads it by its key.
        let (key, digest) = (key.clone(), memory.asked.get(key).cloned().unwrap_or_default());
        entries.push(Entry::Ask { wire: key.clone(), key: key.clone(), digest, q: None });
        entries.push(Entry::answer(key, v.clone()));
    }
    entries.extend(memory.user.clone().map(|v| Entry::User { v: Some(v) }));
    entries
}

/// The key that the `number`th question of a handler's key has for the client: the key itself, then `key#2`.
pub fn wire_key(key: &str, number: u32) -> String {
    if number <= 1 { key.to_owned() } else { format!("{key}#{number}") }
}

/// Whether a handler may use this as the key of a question of a task: `#` is for the keys that are made of it.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    match key {
        "" => Err("the key of a question is empty"),
        key if key.contains('#') => {
            Err("the key of a question contains \"#\", which marks questions that are asked again")
        }
        key if key.len() > MAX_KEY_BYTES => Err("the key of a question is longer than 256 bytes"),
        _ => Ok(()),
    }
}

/// The longest key of a question.
const MAX_KEY_BYTES: usize = 256;

/// The handler's key and the number in a key for the client.
fn split_wire(wire: &str) -> Option<(&str, u32)> {
    match wire.split_once('#') {
        None => Some((wire, 1)),
        Some((key, number)) => {
            let value: u32 = number.parse().ok()?;
            // One way to write each number: "+2" and "02" are none of ours.
            (value >= 2 && value.to_string() == number).then_some((key, value))
        }
    }
}

fn wire_number(key: &str, wire: &str) -> Option<u32> {
    split_wire(wire).and_then(|(of, number)| (of == key).then_some(number))
}

/// A journal that cannot be run on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalError {
    /// An entry cannot be read.
    Unreadable(String),
    /// A name or key was recorded twice.
    Twice(&'static str, String),
    /// A question has a key for the client that does not belong to its own.
    WrongKey(String),
    /// An answer to a question that was never asked.
    NeverAsked(String),
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "the journal of the task cannot be read: {why}"),
            Self::Twice(kind, name) => write!(f, "the journal of the task has the {kind} {name:?} twice"),
            Self::WrongKey(wire) => {
                write!(
                    f,
                    "the journal of the task has a question under the key {wire:?}, which is not its own"
                )
            }
            Self::NeverAsked(wire) => {
                write!(f, "the journal of the task has an answer to {wire:?}, which was never asked")
            }
        }
    }
}

impl Error for JournalError {}
