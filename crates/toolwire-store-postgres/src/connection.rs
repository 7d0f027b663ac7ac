//! Four connections that all operations share, and how they are made again.
//!
//! Nothing that an operation refuses has written anything before, so one that is refused does not disturb the others.
//! Locks are taken in one order by all: those of quotas first, then those of rows by their ids.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, Row, Statement, Transaction};
use toolwire_store::{StoreError, Topic};

use crate::TIME_LIMIT;
use crate::listen::Waker;
use crate::settings::Settings;
use crate::tls::{Encrypted, Tls};
use crate::worker::Worker;

/// How many connections operations share.
const CONNECTIONS: usize = 4;

/// Time limit of an operation that waits for a lock, has done so in vain before, and has a transaction of its own now.
const ALONE_LOCK_LIMIT: Duration = Duration::from_millis(1500);

/// How many operations may wait.
const WAITING: usize = 4096;

pub(crate) type Driver =
    tokio_postgres::Connection<tokio_postgres::Socket, Encrypted<tokio_postgres::Socket>>;

pub(crate) type Pinned<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where the server is.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    tls: Tls,
    /// The place of the host that is tried first: the last one that was reached, or the one after the last that was not.
    first: AtomicUsize,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.settings.fmt(f)
    }
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Result<Self, String> {
        let tls = Tls::new(settings.roots.as_deref())?;
        Ok(Self { settings, tls, first: AtomicUsize::new(0) })
    }

    /// Connects to the first host that can be written to.
    pub(crate) async fn connect(&self) -> Result<(Client, Driver), StoreError> {
        let (hosts, limit) = (&self.settings.hosts, self.settings.host_limit());
        let mut failed = StoreError::unavailable("the URL of Postgres names no host");
        let first = self.first.load(Ordering::Relaxed);
        for (place, host) in
            hosts.iter().enumerate().cycle().skip(first % hosts.len().max(1)).take(hosts.len())
        {
            failed = match timeout(limit, self.begin(host)).await {
                Ok(Ok(made)) => {
                    self.first.store(place, Ordering::Relaxed);
                    return Ok(made);
                }
                Ok(Err(error)) => explain(&error),
                Err(_) => StoreError::unavailable(format!("Postgres did not answer within {limit:?}")),
            };
            // Now, because the caller may give up before the rest is tried: then the next try begins with the next host.
            self.first.store(place + 1, Ordering::Relaxed);
        }
        Err(failed)
    }

    /// Connects to a host, and begins a session.
    async fn begin(&self, host: &Config) -> Result<(Client, Driver), Error> {
        let (client, mut driver) = host.connect(self.tls.clone()).await?;
        let session = self.settings.session();
        let check = Settings::client_check();
        let prepare = async {
            client.batch_execute(&session).await?;
            match client.batch_execute(&check).await {
                // The server runs on a system that cannot.
                Err(error) if error.as_db_error().is_some() => Ok(()),
                done => done,
            }
        };
        {
            let mut prepare = std::pin::pin!(prepare);
            tokio::select! {
                done = &mut prepare => done?,
                // The server has ended the connection, which the statements learn as well.
                ended = &mut driver => { ended?; prepare.await? }
            }
        }
        Ok((client, driver))
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

impl<'a> At<'a> {
    pub(crate) fn new(client: &'a Transaction<'a>, statements: &'a mut Statements) -> Self {
        Self { client, now: 0, wakes: Vec::new(), statements }
    }
}

/// What this connection has prepared.
pub(crate) type Statements = HashMap<&'static str, Statement>;

type Parameters<'a> = [&'a (dyn ToSql + Sync)];

impl At<'_> {
    /// Lets statements of this transaction wait longer for locks: it is not shared.
    pub(crate) async fn wait_longer(&mut self) -> Result<(), Error> {
        self.client.batch_execute(&format!("SET LOCAL lock_timeout = {}", ALONE_LOCK_LIMIT.as_millis())).await
    }

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

/// In which order operations are done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Takes the locks of several rows, in their order, so it has a transaction of its own, before the others.
    Alone,
    /// Takes the lock of a quota.
    Quota(Vec<u8>),
    /// Takes the lock of a row.
    Row(Vec<u8>),
    /// Waits for nobody.
    Last,
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
pub(crate) trait Job: Send {
    fn order(&self) -> Order;
    fn is_wanted(&self) -> bool;
    /// Returns whether it has waited for a lock in vain.
    fn has_waited(&self) -> bool;
    fn set_waited(&mut self);
    /// Whether it is done or refused. Its answer is kept until it is known what became of the transaction.
    fn run<'a>(&'a mut self, at: &'a mut At<'_>) -> Pinned<'a, Result<(), Error>>;
    fn answer(self: Box<Self>, broken: Option<StoreError>);
}

struct Waiting<O: Operation> {
    operation: O,
    has_waited: bool,
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

    fn has_waited(&self) -> bool {
        self.has_waited
    }

    fn set_waited(&mut self) {
        self.has_waited = true;
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
            let worker = Worker::new(Arc::clone(server), waker.clone(), sender.clone());
            tokio::spawn(worker.work(Arc::clone(&receiver)))
        };
        let workers = (0..CONNECTIONS).map(worker).collect();
        Self { sender, workers }
    }

    pub(crate) async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let late = || StoreError::unavailable(format!("Postgres did not answer within {TIME_LIMIT:?}"));
        let gone = || StoreError::unavailable("the store is closed");
        let (sender, receiver) = oneshot::channel();
        let deadline = Instant::now() + TIME_LIMIT;
        let job = Box::new(Waiting { operation, has_waited: false, done: None, sender });
        timeout_at(deadline, self.sender.send(job)).await.map_err(|_| late())?.map_err(|_| gone())?;
        timeout_at(deadline, receiver).await.map_err(|_| late())?.map_err(|_| gone())?
    }
}

fn code(error: &Error) -> &str {
    error.code().map_or("", tokio_postgres::error::SqlState::code)
}

/// Returns whether the connection is of no use any more: the server is shutting down, has become one that cannot be written to, or
/// has given this client up because it was silent.
pub(crate) fn is_over(error: &Error) -> bool {
    matches!(code(error), "25006" | "25P03") || code(error).starts_with("57P0")
}

/// Returns whether another transaction has had a lock for too long, or two have waited for each other.
pub(crate) fn has_waited(error: &Error) -> bool {
    matches!(code(error), "55P03" | "40P01")
}

/// What an error of Postgres means for whoever has called. Neither it nor its parts have a password in them.
pub(crate) fn explain(error: &Error) -> StoreError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    match code(error) {
        // The disk is full, or whatever else is used up.
        "53100" => StoreError::Full("data in Postgres, whose disk is full"),
        // A value that Postgres cannot take or read: it will not another time either.
        code if code.starts_with("22") => StoreError::corrupt(format!("Postgres: {text}")),
        _ => StoreError::unavailable(format!("Postgres: {text}")),
    }
}
