//! The clock of one HTTP/1 connection.
//!
//! The HTTP implementation sets an alarm for the headers of every request and drops it when they are there. With
//! an alarm of the runtime each time, that is 500 instructions and two turns at a lock for a request. Here one
//! alarm serves them all: it is never put back, only asked, when it rings, whether it was meant for now.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};

/// Tells one connection the time. Its clones are the same clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionClock(Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>);

/// A wait for a moment.
#[derive(Debug)]
struct Alarm {
    clock: ConnectionClock,
    moment: tokio::time::Instant,
}

impl Timer for ConnectionClock {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Alarm { clock: self.clone(), moment: tokio::time::Instant::now() + duration })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Alarm { clock: self.clone(), moment: deadline.into() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let moment = self.moment;
        let mut clock = self.clock.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alarm = clock.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(moment)));
        if alarm.deadline() > moment {
            alarm.as_mut().reset(moment);
        }
        loop {
            ready!(alarm.as_mut().poll(task));
            if alarm.deadline() >= moment {
                return Poll::Ready(());
            }
            // It rang for an alarm from before.
            alarm.as_mut().reset(moment);
        }
    }
}

impl Sleep for Alarm {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn alarms_ring_at_their_moment_whatever_was_set_before() {
        let clock = ConnectionClock::default();
        let start = tokio::time::Instant::now();
        let seconds = Duration::from_secs;
        // Set, looked at and dropped, as for headers that come in time.
        for _ in 0..3 {
            let mut alarm = clock.sleep(seconds(30));
            assert!(std::future::poll_fn(|task| Poll::Ready(alarm.as_mut().poll(task))).await.is_pending());
            tokio::time::advance(seconds(10)).await;
        }
        // Later than the one that runs, then earlier, then past already.
        clock.sleep(seconds(30)).await;
        assert_eq!(start.elapsed().as_secs(), 60);
        drop(clock.sleep(seconds(100)));
        clock.sleep(seconds(5)).await;
        assert_eq!(start.elapsed().as_secs(), 65);
        clock.sleep_until(start.into()).await;
        assert_eq!(start.elapsed().as_secs(), 65);
    }
}
