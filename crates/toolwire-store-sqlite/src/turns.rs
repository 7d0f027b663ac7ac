//! Writers of several processes take turns.
//!
//! SQLite has no queue for its write lock: those who wait look now and then whether it is free, and on a busy machine some
//! of them never look at the right moment. So there is a file beside the store's, and only the process that has locked it
//! tries to write next. The system gives that lock to those who wait for it in their order.
//!
//! It is a courtesy: where the file cannot be locked, or a process that was stopped keeps its turn, writers try without.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// How long a writer waits for its turn before it tries without.
const PATIENCE: Duration = Duration::from_secs(3);

/// The turns of one writer.
#[derive(Debug)]
pub(crate) struct Turns {
    path: PathBuf,
    /// `None` before the first turn.
    queue: Option<Queue>,
    is_mine: bool,
}

#[derive(Debug)]
struct Queue {
    file: Arc<File>,
    waiting: Arc<Waiting>,
}

/// State that the writer shares with the thread that waits in its place.
#[derive(Debug, Default)]
struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// The thread waits, and the writer for it.
    Wanted,
    /// The thread still waits, but the writer no longer does.
    GivenUp,
    Granted,
    /// The store is closed.
    Closed,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_all();
    }

    /// Waits as long as the writer does not want a turn, and returns whether it ever will.
    fn is_wanted(&self) -> bool {
        let state =
            self.changed.wait_while(self.lock(), |state| matches!(state, State::Idle | State::Granted));
        *state.unwrap_or_else(PoisonError::into_inner) != State::Closed
    }
}

impl Turns {
    /// Makes the turns of one more writer of this file.
    pub(crate) fn new(file: &Path) -> Self {
        let mut name = OsString::from(file);
        name.push("-turn");
        Self { path: name.into(), queue: None, is_mine: false }
    }

    /// Waits until it is this writer's turn, and returns whether it is. It is until [`leave`](Self::leave).
    pub(crate) fn take(&mut self) -> bool {
        if self.queue.is_none() {
            self.queue = Queue::open(&self.path).ok();
        }
        self.is_mine = self.queue.as_ref().is_some_and(Queue::wait);
        self.is_mine
    }

    /// Leaves the turn to the next one.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.is_mine)
            && let Some(queue) = &self.queue
        {
            // What fails here is undone by the end of the process at the latest, and others try without.
            let _ = queue.file.unlock();
        }
    }
}

impl Queue {
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = Arc::new(options.open(path)?);
        let waiting = Arc::new(Waiting::default());
        let (theirs, mine) = (file.clone(), waiting.clone());
        thread::Builder::new()
            .name("toolwire-sqlite-turns".to_owned())
            .spawn(move || wait_in_line(&theirs, &mine))?;
        Ok(Self { file, waiting })
    }

    fn wait(&self) -> bool {
        // As long as the thread waits for a turn that was given up, there is nothing to be had.
        if *self.waiting.lock() != State::Idle {
            return false;
        }
        match self.file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => return false,
        }
        self.waiting.set(State::Wanted);
        let waits = |state: &mut State| *state == State::Wanted;
        let waited = self.waiting.changed.wait_timeout_while(self.waiting.lock(), PATIENCE, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_granted = *state == State::Granted;
        match *state {
            State::Granted => *state = State::Idle,
            State::Wanted => *state = State::GivenUp,
            _ => {}
        }
        is_granted
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.waiting.set(State::Closed);
    }
}

/// Waits in place of the writer, because a lock cannot be waited for with a limit.
fn wait_in_line(file: &File, waiting: &Waiting) {
    while waiting.is_wanted() {
        let locked = file.lock();
        let mut state = waiting.lock();
        if locked.is_ok() && *state == State::Wanted {
            *state = State::Granted;
        } else {
            let _ = file.unlock();
            if *state != State::Closed {
                *state = State::Idle;
            }
        }
        waiting.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_given_to_the_next_one_and_one_that_is_kept_holds_up_no_one_for_long() {
        let folder = std::env::temp_dir().join(format!("toolwire-turns-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("tasks.db");
        let (mut one, mut other) = (Turns::new(&file), Turns::new(&file));
        assert!(one.take());
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let is_mine = other.take();
                other.leave();
                is_mine
            });
            // Whether the other one waits already or not: it gets its turn.
            one.leave();
            assert!(waits.join().unwrap());
        });
        assert!(one.take());
        assert!(!other.take(), "it gives up");
        assert!(!other.take(), "at once, as long as nothing has changed");
        one.leave();
        while !other.take() {
            thread::yield_now();
        }
        assert!(!one.take());
        drop(other);
        while !one.take() {
            thread::yield_now();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
