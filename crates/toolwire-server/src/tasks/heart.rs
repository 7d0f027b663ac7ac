//! What goes on as long as a server has tasks: leases are kept, work is looked for, and changes are heard of.

use std::{
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use toolwire_protocol::journal::FORMAT;
use toolwire_store::{Claim, Token, Topic, Wake};

use super::{
    revive,
    run::{End, Pulse},
    service::TaskService,
};
use crate::{ask::random, cancel::Cancel};

/// How often a claim is made without being woken.
const CLAIM_PACE: Duration = Duration::from_secs(1);

/// How often is looked whether something has changed without anybody saying so.
const LOOK_PACE: Duration = Duration::from_secs(2);

/// How many are asked for at once.
const LOOKS: usize = 1000;

/// How often what has expired is removed, and how much of it at once.
const SWEEP_PACE: Duration = Duration::from_secs(10);
const SWEPT: usize = 256;

/// How late a renewal has to be to say that the runtime is blocked.
const LATE: Duration = Duration::from_secs(2);

/// By how much the clock of a store has to jump to be worth a warning.
const JUMP_MS: i64 = 1000;

/// How long a run may take to give its task back when the server is shut down.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// Keeps the tasks of a node going, until the server is shut down or nobody has it any more.
pub(super) fn beat(service: &Arc<TaskService>) -> impl Future<Output = ()> + Send + use<> {
    let wakes = service.store.bus().listen();
    let shutdown = service.server().map(|server| server.shutting_down().clone());
    let service = Arc::downgrade(service);
    async move {
        let Some(shutdown) = shutdown else { return };
        let ended = shutdown.clone();
        tokio::select! {
            () = listen(&service, wakes) => {}
            () = renew(&service) => {}
            () = claim(&service, &shutdown) => {}
            () = look(&service) => {}
            () = sweep(&service) => {}
            () = drain(&service, &ended) => {}
        }
    }
}

/// Hears what has changed.
async fn listen(service: &Weak<TaskService>, mut wakes: toolwire_store::Wakes) {
    while let Some(wake) = wakes.next().await {
        let Some(service) = service.upgrade() else { return };
        match wake {
            Wake::Topic(Topic::Ready) => service.ready.notify_one(),
            Wake::Topic(Topic::Task { id, session }) => {
                service.watches.changed(id, session);
                if let Some(run) = service.runs.get(&id) {
                    run.look();
                    // It may have been cancelled.
                    service.suspects.notify_one();
                }
            }
            Wake::Gap => {
                service.watches.all_changed();
                service.ready.notify_one();
                service.suspects.notify_one();
                for run in service.runs.all() {
                    run.look();
                }
            }
            Wake::Topic(_) => {}
        }
    }
    // Without a bus everything is still found, only later.
    std::future::pending::<()>().await;
}

/// Renews the leases of everything that runs here, at a fixed rate.
async fn renew(service: &Weak<TaskService>) {
    let Some((lease, suspects)) =
        service.upgrade().map(|service| (service.limits.task_lease, Arc::clone(&service.suspects)))
    else {
        return;
    };
    let pace = (lease / 4).max(Duration::from_millis(10));
    let mut ticks = interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut due = Instant::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = suspects.notified() => {}
        }
        let Some(service) = alive(service) else { return };
        let late = Instant::now().saturating_duration_since(due);
        if late >= pace + LATE {
            tracing::warn!(?late, "leases of tasks are renewed late: the runtime is blocked");
        }
        due = Instant::now();
        let leases = service.runs.leases();
        if leases.is_empty() {
            continue;
        }
        let sent = Pulse::now();
        let renewal = service.ask(service.tasks().renew(&leases, lease));
        match timeout(lease * 3 / 20, renewal).await {
            Ok(Ok(renewed)) => {
                let jump = service.runs.renewed(&leases, &renewed.lost, sent, renewed.now_ms);
                if jump.abs() > JUMP_MS {
                    tracing::warn!(jump, "the clock of the store has jumped by so many milliseconds");
                }
            }
            Ok(Err(error)) => tracing::debug!(%error, "leases could not be renewed"),
            Err(_) => tracing::debug!("leases could not be renewed in time"),
        }
        // Those that could not be renewed look at their age before they go on.
        for run in service.runs.all() {
            run.wake();
        }
    }
}

