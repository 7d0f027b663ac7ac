//! The end of a run: with its task, or before it.

use std::time::Duration;

use toolwire_protocol::{RawJson, RpcError, wire::Content};
use toolwire_store::{Advance, Finish, Outcome, StoreError, TaskNote};

use super::{
    super::{
        run::End,
        vault::{Part, VaultError},
    },
    Driven,
    waiting::Unable,
};
use crate::Reply;

/// The least time for which what has ended is kept, unless its tool says otherwise.
const LEAST_KEEP: Duration = Duration::from_secs(15 * 60);

impl Driven {
    /// Stops the handler; it is either done or will be run again.
    pub(super) fn stop(&mut self) {
        self.work = None;
        self.base.cx.journal().end_run();
    }

    /// Ends the run before its handler is done.
    pub(super) async fn end(mut self, end: End) {
        tracing::debug!(task = ?self.base.run.id, ?end, "a run of a task has ended early");
        // For the writes that are under way, if this is not known yet.
        self.base.run.end(end);
        match end {
            End::Lost => self.stop(),
            End::Shutdown if self.base.live => {
                let error = "the process that ran this task was shut down";
                self.finish(Err(RpcError::internal(error))).await;
            }
            End::Fenced | End::Shutdown => {
                self.stop();
                drop(self.base.place.take());
                // What was begun to be written is finished: whether it counts is for the store to say.
                if self.flush().await.is_ok() {
                    self.release().await;
                }
            }
        }
    }

    /// Gives the task back, which needs no room in the store.
    pub(super) async fn release(&mut self) {
        drop(self.base.place.take());
        // If it cannot be given back, another run begins when the lease is over.
        let _ = self.persist(Advance::Release).await;
        self.base.service.ready.notify_one();
    }

    /// Whether the task is given back because what its run came to had no room when the run had to end. A live one
    /// cannot be run again.
    pub(super) fn gives_way(&self, error: &StoreError) -> bool {
        matches!(error, StoreError::Full(_)) && !self.base.live && self.base.run.has_end()
    }

    /// Ends the task because its run cannot wait, unless it is lost.
    pub(super) async fn finish_unless_lost(self, error: Unable) {
        match error {
            Unable::Store(StoreError::Lost) => {}
            error => self.finish(Err(error.rpc_error())).await,
        }
    }

    /// Ends the task.
    pub(super) async fn finish(mut self, result: Result<Reply, RpcError>) {
        self.stop();
        if self.flush().await.is_err() {
            return;
        }
        let note = self.base.run.take_note().and_then(|note| self.sealed_note(note).ok());
        if let Some(note) = note
            && let Err(StoreError::Lost) = self.persist(Advance::Note(note)).await
        {
            return;
        }
        let finish = self.finished(result);
        match self.persist(Advance::Finish(finish)).await {
            Ok(_) | Err(StoreError::Lost) => {}
            Err(error) if self.gives_way(&error) => self.release().await,
            Err(error) => {
                // The result is too large, or there was no room for it for as long as a run may take.
                let error = RpcError::internal(format!("the result of the task cannot be stored: {error}"));
                let finish = self.finished(Err(error));
                if let Err(error) = self.persist(Advance::Finish(finish)).await {
                    tracing::error!(task = ?self.base.run.id, %error, "the end of a task could not be stored");
                }
            }
        }
        drop(self.base.registered);
    }

    /// How the task ends, as it is stored.
    fn finished(&self, result: Result<Reply, RpcError>) -> Finish {
        let stored = match result {
            Ok(Reply::CallTool(result)) => {
                let is_error = result.is_error == Some(true);
                let text = is_error.then(|| result.content.iter().find_map(Content::as_text)).flatten();
                let note = text.and_then(|text| self.message(text).ok());
                let sealed = RawJson::of(&result).map_err(|_| VaultError::NotJson);
                let sealed = sealed.and_then(|result| self.base.vault.seal(Part::Result, "", result));
                sealed.map(|result| (Outcome::Result(result), is_error, note))
            }
            Ok(_) => Err(VaultError::NotJson),
            Err(error) => self.failed(&error),
        };
        let (outcome, is_error, note) = stored.unwrap_or_else(|error| {
            tracing::error!(%error, "the result of a task cannot be stored");
            self.failed(&RpcError::internal("the result could not be stored")).unwrap_or_else(|_| {
                let nothing =
                    serde_json::json!({ "code": -32603, "message": "the result could not be stored" });
                (Outcome::Error(RawJson::from(&nothing)), false, None)
            })
        });
        let keep = self.base.keep.map_or(LEAST_KEEP, |keep| keep.min(LEAST_KEEP));
        let mut finish = Finish::new(outcome);
        (finish.is_error, finish.keep, finish.note) = (is_error, keep, note);
        finish
    }

    fn failed(&self, error: &RpcError) -> Result<(Outcome, bool, Option<TaskNote>), VaultError> {
        let note = self.message(&error.message)?;
        let error = RawJson::of(error).map_err(|_| VaultError::NotJson)?;
        Ok((Outcome::Error(self.base.vault.seal(Part::Error, "", error)?), false, Some(note)))
    }
}
