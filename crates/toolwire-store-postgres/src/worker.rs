//! Has one connection, and does operations on it.
//!
//! Operations that wait for a connection share a transaction: a server flushes its log once per commit, and four
//! connections that commit one operation each would wait for the disk most of the time. If something goes wrong with one
//! of them, each is repeated alone. One that has waited for a lock for too long is taken out, so that the others go on, and is
//! tried again alone until its caller has gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Error};
use toolwire_store::{StoreError, Topic};

use crate::TIME_LIMIT;
use crate::connection::{At, Job, Order, Server, Statements, explain, has_waited, is_over};
use crate::listen::Waker;

/// Limit of the operations that share a transaction.
const TOGETHER: usize = 64;

/// Limit of the tries of operations that share a transaction, each time without one that waits for a lock.
const ROUNDS: usize = 3;

/// Time limit of operations that share a transaction, which leaves time to do each by itself.
const TOGETHER_LIMIT: Duration = Duration::from_secs(3);

/// Pause before a connection is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// Why operations have not been done.
struct Undone {
    jobs: Vec<Box<dyn Job>>,
    trouble: Trouble,
}

enum Trouble {
    /// There is no connection.
    Unreachable(StoreError),
    /// This one of them has waited for a lock for too long.
    Locked(usize, StoreError),
    /// Anything else. Perhaps only one of them is the reason.
    Other(StoreError),
}

impl Trouble {
    fn late(limit: Duration) -> Self {
        Self::Other(StoreError::unavailable(format!("Postgres did not answer within {limit:?}")))
    }
}

/// Has one connection.
pub(crate) struct Worker {
    server: Arc<Server>,
    waker: Waker,
    /// Where operations come from: what cannot be done now goes back.
    later: mpsc::Sender<Box<dyn Job>>,
    client: Option<(Client, JoinHandle<()>)>,
    statements: Statements,
}

impl Worker {
    pub(crate) fn new(server: Arc<Server>, waker: Waker, later: mpsc::Sender<Box<dyn Job>>) -> Self {
        Self { server, waker, later, client: None, statements: HashMap::new() }
    }

    pub(crate) async fn work(mut self, jobs: Arc<Mutex<mpsc::Receiver<Box<dyn Job>>>>) {
        // Logging in takes a while, so it is done before an operation waits for it. If it fails, the first operation is told.
        let _ = timeout(TIME_LIMIT, self.connect()).await;
        loop {
            let mut gathered = Vec::new();
            if jobs.lock().await.recv_many(&mut gathered, TOGETHER).await == 0 {
                return;
            }
            gathered.sort_by_key(|job| (job.has_waited(), job.order()));
            let mut waited = gathered.split_off(gathered.partition_point(|job| !job.has_waited()));
            let together = gathered.split_off(gathered.partition_point(|job| job.order() == Order::Alone));
            for job in gathered {
                waited.extend(self.alone(job).await);
            }
            waited.extend(self.in_rounds(together).await);
            self.one_by_one(waited).await;
        }
    }

    /// Does as many as possible together. Those that wait for a lock are given back.
    async fn in_rounds(&mut self, mut jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        let mut waited = Vec::new();
        for _ in 0..ROUNDS {
            let Err(undone) = self.together(jobs).await else { return waited };
            jobs = undone.jobs;
            match undone.trouble {
                Trouble::Locked(place, _) if place < jobs.len() => {
                    let mut job = jobs.remove(place);
                    job.set_waited();
                    waited.push(job);
                }
                Trouble::Unreachable(error) => {
                    answer_all(jobs, &error);
                    return waited;
                }
                Trouble::Other(error) | Trouble::Locked(_, error) if jobs.len() < 2 => {
                    answer_all(jobs, &error);
                    return waited;
                }
                Trouble::Other(_) | Trouble::Locked(..) => {
                    for job in jobs {
                        waited.extend(self.alone(job).await);
                    }
                    return waited;
                }
            }
        }
        for job in jobs {
            self.put_back(job);
        }
        waited
    }

    /// Does one by itself. If it waits for a lock, it is given back.
    async fn alone(&mut self, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let undone = self.together(vec![job]).await.err()?;
        match undone.trouble {
            Trouble::Locked(..) => undone.jobs.into_iter().next().map(|mut job| {
                job.set_waited();
                job
            }),
            Trouble::Unreachable(error) | Trouble::Other(error) => {
                answer_all(undone.jobs, &error);
                None
            }
        }
    }

