//! Four connections that all operations share, and how they are made again.
//!
//! What waits for a connection goes together between one `BEGIN` and one `COMMIT`: a server flushes its log once per commit,
//! and one by one four connections would wait for the disk most of the time. If something goes wrong with one of
//! them, or two transactions wait for each other, each is repeated alone.
//!
//! Nothing that an operation refuses has written anything before, so one that is refused does not disturb the others.
//! Locks are taken in one order by all: those of quotas first, then those of rows by their ids.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement, Transaction};
use toolwire_store::{StoreError, Topic};

use crate::TIME_LIMIT;
use crate::listen::Waker;
use crate::settings::Settings;
use crate::tls::{Encrypted, Tls};

/// How many connections operations share.
const CONNECTIONS: usize = 4;

/// How many operations go together.
const TOGETHER: usize = 64;

/// How many operations may wait.
const WAITING: usize = 4096;

/// How long to wait before a connection is tried again.
const AGAIN: Duration = Duration::from_millis(50);

pub(crate) type Driver =
    tokio_postgres::Connection<tokio_postgres::Socket, Encrypted<tokio_postgres::Socket>>;

pub(crate) type Pinned<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where the server is.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    tls: Tls,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.settings.fmt(f)
    }
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Result<Self, String> {
        let tls = Tls::new(settings.roots.as_deref())?;
        Ok(Self { settings, tls })
    }

    pub(crate) async fn connect(&self) -> Result<(Client, Driver), Error> {
        self.settings.config.connect(self.tls.clone()).await
    }
}

/// Why an operation has not been done.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It is refused; nothing was written.
    Refused(StoreError),
    /// The server could not do it, and the transaction is over.
    Broken(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// A transaction that an operation takes part in.
pub(crate) struct At<'a> {
    client: &'a Transaction<'a>,
    /// The server's time when the transaction began.
    pub(crate) now: u64,
    /// What has changed, to be told when it is visible.
    pub(crate) wakes: Vec<Topic>,
    statements: &'a mut Statements,
}

/// What this connection has prepared.
type Statements = HashMap<&'static str, Statement>;

type Parameters<'a> = [&'a (dyn ToSql + Sync)];

impl At<'_> {
    /// Runs a statement, which is prepared once per connection.
    pub(crate) async fn query(
        &mut self,
        sql: &'static str,
        with: &Parameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = if let Some(statement) = self.statements.get(sql) {
            statement.clone()
        } else {
            let statement = self.client.prepare(sql).await?;
            self.statements.insert(sql, statement.clone());
            statement
        };
        self.client.query(&statement, with).await
    }

    /// The first row, if there is one.
    pub(crate) async fn first(
        &mut self,
        sql: &'static str,
        with: &Parameters<'_>,
    ) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, with).await?.into_iter().next())
    }
}

/// In which order operations of a transaction are done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Takes the lock of a quota.
    Quota(Vec<u8>),
    /// Takes the lock of a row.
    Row(Vec<u8>),
    /// Waits for nobody.
    Last,
    /// Takes the locks of several rows, in their order, so it has a transaction of its own.
    Alone,
}

impl Order {
    pub(crate) fn row(table: &str, key: &[u8]) -> Self {
        Self::Row([table.as_bytes(), b":", key].concat())
    }
}

/// Something to be done in a transaction. It may be begun more than once; only one of them counts.
pub(crate) trait Operation: Send + Sync + 'static {
    type Output: Send + 'static;

    fn order(&self) -> Order;

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Pinned<'a, Result<Self::Output, Failed>>;
}

/// An operation whose type nobody needs to know.
trait Job: Send {
    fn order(&self) -> Order;
    fn is_wanted(&self) -> bool;
    /// Whether it is done or refused. Its answer is kept until it is known what became of the transaction.
    fn run<'a>(&'a mut self, at: &'a mut At<'_>) -> Pinned<'a, Result<(), Error>>;
    fn answer(self: Box<Self>, broken: Option<StoreError>);
}

struct Waiting<O: Operation> {
    operation: O,
    done: Option<Result<O::Output, StoreError>>,
    sender: oneshot::Sender<Result<O::Output, StoreError>>,
}

impl<O: Operation> Job for Waiting<O> {
    fn order(&self) -> Order {
        self.operation.order()
    }

    fn is_wanted(&self) -> bool {
        !self.sender.is_closed()
    }

    fn run<'a>(&'a mut self, at: &'a mut At<'_>) -> Pinned<'a, Result<(), Error>> {
        Box::pin(async move {
            self.done = Some(match self.operation.run(at).await {
                Ok(output) => Ok(output),
                Err(Failed::Refused(error)) => Err(error),
                Err(Failed::Broken(error)) => return Err(error),
            });
            Ok(())
        })
    }

    fn answer(self: Box<Self>, broken: Option<StoreError>) {
        let Self { done, sender, .. } = *self;
        let answer = match (broken, done) {
            (Some(error), _) => Err(error),
            (None, Some(done)) => done,
            (None, None) => Err(StoreError::unavailable("the operation was not carried out")),
        };
        // Whoever has gone does not want to know.
        let _ = sender.send(answer);
    }
}

