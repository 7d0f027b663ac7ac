//! Taking on tasks that can be worked on.
//!
//! A claim is made only when the leases of this node are known to hold: after an outage of the store, what runs here is
//! renewed first, or this node would take its own tasks from itself. After a long one, other nodes have time to do the
//! same before this one claims anything.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use toolwire_protocol::journal::FORMAT;
use toolwire_store::{Advance, Claim, Claimed, TaskId, Token};

use super::{
    heart::{alive, jittered, renew_now},
    revive,
    run::Pulse,
    runs::Busy,
    service::TaskService,
};
use crate::{Server, ask::random};

/// Interval of claims that nothing has woken.
const CLAIM_PACE: Duration = Duration::from_secs(1);

/// A task that no store has. Asking for it shows whether a store answers.
const NO_TASK: TaskId = TaskId::from_bytes([0; 24]);

/// An outage of the store, as far as the claims of this node have met it.
#[derive(Debug, Default)]
struct Outage {
    /// When the store was out of reach for the first time since the last claim that succeeded.
    since: Option<Instant>,
    /// When the store answered again for the first time since then.
    back: Option<Instant>,
    /// Set once a claim has succeeded. Before that, nothing is known of earlier outages.
    ever_well: bool,
}

impl Outage {
    fn failed(&mut self, sent: Instant) {
        self.since = Some(self.since.map_or(sent, |since| since.min(sent)));
        self.back = None;
    }

    /// Notes that leases could not be renewed for so long. A node without free places makes no claim, and learns of an
    /// outage by nothing else.
    fn unrenewed(&mut self, age: Duration) {
        let now = Instant::now();
        let since = now.checked_sub(age);
        self.ever_well &= since.is_some();
        self.failed(since.unwrap_or(now));
    }

    fn over(&mut self) {
        *self = Self { since: None, back: None, ever_well: true };
    }

    /// Returns whether a claim can be made now. If not, the next try asks again.
    async fn is_over(&mut self, service: &Arc<TaskService>) -> bool {
        let Some(since) = self.since else { return true };
        let sent = Instant::now();
        if let Err(error) = service.ask(service.tasks().revs(&[NO_TASK])).await {
            tracing::debug!(%error, "the store is still out of reach");
            self.failed(sent);
            return false;
        }
        let lease = service.limits.task_lease;
        let back = *self.back.get_or_insert_with(Instant::now);
        // Leases are renewed four times as often as they end, so after a short one all of them hold.
        let short = self.ever_well && back.duration_since(since) < lease / 2;
        short || back.elapsed() >= grace(lease)
    }
}

/// Returns the time that other nodes have after a long outage to renew what they run: as long as a renewal takes at most, with the
/// pause before it.
fn grace(lease: Duration) -> Duration {
    lease / 5
}

/// Claims what can be worked on, from `first` on, until the runs are closed.
pub(super) async fn claim(service: &Weak<TaskService>, first: Duration) {
    let Some(ready) = service.upgrade().map(|service| Arc::clone(&service.ready)) else { return };
    let mut outage = Outage::default();
    let mut pause = first;
    loop {
        if !pause.is_zero() {
            tokio::select! {
                () = ready.notified() => {}
                () = sleep(pause) => {}
            }
        }
        let Some(service) = alive(service) else { return };
        if service.runs.is_closed() {
            // What is left is for others.
            return std::future::pending().await;
        }
        let again = claim_some(&service, &mut outage).await;
        pause = if again { Duration::ZERO } else { jittered(CLAIM_PACE) };
    }
}

/// Claims as much as there are places for. Returns whether there may be more.
async fn claim_some(service: &Arc<TaskService>, outage: &mut Outage) -> bool {
    let Some(server) = service.server() else { return false };
    let offered = offered(&server);
    let Ok(token) = random() else { return false };
    if offered.is_empty() || !outage.is_over(service).await {
        return false;
    }
    if !leases_hold(service).await {
        outage.unrenewed(service.runs.oldest_pulse());
        return false;
    }
    // Taken first: what is claimed is registered at once, and so its lease is kept.
    let mut places = service.runs.places();
    if places.is_empty() {
        return false;
    }
    let most = places.len();
    let mut claim =
        Claim::new(service.node, Token::from_bytes(token), offered, most, service.limits.task_lease);
    (claim.format, claim.keys) = (FORMAT, service.vault.keys());
    let (sent, at) = (Pulse::now(), Instant::now());
    let claimed = match service.ask(service.tasks().claim(&claim)).await {
        Ok(claimed) => claimed,
        Err(error) => {
            tracing::debug!(%error, "nothing could be claimed");
            outage.failed(at);
            return false;
        }
    };
    outage.over();
    let full = claimed.len() >= most;
    for task in claimed {
        match places.pop() {
            // A live task has its only run now, since a second claim would end it.
            Some(place) if !service.runs.is_closed() || task.request.live => {
                revive::start(service, &server, task, sent, place);
            }
            _ => give_back(service, &task),
        }
    }
    full
}

/// The tools that have tasks, each with the revisions of it that can be run here.
fn offered(server: &Server) -> Vec<(String, u32)> {
    let catalog = server.catalog();
    let routes = catalog.tools.iter_for_all().filter_map(|route| Some((route, route.policy()?)));
    routes
        .flat_map(|(route, policy)| policy.revisions().map(|revision| (route.tool.name.clone(), revision)))
        .collect()
}

/// Returns whether the runs of this node were renewed lately, or can be renewed now. If it was not, because the store was away or this
/// machine was suspended, its leases may be over, and a claim would take them.
async fn leases_hold(service: &Arc<TaskService>) -> bool {
    service.runs.oldest_pulse() < service.limits.task_lease / 2 || renew_now(service).await
}

/// Gives back a task that was claimed for a run that is not to begin any more.
fn give_back(service: &Arc<TaskService>, claimed: &Claimed) {
    let (service, lease, busy) = (Arc::clone(service), claimed.lease, service.runs.busy());
    tokio::spawn(async move {
        let _busy: Busy = busy;
        if let Err(error) = service.ask(service.tasks().advance(&lease, 1, Advance::Release)).await {
            tracing::debug!(%error, "a task that was claimed could not be given back");
        }
    });
}
