//! Which tools can be called as tasks, where the client has to know: in 2025-11-25 a call says itself that it may become
//! one, and only the list of tools says of which tools that may be said.

use std::{collections::HashMap, sync::Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolwire_protocol::{
    ErrorCode, Method,
    wire::{PaginatedRequestParams, TaskSupport, Tool, ToolExecution},
};

use super::{
    Client,
    list_budget::ListBudget,
    operation::Operation,
    typed_request::{Options, Performed},
};
use crate::{error::Error, lock::lock};

/// How many tools are remembered.
const MAX_TOOLS: usize = 10_000;
/// The length that the name of a tool may have to be remembered.
const MAX_NAME_BYTES: usize = 256;

/// What is known about the tools of the server.
#[derive(Debug, Default)]
pub(crate) struct TaskSupports {
    known: Mutex<Known>,
    /// Held while the list is read, so that only one call does so.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// Whether they are wanted at all.
    wanted: bool,
    by_name: HashMap<Box<str>, TaskSupport>,
    /// Whether the whole list was read, so that others have no tasks.
    listed: bool,
    /// How often the list has changed.
    changes: u64,
}

impl TaskSupports {
    /// Learns from tools that pass by.
    pub(crate) fn learn(&self, tools: &[Tool]) {
        if tools.is_empty() {
            return;
        }
        let mut known = lock(&self.known);
        if known.wanted {
            for tool in tools {
                known.put(&tool.name, tool.execution.as_ref());
            }
        }
    }

    /// The tools have changed.
    pub(crate) fn forget(&self) {
        let mut known = lock(&self.known);
        known.by_name.clear();
        known.listed = false;
        known.changes += 1;
    }

    fn of(&self, tool: &str) -> Option<TaskSupport> {
        let mut known = lock(&self.known);
        known.wanted = true;
        let support = known.by_name.get(tool).copied();
        support.or_else(|| known.listed.then_some(TaskSupport::Forbidden))
    }
}

impl Known {
    fn put(&mut self, name: &str, execution: Option<&ToolExecution>) {
        let support = execution.and_then(|execution| execution.task_support);
        if name.len() <= MAX_NAME_BYTES && self.by_name.len() < MAX_TOOLS {
            self.by_name.insert(name.into(), support.unwrap_or(TaskSupport::Forbidden));
        }
    }
}

impl Client {
    /// Whether requests of this kind may say that they may become tasks.
    pub(super) fn wishes_for_tasks<T: Operation>(&self) -> bool {
        T::METHOD == Method::CallTool && self.facts().core_tasks && self.announces_task_calls()
    }

    fn announces_task_calls(&self) -> bool {
        let requests = self.capabilities().tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
        let call =
            requests.and_then(|requests| requests.tools.as_ref()).and_then(|tools| tools.call.as_ref());
        call.is_some() && self.host().follows_tasks()
    }

    /// Begins a request that says whether it may become a task, because the list of tools does.
    ///
    /// When a server refuses it as one that should have been a task, or should not, the list is read again. It is the
    /// refusal that counts if nothing has changed.
    pub(super) async fn begin_wishing<T: Operation>(
        &self,
        params: &mut T::Params,
        options: &mut Options,
    ) -> Result<Performed<T>, Error> {
        let wished = self.may_be_task::<T>(params).await;
        T::wish_for_task(params, wished);
        let error = match self.begin::<T>(params, options).await {
            Err(error) if error.rpc().is_some_and(|error| error.code == ErrorCode::METHOD_NOT_FOUND) => error,
            other => return other,
        };
        self.host().supports.forget();
        if self.may_be_task::<T>(params).await == wished {
            return Err(error);
        }
        T::wish_for_task(params, !wished);
        self.begin::<T>(params, options).await
    }

    async fn may_be_task<T: Operation>(&self, params: &T::Params) -> bool {
        let Some(tool) = T::tool(params) else { return false };
        matches!(self.task_support(tool).await, TaskSupport::Optional | TaskSupport::Required)
    }

    async fn task_support(&self, tool: &str) -> TaskSupport {
        let supports = &self.host().supports;
        if let Some(support) = supports.of(tool) {
            return support;
        }
        let _alone = supports.listing.lock().await;
        if let Some(support) = supports.of(tool) {
            return support;
        }
        let changes = lock(&supports.known).changes;
        if let Err(error) = self.read_supports().await {
            tracing::warn!(%error, "it cannot be found out which tools can be called as tasks");
        }
        {
            let mut known = lock(&supports.known);
            // A list that changed while it was read is read again the next time. One that cannot be read is not.
            known.listed = known.changes == changes;
        }
        supports.of(tool).unwrap_or(TaskSupport::Forbidden)
    }

    /// Goes through the list of tools. One that cannot be read does not hide the others.
    async fn read_supports(&self) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow, default)]
            tools: Vec<&'a RawValue>,
            #[serde(rename = "nextCursor", default)]
            next: Option<String>,
        }

        #[derive(Deserialize)]
        struct Named {
            name: String,
            #[serde(default)]
            execution: Option<ToolExecution>,
        }

        let limits = &self.settings().limits;
        let mut budget = ListBudget::new(limits);
        let mut params = PaginatedRequestParams::new();
        for _ in 0..limits.list_pages {
            let result = self.ask_once(Method::ListTools, &params, Options::default()).await?;
            budget.charge(Method::ListTools, result.text())?;
            let page: Page<'_> = serde_json::from_str(result.text())
                .map_err(|error| Error::invalid_response(&Method::ListTools.into(), error))?;
            let mut known = lock(&self.host().supports.known);
            for tool in page.tools {
                if let Ok(named) = serde_json::from_str::<Named>(tool.get()) {
                    known.put(&named.name, named.execution.as_ref());
                }
            }
            let full = known.by_name.len() >= MAX_TOOLS;
            drop(known);
            match page.next.filter(|_| !full) {
                Some(next) if params.cursor.as_ref() != Some(&next) => params.cursor = Some(next),
                _ => break,
            }
        }
        Ok(())
    }
}