/// Takes on what can be worked on.
async fn claim(service: &Weak<TaskService>, shutdown: &Cancel) {
    let Some(ready) = service.upgrade().map(|service| Arc::clone(&service.ready)) else { return };
    loop {
        let again = {
            let Some(service) = alive(service) else { return };
            if shutdown.is_cancelled() {
                // What is left is for others.
                return std::future::pending().await;
            }
            claim_some(&service).await
        };
        if again {
            continue;
        }
        tokio::select! {
            () = ready.notified() => {}
            () = sleep(jittered(CLAIM_PACE)) => {}
        }
    }
}

/// Claims as much as there are places for. Says whether there may be more.
async fn claim_some(service: &Arc<TaskService>) -> bool {
    let free = service.runs.free();
    let Some(server) = service.server() else { return false };
    let catalog = server.catalog();
    let offered: Vec<(String, u32)> = catalog
        .tools
        .iter_for_all()
        .filter_map(|route| Some((route, route.policy()?)))
        .flat_map(|(route, policy)| policy.revisions().map(|revision| (route.tool.name.clone(), revision)))
        .collect();
    let Ok(token) = random() else { return false };
    if free == 0 || offered.is_empty() {
        return false;
    }
    let mut claim =
        Claim::new(service.node, Token::from_bytes(token), offered, free, service.limits.task_lease);
    (claim.format, claim.keys) = (FORMAT, service.vault.keys());
    let sent = Pulse::now();
    let claimed = match service.ask(service.tasks().claim(&claim)).await {
        Ok(claimed) => claimed,
        Err(error) => {
            tracing::debug!(%error, "nothing could be claimed");
            return false;
        }
    };
    let full = claimed.len() >= free;
    for task in claimed {
        // There was room for each of them; should a call have been quicker, the run waits for its turn.
        let place = match service.runs.place() {
            Some(place) => Some(place),
            None => service.runs.next_place().await,
        };
        if let Some(place) = place {
            revive::start(service, &server, task, sent, place);
        }
    }
    full
}

/// Looks whether something has changed that nobody has told of.
async fn look(service: &Weak<TaskService>) {
    loop {
        sleep(LOOK_PACE).await;
        let Some(service) = alive(service) else { return };
        let runs = service.runs.all();
        let mut ids = service.watches.ids();
        ids.extend(runs.iter().map(|run| run.id));
        for ids in ids.chunks(LOOKS) {
            let Ok(revs) = service.ask(service.tasks().revs(ids)).await else { break };
            for (id, rev) in ids.iter().zip(revs) {
                service.watches.compare(*id, rev);
            }
        }
        if !runs.is_empty() {
            // A run whose task was cancelled finds out by its lease, and one that waits by reading its answers.
            service.suspects.notify_one();
            for run in &runs {
                run.look();
            }
        }
    }
}

/// Removes what has expired.
async fn sweep(service: &Weak<TaskService>) {
    loop {
        sleep(jittered(SWEEP_PACE)).await;
        let Some(service) = alive(service) else { return };
        while let Ok(SWEPT..) = service.ask(service.tasks().sweep(SWEPT)).await {}
    }
}

/// Ends what runs when the server is shut down.
async fn drain(service: &Weak<TaskService>, shutdown: &Cancel) {
    shutdown.cancelled().await;
    let Some(service) = service.upgrade() else { return };
    let patience = service.limits.drain_timeout;
    if timeout(patience, service.runs.until_idle()).await.is_err() {
        for run in service.runs.all() {
            run.end(End::Shutdown);
        }
        let _ = timeout(RELEASE_TIME, service.runs.until_idle()).await;
    }
}

/// The tasks, as long as somebody has their server.
fn alive(service: &Weak<TaskService>) -> Option<Arc<TaskService>> {
    service.upgrade().filter(|service| service.server().is_some())
}

/// The same time, more or less, so that nodes do not ask all at once.
fn jittered(time: Duration) -> Duration {
    let [byte] = random::<1>().unwrap_or([128]);
    time * 3 / 4 + time / 2 * u32::from(byte) / 255
}
