//! What a handler can rely on when its work outlives its request.

use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::{Instant, sleep};
use toolwire_protocol::RawJson;

use super::AskError;
use crate::Context;

/// From how long on a task that sleeps gives its place to another one.
const WORTH_PARKING: Duration = Duration::from_secs(60);

impl Context {
    /// Sleeps. A task that sleeps for a minute or longer takes no place and no memory meanwhile, and goes on in time
    /// wherever the server runs then; it counts from the first time that the handler came here. In a call that is not a
    /// task it is a plain wait, within the time that a handler has.
    ///
    /// A name stands for one wait of a run, as that of a step does.
    ///
    /// # Errors
    /// When the name was used before in this run, or a task would sleep for longer than the limit
    /// [`task_ttl`](crate::Limits::task_ttl).
    pub async fn sleep(&self, name: &str, time: Duration) -> Result<(), AskError> {
        let most = self.server().limits().task_ttl;
        if self.task_run().is_some() && time > most {
            return Err(AskError::Limit(format!(
                "a task cannot sleep for longer than the limit task_ttl ({} s)",
                most.as_secs()
            )));
        }
        let now = self.now_ms();
        let until = self.journal().sleep_until(name, || now.saturating_add(millis(time)))?;
        let _sleeping = Sleeping { cx: self, name };
        let left = || Duration::from_millis(until.saturating_sub(self.now_ms()));
        let mut timer = Box::pin(sleep(left()));
        poll_fn(|task| {
            loop {
                // A call may become a task while it sleeps, so this is looked at each time.
                if let Some(run) = self.task_run() {
                    let left = left();
                    if left.is_zero() {
                        return Poll::Ready(());
                    }
                    self.journal().sleeps(name, until, left >= WORTH_PARKING && !run.is_live());
                }
                std::task::ready!(timer.as_mut().poll(task));
                if self.task_run().is_none() {
                    return Poll::Ready(());
                }
                // The clock of the store and ours need not agree on how long that was.
                timer.as_mut().reset(Instant::now() + left());
            }
        })
        .await;
        // A round that is run again need not wait again.
        if self.task_run().is_none()
            && let Ok(until) = RawJson::of(&until)
        {
            self.journal().slept(name, until);
        }
        Ok(())
    }

    /// How often this task was begun without anything being recorded, this time included: 1 unless a process was lost. 1
    /// in a call that is not a task.
    pub fn attempt(&self) -> u32 {
        self.task_run().map_or(1, |run| run.attempt())
    }

    /// A number that grows each time the task is taken over by another run. Whoever takes only what comes with the highest
    /// number seen so far is safe from a run that was thought dead and is not. `None` in a call that is not a task.
    pub fn fence(&self) -> Option<u64> {
        self.task_run().map(|run| run.fence())
    }

    /// The time that timers are kept by: the store's where there is one.
    fn now_ms(&self) -> u64 {
        match self.task_run() {
            Some(run) => run.now_ms(),
            None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis),
        }
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

/// A wait that is under way.
struct Sleeping<'a> {
    cx: &'a Context,
    name: &'a str,
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.cx.journal().woke_up(self.name);
    }
}
