//! The one connection that all commands share, and how it is made again.
//!
//! Commands of many callers are under way on it at the same time. Whatever fails on the way to the server ends it, and the
//! next command makes another; a connection that does not answer in time is given up the same way, because nobody
//! knows whether it ever will.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use toolwire_store::StoreError;

use crate::check::Facts;
use crate::script::Call;
use crate::settings::{Host, Settings};
use crate::tls;

/// How long any operation may take, from its call to its answer.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);

/// How long one host may take to be connected to: others may be there.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// How many commands may wait to be sent.
const WAITING_COMMANDS: usize = 1024;

/// How often a command is sent again when the connection has ended under it or was no longer the primary's.
const TRIES: usize = 3;

/// What an encrypted connection and a plain one have in common.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Makes connections, and has the one that commands share.
#[derive(Debug)]
pub(crate) struct Connections {
    settings: Settings,
    tls: Option<Tls>,
    current: Mutex<Current>,
    /// Whether the server was durable when the store was opened, once it was.
    opened: OnceLock<bool>,
}

struct Tls(TlsConnector);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

#[derive(Debug, Default)]
struct Current {
    shared: Option<Arc<Shared>>,
    /// Which of the hosts was the primary when it was last found.
    host: usize,
}

/// A connection, until nobody uses it any more.
#[derive(Debug)]
struct Shared {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// What the server is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work<'a> {
    Script(&'a Call<'a>),
    Command(&'a Cmd),
}

impl Work<'_> {
    async fn run(self, connection: &mut MultiplexedConnection) -> RedisResult<Value> {
        match self {
            Self::Script(call) => call.run(connection).await,
            Self::Command(command) => command.query_async(connection).await,
        }
    }
}

impl Connections {
    pub(crate) fn new(settings: Settings) -> Result<Self, String> {
        let tls = settings.tls.as_ref().map(tls::connector).transpose()?.map(Tls);
        Ok(Self { settings, tls, current: Mutex::default(), opened: OnceLock::new() })
    }

    /// Asks the server for facts about itself.
    pub(crate) async fn facts(&self) -> Result<Facts, StoreError> {
        let late = |_| StoreError::unavailable(format!("Redis did not answer within {TIME_LIMIT:?}"));
        let facts = async {
            let mut connection = self.shared().await?.connection.clone();
            Facts::of(&mut connection).await.map_err(|error| explain(&error))
        };
        tokio::time::timeout(TIME_LIMIT, facts).await.map_err(late)?
    }

    /// Compares every server that is connected to from now on with the first one.
    pub(crate) fn set_opened(&self, durable: bool) {
        let _ = self.opened.set(durable);
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.settings.prefix
    }

    /// Does something that does no harm when it is done twice: it is tried again where the connection has ended.
    pub(crate) async fn run(&self, work: Work<'_>) -> Result<Value, StoreError> {
        self.attempt(TRIES, work).await
    }

    /// Does something that is better not done twice.
    pub(crate) async fn run_once(&self, work: Work<'_>) -> Result<Value, StoreError> {
        self.attempt(1, work).await
    }

