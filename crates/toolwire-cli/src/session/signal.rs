//! Being asked to end: by Ctrl-C, by the system, or because the terminal is gone.

/// Which signal has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal(u8);

impl Signal {
    /// Ctrl-C.
    pub(crate) const INTERRUPT: Self = Self(2);

    /// What a program ends with that a signal has ended, as shells have it.
    pub(crate) const fn exit(self) -> u8 {
        128 + self.0
    }
}

/// Waits for Ctrl-C, or for being asked to end in another way. From this call on, and not only from when it is
/// awaited, the signals do not end the program by themselves: whoever waits has to clean up and leave.
#[cfg(unix)]
pub(crate) fn signalled() -> impl Future<Output = Signal> {
    use tokio::signal::unix::{SignalKind, signal};

    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    // A signal that cannot be waited for ends the program in its own way.
    let [interrupt, terminate, hangup, quit] = kinds.map(|kind| signal(kind).ok());
    async {
        tokio::select! {
            () = received(interrupt) => Signal::INTERRUPT,
            () = received(terminate) => Signal(15),
            () = received(hangup) => Signal(1),
            () = received(quit) => Signal(3),
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
pub(crate) async fn signalled() -> Signal {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    Signal::INTERRUPT
}
