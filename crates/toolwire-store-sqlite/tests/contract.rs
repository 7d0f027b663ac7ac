//! The store in a file keeps the contract of stores: with a clock that is moved by hand, and with that of the machine.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use toolwire_store::Store;
use toolwire_store_sqlite::{SqliteOptions, open_with};
use toolwire_testkit::{FakeClock, store::contract::Backend};

type Later<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A file of its own, which is removed when the rule has been checked.
#[derive(Debug)]
struct File {
    path: PathBuf,
    clock: Option<FakeClock>,
}

impl File {
    fn new(clock: Option<FakeClock>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("contract-{}-{number}.db", std::process::id());
        let file = Self { path: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name), clock };
        file.remove();
        file
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm", "-turn"] {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            let _ = std::fs::remove_file(name);
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Backend for File {
    fn connect(&self) -> Later<'_, Store> {
        Box::pin(async {
            let mut options = SqliteOptions::new(&self.path);
            if let Some(clock) = &self.clock {
                options.clock = Arc::new(clock.clone());
            }
            open_with(options).await.unwrap()
        })
    }

    fn pass(&self, time: Duration) -> Later<'_, ()> {
        Box::pin(async move {
            match &self.clock {
                Some(clock) => clock.advance(time),
                None => tokio::time::sleep(time).await,
            }
        })
    }

    fn restart(&self) -> Later<'_, bool> {
        // All that there is lies in the file.
        Box::pin(async { true })
    }
}

mod by_hand {
    toolwire_testkit::store_contract!(super::File::new(Some(toolwire_testkit::FakeClock::new())));
}

mod by_the_machine {
    toolwire_testkit::store_contract!(super::File::new(None));
}
