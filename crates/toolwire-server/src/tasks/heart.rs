//! What goes on as long as a server has tasks: leases are kept, work is looked for, and changes are heard of.

use std::{
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use toolwire_store::{Topic, Wake};

use super::{claims::claim, run::Pulse, service::TaskService};
use crate::{ask::random, cancel::Cancel};

/// Shortest interval between a renewal and the next one that is made because a task may have been lost. A run that reports much
/// progress hears of its own changes as well, and each renewal is about all leases.
const SUSPECT_PACE: Duration = Duration::from_secs(1);

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

/// Time that runs have to give their tasks back at the end. Beyond that they are left to the ends of their leases.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// Keeps the tasks of a node going, until the server is shut down or nobody has it any more. Nothing is claimed before
/// `first` is over, unless something wakes the claims.
pub(super) fn beat(service: &Arc<TaskService>, first: Duration) -> impl Future<Output = ()> + Send + use<> {
    let wakes = service.store.bus().listen();
    let shutdown = service.server().map(|server| server.shutting_down().clone());
    let service = Arc::downgrade(service);
    async move {
        let Some(shutdown) = shutdown else { return };
        tokio::select! {
            () = listen(&service, wakes) => {}
            () = renew(&service) => {}
            () = claim(&service, first) => {}
            () = look(&service) => {}
            () = sweep(&service) => {}
            () = drain(&service, &shutdown) => {}
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

/// Renews the leases of everything that runs here, at a fixed rate, and sooner after a renewal that has failed.
async fn renew(service: &Weak<TaskService>) {
    let Some((lease, suspects)) =
        service.upgrade().map(|service| (service.limits.task_lease, Arc::clone(&service.suspects)))
    else {
        return;
    };
    let pace = (lease / 4).max(Duration::from_millis(10));
    let mut due = Instant::now();
    let mut last = None;
    loop {
        let suspected = async {
            suspects.notified().await;
            if let Some(last) = last {
                sleep_until(last + SUSPECT_PACE.min(pace)).await;
            }
        };
        tokio::select! {
            () = sleep_until(due) => {}
            () = suspected => {}
        }
        let Some(service) = alive(service) else { return };
        let now = Instant::now();
        let late = now.saturating_duration_since(due);
        if late >= LATE {
            tracing::warn!(?late, "leases of tasks are renewed late: the runtime is blocked");
        }
        last = Some(now);
        let next = now + if renew_now(&service).await { pace } else { pace / 5 };
        due = next.max(Instant::now());
    }
}

/// Renews the leases of everything that runs here. Says whether the store has answered.
pub(super) async fn renew_now(service: &Arc<TaskService>) -> bool {
    let lease = service.limits.task_lease;
    let leases = service.runs.leases();
    if leases.is_empty() {
        return true;
    }
    let sent = Pulse::now();
    let renewal = service.ask(service.tasks().renew(&leases, lease));
    let renewed = match timeout(lease * 3 / 20, renewal).await {
        Ok(Ok(renewed)) => {
            let jump = service.runs.renewed(&leases, &renewed.lost, sent, renewed.now_ms);
            if jump.abs() > JUMP_MS {
                tracing::warn!(jump, "the clock of the store has jumped by so many milliseconds");
            }
            true
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "leases could not be renewed");
            false
        }
        Err(_) => {
            tracing::debug!("leases could not be renewed in time");
            false
        }
    };
    // Those that could not be renewed look at their age before they go on.
    for run in service.runs.all() {
        run.wake();
    }
    renewed
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
        if !service.is_down() {
            service.watches.tell_missed();
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

/// Ends what runs when the server is shut down. Resolves when nothing runs any more.
async fn drain(service: &Weak<TaskService>, shutdown: &Cancel) {
    let Some(runs) = service.upgrade().map(|service| Arc::clone(&service.runs)) else { return };
    let ended = async {
        runs.until_closed().await;
        // Until then leases are kept.
        runs.until_idle().await;
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = ended => return,
    }
    let Some(service) = service.upgrade() else { return };
    let patience = service.limits.drain_timeout;
    end(&service, patience).await;
}

/// Begins nothing new, lets what runs here come to its end within `patience`, and has the rest given back to the store.
pub(super) async fn end(service: &TaskService, patience: Duration) {
    let runs = &service.runs;
    let until = runs.close() + patience;
    if timeout_at(until, runs.until_idle()).await.is_err() {
        runs.end_all();
        let until = until.max(Instant::now()) + RELEASE_TIME;
        if timeout_at(until, runs.until_idle()).await.is_err() {
            tracing::warn!(
                "some tasks could not be given back in time and are left to the ends of their leases"
            );
        }
    }
}

/// The tasks, as long as somebody has their server.
pub(super) fn alive(service: &Weak<TaskService>) -> Option<Arc<TaskService>> {
    service.upgrade().filter(|service| service.server().is_some())
}

/// The same time, more or less, so that nodes do not ask all at once.
pub(super) fn jittered(time: Duration) -> Duration {
    let [byte] = random::<1>().unwrap_or([128]);
    time * 3 / 4 + time / 2 * u32::from(byte) / 255
}