    /// Does those that have waited for locks until one has to wait again: others come first then.
    async fn one_by_one(&mut self, jobs: Vec<Box<dyn Job>>) {
        let mut is_held_up = false;
        for job in jobs {
            let left = if is_held_up { Some(job) } else { self.alone(job).await };
            if let Some(job) = left {
                is_held_up = true;
                self.put_back(job);
            }
        }
    }

    /// Tries it again later, if it is still wanted and there is room.
    fn put_back(&self, job: Box<dyn Job>) {
        if let Err(mpsc::error::TrySendError::Full(job)) = self.later.try_send(job) {
            job.answer(Some(StoreError::unavailable("too many operations wait for Postgres")));
        }
    }

    /// Does all of them that are wanted in one transaction and answers them. If that fails, they are given back.
    async fn together(&mut self, mut jobs: Vec<Box<dyn Job>>) -> Result<(), Undone> {
        jobs.retain(|job| job.is_wanted());
        if jobs.is_empty() {
            return Ok(());
        }
        let limit = if jobs.len() > 1 { TOGETHER_LIMIT } else { TIME_LIMIT };
        let done = timeout(limit, self.transaction(&mut jobs)).await;
        match done.unwrap_or_else(|_| {
            self.close();
            Err(Trouble::late(limit))
        }) {
            Ok(wakes) => {
                self.waker.wake(wakes);
                for job in jobs {
                    job.answer(None);
                }
                Ok(())
            }
            Err(trouble) => Err(Undone { jobs, trouble }),
        }
    }

    async fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<Topic>, Trouble> {
        let mut again = true;
        loop {
            self.connect().await.map_err(Trouble::Unreachable)?;
            let Some((client, _)) = &mut self.client else {
                return Err(Trouble::Unreachable(StoreError::unavailable("there is no connection")));
            };
            let mut progress = Progress::Begun;
            let done = attempt(client, &mut self.statements, jobs, &mut progress).await;
            let is_closed =
                client.is_closed() || done.as_ref().is_err_and(|error| error.is_closed() || is_over(error));
            if is_closed {
                self.close();
            }
            match (done, progress) {
                (Ok(wakes), _) => return Ok(wakes),
                // The connection has ended before anything was committed: nothing has happened yet.
                (Err(_), Progress::Begun | Progress::At(_)) if is_closed && std::mem::take(&mut again) => {}
                (Err(error), Progress::At(place)) if has_waited(&error) => {
                    return Err(Trouble::Locked(place, explain(&error)));
                }
                (Err(error), _) => return Err(Trouble::Other(explain(&error))),
            }
        }
    }

    /// Makes a connection if there is none.
    async fn connect(&mut self) -> Result<(), StoreError> {
        if self.client.as_ref().is_some_and(|(client, _)| client.is_closed()) {
            self.close();
        }
        if self.client.is_some() {
            return Ok(());
        }
        let (client, connection) = match self.server.connect().await {
            Ok(made) => made,
            Err(error) => {
                // The next operation need not find out the same at once.
                tokio::time::sleep(AGAIN).await;
                return Err(error);
            }
        };
        let driver = tokio::spawn(async move {
            // The operations that wait for it are told the error.
            let _ = connection.await;
        });
        self.client = Some((client, driver));
        Ok(())
    }

    fn close(&mut self) {
        self.statements.clear();
        if let Some((_, driver)) = self.client.take() {
            driver.abort();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.close();
    }
}

fn answer_all(jobs: Vec<Box<dyn Job>>, error: &StoreError) {
    for job in jobs {
        job.answer(Some(error.clone()));
    }
}

/// Progress of a transaction.
#[derive(Clone, Copy)]
enum Progress {
    Begun,
    /// The operation at this place is being done.
    At(usize),
    /// From here on only the server knows whether it has happened.
    Committing,
}

async fn attempt(
    client: &mut Client,
    statements: &mut Statements,
    jobs: &mut [Box<dyn Job>],
    progress: &mut Progress,
) -> Result<Vec<Topic>, Error> {
    let transaction = client.transaction().await?;
    let mut at = At::new(&transaction, statements);
    let now = at.first("SELECT (extract(epoch FROM now()) * 1000)::bigint", &[]).await?;
    let now = now.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    at.now = now.and_then(|now| u64::try_from(now).ok()).unwrap_or_default();
    if jobs.iter().all(|job| job.has_waited()) {
        at.wait_longer().await?;
    }
    for (place, job) in jobs.iter_mut().enumerate() {
        // The one before may have taken long enough.
        if job.is_wanted() {
            *progress = Progress::At(place);
            job.run(&mut at).await?;
        }
    }
    let wakes = at.wakes;
    *progress = Progress::Committing;
    transaction.commit().await?;
    Ok(wakes)
}
