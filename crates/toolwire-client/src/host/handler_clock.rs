//! Measures how long handlers of this client have been running.
//!
//! A server that is called may ask a person before it answers. That time is not the server's, so the
//! timeouts of calls leave it out. Where it is known which call a handler runs for, only the clock of that call stands
//! still: the others have nothing to do with it.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use tokio::time::Instant;
use toolwire_protocol::RequestId;

use crate::lock::lock;

/// How many calls have a clock of their own. Nobody says when a call is over: the oldest ones are forgotten for which no
/// handler runs.
const MAX_CALLS: usize = 64;

/// The id of a call of this client, which are all numbers.
pub(crate) type CallNumber = i64;

/// The number of a call; `None` for ids that this client has not given.
pub(crate) const fn call_number(id: &RequestId) -> Option<CallNumber> {
    match id {
        RequestId::Num(number) => Some(*number),
        RequestId::Str(_) => None,
    }
}

#[derive(Debug, Default)]
pub(crate) struct HandlerClock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// All handlers, whatever they run for.
    all: Meter,
    /// The handlers that may run for any call.
    any: Meter,
    /// For each call that a handler has run for: those, and the ones that run for any.
    calls: BTreeMap<CallNumber, CallMeter>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// How many handlers run.
    running: usize,
    /// Since when at least one does.
    since: Option<Instant>,
    /// The time of earlier ones.
    total: Duration,
}

#[derive(Debug)]
struct CallMeter {
    meter: Meter,
    /// How many of the handlers run for this call alone.
    own: usize,
}

/// A handler runs as long as this lives.
#[derive(Debug)]
pub(crate) struct HandlerRunning<'a> {
    clock: &'a HandlerClock,
    call: Option<CallNumber>,
}

impl HandlerClock {
    /// A handler begins to run, for this call if that is known.
    pub(crate) fn begin(&self, call: Option<CallNumber>) -> HandlerRunning<'_> {
        self.start(call);
        HandlerRunning { clock: self, call }
    }

    /// Something begins that has to be ended by [`end`](Self::end), with the same call.
    pub(crate) fn start(&self, call: Option<CallNumber>) {
        let mut state = lock(&self.0);
        state.all.start();
        let Some(call) = call else {
            state.each(Meter::start);
            return;
        };
        state.make_room();
        // What ran for any call until now was left out for this one as well.
        let meter = state.any;
        let call = state.calls.entry(call).or_insert(CallMeter { meter, own: 0 });
        call.own += 1;
        call.meter.start();
    }

    pub(crate) fn end(&self, call: Option<CallNumber>) {
        let mut state = lock(&self.0);
        state.all.end();
        let Some(call) = call else {
            state.each(Meter::end);
            return;
        };
        if let Some(call) = state.calls.get_mut(&call)
            && call.own > 0
        {
            call.own -= 1;
            call.meter.end();
        }
    }

    /// For how long at least one handler has been running, all in all, for whatever call.
    pub(crate) fn time_of_all(&self) -> Duration {
        lock(&self.0).all.time()
    }

    /// For how long at least one handler has been running that counts for this call, all in all.
    pub(crate) fn time(&self, call: CallNumber) -> Duration {
        let state = lock(&self.0);
        if state.calls.is_empty() {
            return state.any.time();
        }
        state.calls.get(&call).map_or(&state.any, |call| &call.meter).time()
    }
}

impl State {
    fn make_room(&mut self) {
        while self.calls.len() >= MAX_CALLS {
            let idle = self.calls.iter().find(|(_, call)| call.own == 0).map(|(number, _)| *number);
            // Only so many handlers run at once.
            let Some(idle) = idle else { return };
            self.calls.remove(&idle);
        }
    }

    fn each(&mut self, change: fn(&mut Meter)) {
        change(&mut self.any);
        self.calls.values_mut().for_each(|call| change(&mut call.meter));
    }
}

impl Meter {
    fn start(&mut self) {
        self.running += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
        if self.running == 0
            && let Some(since) = self.since.take()
        {
            self.total += since.elapsed();
        }
    }

    fn time(&self) -> Duration {
        self.total + self.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for HandlerRunning<'_> {
    fn drop(&mut self) {
        self.clock.end(self.call);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn overlapping_handlers_count_once() {
        let clock = HandlerClock::default();
        let any = 1;
        advance(SECOND).await;
        let first = clock.begin(None);
        advance(SECOND).await;
        let other = clock.begin(None);
        advance(SECOND).await;
        drop(first);
        assert_eq!(clock.time(any), 2 * SECOND);
        advance(SECOND).await;
        drop(other);
        advance(SECOND).await;
        assert_eq!(clock.time(any), 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_of_one_call_stops_no_other_clock() {
        let clock = HandlerClock::default();
        let (one, other) = (1, 2);
        let times = || [clock.time(one), clock.time(other)].map(|time| time.as_secs());
        let before = clock.begin(None);
        advance(SECOND).await;
        let own = clock.begin(Some(one));
        advance(SECOND).await;
        drop(before);
        advance(SECOND).await;
        assert_eq!(times(), [3, 2]);
        let any = clock.begin(None);
        advance(SECOND).await;
        drop((own, any));
        advance(SECOND).await;
        assert_eq!(times(), [4, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_over_leave_little_behind() {
        let clock = HandlerClock::default();
        let running = clock.begin(Some(0));
        for call in 1..1000 {
            drop(clock.begin(Some(call)));
        }
        let kept: Vec<_> = lock(&clock.0).calls.keys().copied().collect();
        assert_eq!(kept.len(), MAX_CALLS);
        assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&999)));
        drop(running);
    }
}
