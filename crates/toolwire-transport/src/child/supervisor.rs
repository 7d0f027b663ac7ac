//! The task that owns a child process: it waits for its end, brings it about when asked, and clears up.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child as Process;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::exit::Ending;
use super::handle::{Life, Shared, Wish};

/// How long the last lines of standard error may take to arrive after the process has ended.
const STDERR_PATIENCE: Duration = Duration::from_millis(250);

/// How often to look whether the rest of a group is gone; the system does not tell.
const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// How long a killed group may take to disappear.
const KILL_PATIENCE: Duration = Duration::from_secs(1);

/// How long each step of an orderly end may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grace {
    pub(super) stdin: Duration,
    pub(super) term: Duration,
}

/// Sees a child through to its end. If the future is dropped before, even unpolled, the group is killed.
pub(super) fn supervise(
    mut process: Process,
    shared: Arc<Shared>,
    stderr: JoinHandle<()>,
    grace: Grace,
) -> impl Future<Output = ()> + Send {
    let last = Cleanup(shared);
    async move {
        let shared = &last.0;
        let status = wait_or_end(&mut process, shared, grace).await;
        // Look at once: as soon as the group is known to be empty, its number is never used again.
        shared.group.is_left();
        let _ = timeout(STDERR_PATIENCE, stderr).await;
        let report = shared.report(status.map_or(Ending::Unknown, Ending::of));
        tracing::debug!(target: "toolwire::child", command = report.command, ending = %report.ending);
        shared.life.send_replace(Life::Exited(report));
        sweep(shared, grace).await;
    }
}

async fn wait_or_end(process: &mut Process, shared: &Shared, grace: Grace) -> Option<ExitStatus> {
    let mut wish = shared.wish.subscribe();
    let wish = tokio::select! {
        status = process.wait() => return status.ok(),
        wish = wish.wait_for(|wish| *wish != Wish::Run) => wish.map_or(Wish::Kill, |wish| *wish),
    };
    if wish == Wish::Close {
        shared.input.close();
        if let Ok(status) = timeout(grace.stdin, process.wait()).await {
            return status.ok();
        }
        shared.group.terminate();
        if let Ok(status) = timeout(grace.term, process.wait()).await {
            return status.ok();
        }
    }
    shared.group.kill();
    // Where there are no groups; elsewhere it fails if the child has just ended, which is what is wanted.
    let _ = process.start_kill();
    process.wait().await.ok()
}

/// Ends what the child has left behind in its group.
async fn sweep(shared: &Shared, grace: Grace) {
    if shared.group.is_left() {
        shared.group.terminate();
        if left_after(shared, grace.term).await {
            shared.group.kill();
            left_after(shared, KILL_PATIENCE).await;
        }
    }
}

async fn left_after(shared: &Shared, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while shared.group.is_left() {
        if Instant::now() >= deadline {
            return true;
        }
        sleep(SWEEP_INTERVAL).await;
    }
    false
}

/// What has to be done even if the runtime ends before the child does.
struct Cleanup(Arc<Shared>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.group.kill();
        self.0.group.forget();
        self.0.input.close();
        self.0.gone();
    }
}
