//! Small parts that the other crates of this project share. Not meant for anybody else: anything in here may change
//! at any time.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::task::{JoinError, JoinHandle};

pub use crate::quick_hash::{QuickHash, QuickHasher};

/// A task that ends with whoever started it: dropping this aborts it. Awaiting it gives its result.
#[derive(Debug)]
#[must_use = "dropping it aborts the task"]
pub struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    /// Takes charge of a task.
    pub const fn new(task: JoinHandle<T>) -> Self {
        Self(task)
    }

    /// Ends the task now.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> From<JoinHandle<T>> for AbortOnDrop<T> {
    fn from(task: JoinHandle<T>) -> Self {
        Self(task)
    }
}

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_task_ends_with_its_owner_and_gives_its_result_to_it() {
        let held = Arc::new(());
        let theirs = Arc::clone(&held);
        let task = AbortOnDrop::new(tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(theirs);
        }));
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&held), 2);
        drop(task);
        let ended = async {
            while Arc::strong_count(&held) > 1 {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), ended).await.expect("the task goes on");
        assert_eq!(AbortOnDrop::from(tokio::spawn(async { 7 })).await.ok(), Some(7));
    }
}
