//! Being asked to end: by Ctrl-C, by the system, or because the terminal is gone.

/// Waits for Ctrl-C, or for being asked to end in another way. From this call on, and not only from when it is
/// awaited, the signals do not end the program by themselves: whoever waits has to clean up and leave.
#[cfg(unix)]
pub(crate) fn signalled() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};

    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    // A signal that cannot be waited for ends the program in its own way.
    let [interrupt, terminate, hangup, quit] = kinds.map(|kind| signal(kind).ok());
    async {
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
            () = received(hangup) => {}
            () = received(quit) => {}
        }
    }
}

#[cfg(unix)]
async fn received(signal: Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(mut signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub(crate) async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
