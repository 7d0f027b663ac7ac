//! From what is stored to a run.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use toolwire_protocol::{
    Method, Params, RawJson, RequestId, RpcError,
    journal::{Folded, JournalError, fold},
    peek::Peek,
    wire::{ClientCapabilities, Implementation},
};
use toolwire_store::Claimed;
use tracing::Instrument;

use super::{
    InTask, Run, carry,
    policy::TaskPolicy,
    run::{Pulse, TaskRun},
    runner::Runner,
    runs::RunPlace,
    service::TaskService,
    vault::{Part, TaskVault, VaultError},
};
use crate::{
    Caller, Context, Extensions, Principal, Server, ToolRoute,
    ask::Asking,
    context::RequestParts,
    dispatch::run_tool,
    engine::DetachedRun,
    handler::{Answer, SharedEndpoint},
    outbox::Outbox,
};

/// What a client has said of itself in its handshake.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    pub(super) info: Option<Implementation>,
    pub(super) capabilities: RawJson,
}

/// Why a task cannot be run here.
pub(super) enum Broken {
    /// It has had its attempts, or cannot be run again.
    Stopped(RpcError),
    Vault(VaultError),
    Journal(JournalError),
    /// Something that is stored is not what it should be.
    Stored(&'static str, String),
    /// The tool, or its revision, was removed since the claim.
    NoTool,
}

impl Broken {
    /// Whether another node may be able to run the task, or this one after an update: one that has other keys, the tool,
    /// or another version of what is carried. What was forged, or contradicts itself, is so everywhere.
    fn is_for_others(&self) -> bool {
        match self {
            Self::Stored(..) | Self::NoTool => true,
            Self::Vault(error) => error.is_for_others(),
            Self::Stopped(_) | Self::Journal(_) => false,
        }
    }