/// The connections.
pub(crate) struct Connections {
    sender: mpsc::Sender<Box<dyn Job>>,
    workers: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.workers.iter().for_each(JoinHandle::abort);
    }
}

impl Connections {
    pub(crate) fn new(server: &Arc<Server>, waker: &Waker) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        let worker = |_| {
            let worker = Worker {
                server: Arc::clone(server),
                waker: waker.clone(),
                client: None,
                statements: HashMap::new(),
            };
            tokio::spawn(worker.work(Arc::clone(&receiver)))
        };
        Self { sender, workers: (0..CONNECTIONS).map(worker).collect() }
    }

    pub(crate) async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let late = || StoreError::unavailable(format!("Postgres did not answer within {TIME_LIMIT:?}"));
        let gone = || StoreError::unavailable("the store is closed");
        let (sender, receiver) = oneshot::channel();
        let deadline = Instant::now() + TIME_LIMIT;
        let job = Box::new(Waiting { operation, done: None, sender });
        timeout_at(deadline, self.sender.send(job)).await.map_err(|_| late())?.map_err(|_| gone())?;
        timeout_at(deadline, receiver).await.map_err(|_| late())?.map_err(|_| gone())?
    }
}

/// Has one connection.
struct Worker {
    server: Arc<Server>,
    waker: Waker,
    client: Option<(Client, JoinHandle<()>)>,
    statements: Statements,
}

impl Worker {
    async fn work(mut self, jobs: Arc<Mutex<mpsc::Receiver<Box<dyn Job>>>>) {
        // Logging in takes a while, so it is done before somebody waits for it. If it fails, whoever comes is told.
        let _ = timeout(TIME_LIMIT, self.connect()).await;
        loop {
            let mut gathered = Vec::new();
            if jobs.lock().await.recv_many(&mut gathered, TOGETHER).await == 0 {
                return;
            }
            gathered.retain(|job| job.is_wanted());
            gathered.sort_by_key(|job| job.order());
            let mut alone = gathered.split_off(gathered.partition_point(|job| job.order() != Order::Alone));
            if gathered.len() > 1 {
                gathered = self.together(gathered).await.0;
            }
            gathered.append(&mut alone);
            for job in gathered {
                let (left, broken) = self.together(vec![job]).await;
                for job in left {
                    job.answer(broken.clone());
                }
            }
        }
    }

    /// Does all of them in one transaction and answers them. If that fails, they are given back with the reason.
    async fn together(&mut self, mut jobs: Vec<Box<dyn Job>>) -> (Vec<Box<dyn Job>>, Option<StoreError>) {
        let done = timeout(TIME_LIMIT, self.transaction(&mut jobs)).await;
        let late = || StoreError::unavailable(format!("Postgres did not answer within {TIME_LIMIT:?}"));
        match done.unwrap_or_else(|_| {
            self.close();
            Err(late())
        }) {
            Ok(wakes) => {
                self.waker.wake(wakes);
                for job in jobs {
                    job.answer(None);
                }
                (Vec::new(), None)
            }
            Err(error) => (jobs, Some(error)),
        }
    }

    async fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<Topic>, StoreError> {
        let mut again = true;
        loop {
            self.connect().await?;
            let Some((client, _)) = &mut self.client else {
                return Err(StoreError::unavailable("there is no connection"));
            };
            let mut is_open = true;
            let done = attempt(client, &mut self.statements, jobs, &mut is_open).await;
            let is_closed = client.is_closed() || done.as_ref().is_err_and(Error::is_closed);
            if is_closed {
                self.close();
            }
            match done {
                // The connection has ended before anything was committed: nothing has happened yet.
                Err(_) if is_closed && is_open && std::mem::take(&mut again) => {}
                done => return done.map_err(|error| explain(&error)),
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
                // Whoever comes next need not find out the same at once.
                tokio::time::sleep(AGAIN).await;
                return Err(explain(&error));
            }
        };
        let driver = tokio::spawn(async move {
            // Whoever waits for it is told the error.
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

async fn attempt(
    client: &mut Client,
    statements: &mut Statements,
    jobs: &mut [Box<dyn Job>],
    is_open: &mut bool,
) -> Result<Vec<Topic>, Error> {
    let transaction = client.transaction().await?;
    let mut at = At { client: &transaction, now: 0, wakes: Vec::new(), statements };
    let now = at.first("SELECT (extract(epoch FROM now()) * 1000)::bigint", &[]).await?;
    let now = now.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    at.now = now.and_then(|now| u64::try_from(now).ok()).unwrap_or_default();
    for job in jobs {
        job.run(&mut at).await?;
    }
    let wakes = at.wakes;
    // From here on nobody knows whether it has happened unless the server says so.
    *is_open = false;
    transaction.commit().await?;
    Ok(wakes)
}

/// What an error of Postgres means for whoever has called. Neither it nor its parts have a password in them.
pub(crate) fn explain(error: &Error) -> StoreError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    match error.code().map(tokio_postgres::error::SqlState::code) {
        // The disk is full, or whatever else is used up.
        Some("53100") => StoreError::Full("data in Postgres, whose disk is full"),
        _ => StoreError::unavailable(format!("Postgres: {text}")),
    }
}