    async fn attempt(&self, most: usize, work: Work<'_>) -> Result<Value, StoreError> {
        let deadline = Instant::now() + TIME_LIMIT;
        let late = || StoreError::unavailable(format!("Redis did not answer within {TIME_LIMIT:?}"));
        let mut attempts = 1;
        loop {
            let shared = timeout_at(deadline, self.shared()).await.map_err(|_| late())??;
            let mut connection = shared.connection.clone();
            let Ok(done) = timeout_at(deadline, work.run(&mut connection)).await else {
                self.give_up(&shared).await;
                return Err(late());
            };
            let error = match done {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if is_about_the_connection(&error) {
                self.give_up(&shared).await;
                if attempts < most {
                    attempts += 1;
                    continue;
                }
            }
            return Err(explain(&error));
        }
    }

    /// The connection that there is, or a new one.
    async fn shared(&self) -> Result<Arc<Shared>, StoreError> {
        let mut current = self.current.lock().await;
        if let Some(shared) = current.shared.as_ref().filter(|shared| !shared.driver.is_finished()) {
            return Ok(Arc::clone(shared));
        }
        current.shared = None;
        let (host, shared) = self.find_primary(current.host).await?;
        current.host = host;
        Ok(Arc::clone(current.shared.insert(Arc::new(shared))))
    }

    /// Lets the next command make a new connection, unless somebody has done so already.
    async fn give_up(&self, shared: &Arc<Shared>) {
        let mut current = self.current.lock().await;
        if current.shared.as_ref().is_some_and(|known| Arc::ptr_eq(known, shared)) {
            current.shared = None;
            // Perhaps it is another one now.
            current.host = (current.host + 1) % self.settings.hosts.len();
        }
    }

    /// Looks for the primary, beginning with one of the hosts.
    async fn find_primary(&self, first: usize) -> Result<(usize, Shared), StoreError> {
        let count = self.settings.hosts.len();
        let mut failed = Vec::new();
        for index in (first..first + count).map(|index| index % count) {
            let host = &self.settings.hosts[index];
            match tokio::time::timeout(CONNECT_LIMIT, self.open(host)).await {
                Ok(Ok(shared)) => return Ok((index, shared)),
                Ok(Err(error)) => failed.push(format!("{host}: {error}")),
                Err(_) => failed.push(format!("{host}: no answer within {CONNECT_LIMIT:?}")),
            }
        }
        Err(StoreError::unavailable(format!("Redis cannot be reached at {}", failed.join("; "))))
    }

    async fn open(&self, host: &Host) -> RedisResult<Shared> {
        let stream = self.connect(host).await?;
        // The time is kept by whoever asks, over all tries.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(WAITING_COMMANDS);
        let made = MultiplexedConnection::new_with_config(&self.settings.login, stream, config).await?;
        let (connection, driver) = made;
        let mut shared = Shared { connection, driver: tokio::spawn(driver) };
        self.expect_primary(&mut shared.connection).await?;
        self.expect_no_worse(host, &mut shared.connection).await?;
        Ok(shared)
    }

    /// Refuses a server that forgets keys by itself. After a failover it may be another one than at first, and after a restart
    /// it may have other settings.
    async fn expect_no_worse(&self, host: &Host, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let Some(was_durable) = self.opened.get() else { return Ok(()) };
        let facts = Facts::of(connection).await?;
        if let Some(policy) = facts.evicts() {
            let why = format!("its maxmemory-policy is {policy}: set it to noeviction");
            return Err(RedisError::from(io::Error::other(why)));
        }
        if *was_durable && !facts.is_durable() {
            tracing::warn!(%host, "Redis does not keep over a restart what it acknowledges; it did when the store was opened");
        }
        Ok(())
    }

    /// Whether this host can be written to. Where there is only one it does not matter why not: its errors say so.
    async fn expect_primary(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        // In a cluster this says who has our keys.
        redis::cmd("EXISTS")
            .arg(format!("{}meta", self.settings.prefix))
            .query_async::<Value>(connection)
            .await?;
        if self.settings.hosts.len() > 1 {
            let role: Vec<Value> = redis::cmd("ROLE").query_async(connection).await?;
            let is_primary = matches!(role.first(), Some(Value::BulkString(role)) if role == b"master");
            if !is_primary {
                return Err(RedisError::from(io::Error::other("is a replica")));
            }
        }
        Ok(())
    }

    /// A connection that only listens.
    pub(crate) async fn subscribe(&self, channel: &str) -> Result<PubSub, StoreError> {
        let host = { self.current.lock().await.host };
        let host = &self.settings.hosts[host];
        let made = async {
            let mut listening = PubSub::new(&self.settings.login, self.connect(host).await?).await?;
            listening.subscribe(channel).await?;
            RedisResult::Ok(listening)
        };
        match tokio::time::timeout(TIME_LIMIT, made).await {
            Ok(made) => made.map_err(|error| explain(&error)),
            Err(_) => Err(StoreError::unavailable(format!("{host}: no answer within {TIME_LIMIT:?}"))),
        }
    }

    async fn connect(&self, host: &Host) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((host.name.as_str(), host.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            Some(Tls(connector)) => Ok(Box::new(tls::handshake(connector, &host.name, stream).await?)),
            None => Ok(Box::new(stream)),
        }
    }
}

/// Whether another connection, perhaps to another host, may do better.
fn is_about_the_connection(error: &RedisError) -> bool {
    let elsewhere = matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::ReadOnly
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::BusyLoading
        ) | ErrorKind::Io
            | ErrorKind::Parse
    );
    elsewhere || error.is_connection_dropped() || error.is_unrecoverable_error()
}

/// What an error of Redis means for whoever has called.
pub(crate) fn explain(error: &RedisError) -> StoreError {
    match error.code() {
        Some("OOM") => StoreError::Full("data in Redis, which has all the memory that its maxmemory allows"),
        _ => StoreError::unavailable(format!("Redis: {error}")),
    }
}
