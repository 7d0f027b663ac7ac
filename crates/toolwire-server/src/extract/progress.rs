//! Progress notifications: strictly increasing, never more than the reader can take.

use std::sync::{Mutex, PoisonError};

use toolwire_protocol::{Feature, Method, wire::ProgressNotificationParams};

use crate::{Context, tasks::Run};

/// Tells the caller how far the work has come. An extractor.
///
/// Reporting never blocks and never fails. Nothing is sent when the caller did not ask for progress, a
/// value that is not greater than the last one is left out, as the protocol demands, and a caller that
/// reads slowly gets the newest value instead of a backlog.
///
/// ```
/// use toolwire_server::{Progress, tool};
///
/// async fn copy(progress: Progress) -> &'static str {
///     for done in 1..=10 {
///         progress.report(f64::from(done), 10.0);
///     }
///     "copied"
/// }
///
/// let route = tool("copy", copy);
/// ```
#[derive(Clone, Debug)]
pub struct Progress(Context);

/// The last value that was reported, shared by all clones of a request's context.
#[derive(Debug, Default)]
pub(crate) struct ProgressGuard(Mutex<Option<f64>>);

impl Progress {
    pub(crate) fn new(cx: Context) -> Self {
        Self(cx)
    }

    /// Whether the caller wants progress at all.
    pub fn is_wanted(&self) -> bool {
        self.0.0.peek.progress_token().is_some() || self.0.task_run().is_some()
    }

    /// Reports `done`, out of `total` if that is known.
    pub fn report(&self, done: f64, total: impl Into<Option<f64>>) {
        self.send(done, total.into(), None);
    }

    /// Reports `done` with a sentence for the user.
    pub fn report_message(&self, done: f64, total: impl Into<Option<f64>>, message: impl Into<String>) {
        self.send(done, total.into(), Some(message.into()));
    }

    fn report_to(&self, run: &dyn Run, done: f64, total: Option<f64>, message: Option<String>) {
        let mut last = self.0.0.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        if done.is_finite() && last.is_none_or(|last| done > last) {
            *last = Some(done);
            run.report(done, total.filter(|total| total.is_finite()), message);
        }
    }

    fn send(&self, done: f64, total: Option<f64>, message: Option<String>) {
        let exchange = &self.0.0;
        if let Some(run) = self.0.task_run() {
            // It becomes part of the task, which everybody may look at, whether the call wanted progress or not.
            return self.report_to(&*run, done, total, message);
        }
        let Some(token) = exchange.peek.progress_token() else { return };
        // Held while queueing, so that two tasks of one handler cannot swap their values.
        let mut last = exchange.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !done.is_finite() || last.is_some_and(|last| done <= last) {
            tracing::debug!(done, ?last, "progress must increase; this report is left out");
            return;
        }
        let mut params = ProgressNotificationParams::new(token.clone(), done);
        params.total = total.filter(|total| total.is_finite()).map(Into::into);
        params.message = message.filter(|_| exchange.version.has(Feature::ProgressMessage));
        if self.0.outbox().replaceable(Method::Progress, &params) {
            *last = Some(done);
        }
    }
}