    fn rpc_error(&self) -> RpcError {
        match self {
            Self::Stopped(error) => error.clone(),
            Self::Vault(error) => error.rpc_error(),
            Self::Journal(error) => RpcError::internal(error.to_string()),
            Self::Stored(what, why) => {
                RpcError::internal(format!("{what} of the task cannot be read: {why}"))
            }
            Self::NoTool => RpcError::internal("the tool of this task is gone"),
        }
    }
}

/// Runs a task that was claimed.
pub(super) fn start(
    service: &Arc<TaskService>,
    server: &Server,
    claimed: Claimed,
    sent: Pulse,
    place: RunPlace,
) {
    let span = tracing::info_span!("task", id = ?claimed.head.id, attempt = claimed.attempt);
    let (service, server) = (Arc::clone(service), server.clone());
    tokio::spawn(async move { run(service, server, claimed, sent, place).await }.instrument(span));
}

async fn run(service: Arc<TaskService>, server: Server, claimed: Claimed, sent: Pulse, place: RunPlace) {
    let lease = claimed.lease;
    let live = claimed.request.live;
    let run = Arc::new(TaskRun::new(lease.id, claimed.attempt, live));
    run.begin(lease, claimed.now_ms, sent);
    let registered = service.runs.add(&run);
    let route = server.catalog().tools.get_for_all(&claimed.request.tool).cloned();
    let policy = route.as_ref().and_then(|route| route.policy());
    let run_time = policy.and_then(TaskPolicy::longest_run).unwrap_or(service.limits.task_run_time);
    let keep = policy.and_then(TaskPolicy::kept);
    let vault = service.vault(lease.id).with_key(claimed.key);
    let revived = match process_gone(&claimed) {
        Some(error) => Err(Broken::Stopped(error)),
        None => vault.as_ref().map_err(|error| Broken::Vault(error.clone())).and_then(|vault| {
            // Before anything of it is read, so that what breaks the reading comes to an end as well.
            match stopped(&claimed, policy) {
                Some(error) => Err(Broken::Stopped(error)),
                None => revive(&service, &server, route.as_ref(), &claimed, &run, vault),
            }
        }),
    };
    let (cx, work, folded) = match revived {
        Ok(Revived { cx, work, folded }) => (cx, Ok(work), folded),
        Err(broken) => {
            // A live task has this claim only: given back, it would fail at its next one, for a reason that is none.
            let others = !live && broken.is_for_others();
            if others && service.is_left_to_others(&claimed, || broken.rpc_error()) {
                return service.give_back(&claimed).await;
            }
            let error = broken.rpc_error();
            tracing::error!(%error, "a task that was claimed cannot be run");
            (nobody(&server), Err(error), Folded::default())
        }
    };
    let vault = vault.unwrap_or_else(|_| service.vault(lease.id));
    let runner = Runner {
        service,
        run,
        cx: cx.clone(),
        lease,
        vault,
        folded,
        live,
        run_time,
        keep,
        place: Some(place),
        registered,
    };
    match work {
        Ok(work) => runner.drive(DetachedRun::new(&cx, work)).await,
        Err(error) => runner.fail(error).await,
    }
}

/// Returns the error of a live task that another process had begun.
fn process_gone(claimed: &Claimed) -> Option<RpcError> {
    // The first lease of all is that of the process which began it.
    let gone = claimed.request.live && claimed.lease.fence > 1;
    gone.then(|| RpcError::internal("the process that ran this task is gone"))
}

/// Returns the error of a task that is not run once more.
fn stopped(claimed: &Claimed, policy: Option<&TaskPolicy>) -> Option<RpcError> {
    let most = policy?.most_attempts();
    (claimed.attempt > most).then(|| {
        let data = serde_json::json!({ "attempts": most });
        RpcError::internal(format!("stopped after {most} attempts without progress")).with_data(&data)
    })
}

/// A run that is ready to begin.
struct Revived {
    cx: Context,
    work: Answer,
    folded: Folded,
}

fn revive(
    service: &Arc<TaskService>,
    server: &Server,
    route: Option<&Arc<ToolRoute>>,
    claimed: &Claimed,
    run: &Arc<TaskRun>,
    vault: &TaskVault,
) -> Result<Revived, Broken> {
    let route = route.ok_or(Broken::NoTool)?;
    let endpoint = endpoint(route, claimed.request.revision).ok_or(Broken::NoTool)?;
    let entries = claimed.journal.iter().map(|entry| vault.open_entry(entry));
    let entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(Broken::Vault)?;
    let folded = fold(&claimed.request.call, &entries).map_err(Broken::Journal)?;
    let cx = context(service, server, claimed, vault)?;
    cx.journal().load_folded(&folded).map_err(|error| Broken::Stored("an answer", error.to_string()))?;
    // It was made just now, so nothing of this is set.
    let _ = cx.0.task.set(Arc::new(InTask::of(Arc::clone(run) as Arc<dyn Run>)));
    let _ = cx.0.tool.set(Arc::clone(route));
    let work = match route.refused(&cx) {
        Some(refused) => Box::pin(std::future::ready(refused)),
        None => run_tool(cx.clone(), route, endpoint),
    };
    Ok(Revived { cx, work, folded })
}

fn endpoint(route: &ToolRoute, revision: u32) -> Option<&SharedEndpoint> {
    let policy = route.policy()?;
    if revision == policy.current() { Some(&route.endpoint) } else { policy.older_endpoint(revision) }
}

/// A context like that of the request which made the task, as far as it is known. Nothing runs without its identity.
fn context(
    service: &TaskService,
    server: &Server,
    claimed: &Claimed,
    vault: &TaskVault,
) -> Result<Context, Broken> {
    let open = |part, value: &RawJson| vault.open(part, "", value).map_err(Broken::Vault);
    let request = &claimed.request;
    let params: Params = open(Part::Params, &request.params)?.into();
    let stored = |what| move |error: serde_json::Error| Broken::Stored(what, error.to_string());
    let mut extensions = Extensions::default();
    carry::unpack(&service.carriers, &open(Part::Carried, &request.carried)?, &mut extensions)
        .map_err(stored("what was carried"))?;
    let principal: Option<serde_json::Value> =
        open(Part::Principal, &request.principal)?.decode().map_err(stored("the caller"))?;
    if let Some(record) = principal {
        let principal = Principal::from_record(&record);
        extensions.insert(principal.map_err(|error| Broken::Stored("the caller", error.to_string()))?);
    }
    let client: Option<Client> =
        open(Part::Client, &request.client)?.decode().map_err(stored("the client"))?;
    let known_caller = client.map(|client| {
        let capabilities: ClientCapabilities =
            client.capabilities.decode().map_err(stored("the client's capabilities"))?;
        let info = client.info.unwrap_or_else(|| Implementation::new("", ""));
        Ok(Caller::from_handshake(request.version, capabilities, info))
    });
    let parts = RequestParts {
        asking: Asking::Closed("the request was answered already"),
        id: RequestId::from(claimed.head.id.to_string()),
        method: Method::CallTool.into(),
        version: request.version,
        peek: Peek::of(&params).into(),
        params,
        connection: None,
        known_caller: known_caller.transpose()?,
        outbox: silent(server),
        extensions,
        ledger: server.ledger().clone(),
        server: server.clone(),
    };
    Ok(parts.into_context())
}

/// A context for a task of which nothing can be read but that it has to end.
fn nobody(server: &Server) -> Context {
    let params = Params::default();
    RequestParts {
        asking: Asking::Closed("the request was answered already"),
        id: RequestId::from(0),
        method: Method::CallTool.into(),
        version: toolwire_protocol::Version::LATEST,
        peek: Box::default(),
        params,
        connection: None,
        known_caller: None,
        outbox: silent(server),
        extensions: Extensions::default(),
        ledger: server.ledger().clone(),
        server: server.clone(),
    }
    .into_context()
}

fn silent(server: &Server) -> Outbox {
    let outbox = Outbox::own(server.ledger().clone());
    outbox.abandon();
    outbox
}

impl TaskService {
    /// From which age of its lease on a run is given up: before another node may take it.
    pub(super) fn fencing_age(&self) -> Duration {
        self.limits.task_lease * 17 / 20
    }
}
