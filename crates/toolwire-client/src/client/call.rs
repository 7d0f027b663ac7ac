//! A request that is being put together.

use std::{collections::BTreeMap, fmt, future::IntoFuture, time::Duration};

use toolwire_protocol::wire::{
    CompleteResult, CompletionContext, LoggingLevel, Meta, PaginatedRequestParams,
    ProgressNotificationParams, TaskMetadata,
};
use toolwire_transport::BoxFuture;

use super::{
    Client,
    operation::Operation,
    outcome::CallOutcome,
    typed_request::{Options, Performed},
};
use crate::{
    error::Error,
    task::{Started, TaskHandle},
};

/// A request that is sent when it is awaited.
///
/// ```
/// # use std::time::Duration;
/// # use toolwire_client::{Client, Error};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let report = client
///     .call("report", serde_json::json!({ "year": 2026 }))
///     .progress(|step| println!("{}", step.progress))
///     .timeout(Duration::from_secs(10))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is sent until it is awaited"]
pub struct CallBuilder<T: Operation = CallOutcome> {
    client: Client,
    /// Parameters that cannot be sent are an error that shows when it is awaited.
    params: Result<T::Params, Error>,
    options: Options,
}

impl<T: Operation> CallBuilder<T> {
    pub(super) fn new(client: Client, params: Result<T::Params, Error>) -> Self {
        Self { client, params, options: Options::default() }
    }

    /// Asks for progress and calls `call` with each step. It runs while the request is awaited.
    ///
    /// Each step gives the server the full [`timeout`](Self::timeout) again. Steps that do not go forward are
    /// left out.
    pub fn progress(mut self, call: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.options.progress = Some(Box::new(call));
        self
    }

    /// How long the server may take without an answer or progress. The time in this client's handlers does not
    /// count.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// How long the server may take altogether, whatever progress it makes. The time in this client's handlers
    /// does not count.
    pub const fn total_timeout(mut self, timeout: Duration) -> Self {
        self.options.total_timeout = Some(timeout);
        self
    }

    /// Sends an entry of one's own in `_meta`. Keys of the protocol are left to the client.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.options.meta.get_or_insert_with(Meta::new).insert(key, value);
        self
    }

    /// Asks for the server's log messages of at least this level, for this request. Legacy servers have one level
    /// for everything instead: [`Client::set_log_level`].
    pub const fn log_level(mut self, level: LoggingLevel) -> Self {
        self.options.log_level = Some(level);
        self
    }

    /// Asks the server even if a stored result is still good.
    pub const fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }
}

impl<T: Operation<Params = PaginatedRequestParams>> CallBuilder<T> {
    /// Asks for the page that begins at `cursor`, which an earlier page gave as its `next_cursor`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params = self.params.map(|params| params.cursor(cursor));
        self
    }
}

impl CallBuilder<CompleteResult> {
    /// Tells what has been filled in already.
    pub fn context(
        mut self,
        arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let arguments: BTreeMap<String, String> =
            arguments.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self.params = self.params.map(|params| params.context(CompletionContext::new().arguments(arguments)));
        self
    }
}

impl CallBuilder {
    /// For how long the server should keep the task that the call may become; it may keep it shorter. A server of
    /// 2026-07-28 decides by itself.
    pub fn keep(mut self, time: Duration) -> Self {
        if let Ok(params) = &mut self.params {
            let ttl = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            params.task.get_or_insert_with(TaskMetadata::new).ttl = Some(ttl);
        }
        self
    }

    /// Calls the tool and does not wait for work that goes on as a task.
    ///
    /// Awaiting the call itself waits for that, too. The difference is who ends the task: dropping the future of an
    /// awaited call cancels it, dropping a [`TaskHandle`] does not.
    ///
    /// ```
    /// # use toolwire_client::{Client, Error, Started};
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// match client.call("report", serde_json::json!({ "year": 2026 })).start().await? {
    ///     Started::Done(outcome) => println!("{}", outcome.text()),
    ///     Started::Task(task) => println!("to be continued: {}", task.ticket()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the call was not made, or was refused.
    pub async fn start(self) -> Result<Started, Error> {
        let Self { client, params, mut options } = self;
        let mut params = params?;
        let performed = if client.wishes_for_tasks::<CallOutcome>() {
            Box::pin(client.begin_wishing::<CallOutcome>(&mut params, &mut options)).await
        } else {
            params.task = None;
            client.begin::<CallOutcome>(&mut params, &mut options).await
        };
        match performed? {
            Performed::Done(outcome) => Ok(Started::Done(outcome)),
            Performed::Task(task) => Ok(Started::Task(TaskHandle::begun(client, *task, Some(params.name))?)),
        }
    }
}

impl<T: Operation> IntoFuture for CallBuilder<T> {
    type Output = Result<T, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, params, mut options } = self;
        match params {
            // Lent, because a future has room for whatever is moved into it once more.
            Ok(mut params) => Box::pin(async move {
                let performed = if client.wishes_for_tasks::<T>() {
                    Box::pin(client.begin_wishing::<T>(&mut params, &mut options)).await
                } else {
                    T::wish_for_task(&mut params, false);
                    client.begin::<T>(&mut params, &mut options).await
                };
                match performed? {
                    Performed::Done(value) => Ok(value),
                    // Few calls become tasks, so they need not make the futures of all others large.
                    Performed::Task(task) => {
                        Box::pin(client.await_task::<T>(&params, *task, &mut options)).await
                    }
                }
            }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl<T: Operation> fmt::Debug for CallBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallBuilder").field("method", &T::METHOD).finish_non_exhaustive()
    }
}
