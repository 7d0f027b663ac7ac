//! Other processes that have the same file open, and what they tell each other.
//!
//! A write leaves the wakes it causes in a table, as long as anybody else is there. Each process looks every now and then
//! whether somebody else has written, which costs it no more than a read of shared memory.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};
use toolwire_store::{Hub, StoreError, Topic, memory::Clock};

use crate::{
    error::{failed, from_sql, to_sql},
    log, topics,
};

/// How often a process looks while others are there.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks while it is alone.
const ALONE: Duration = Duration::from_millis(500);
/// How often it says that it is there, in milliseconds.
const BEAT_MS: u64 = 5_000;
/// For how long that holds, in milliseconds.
const PRESENT_MS: u64 = 20_000;
/// How long wakes are kept, in milliseconds.
const WAKES_MS: u64 = 10_000;
/// How long others may not know that this process is there: until they look again.
const UNKNOWN: Duration = Duration::from_secs(2);

pub(crate) struct Neighbours {
    me: [u8; 8],
    clock: Arc<dyn Clock>,
    hub: Hub,
    others: bool,
    beat_ms: u64,
    /// The last wake that was told.
    told: u64,
    data_version: i64,
    opened: Instant,
}

impl Neighbours {
    pub(crate) fn new(connection: &Connection, clock: Arc<dyn Clock>, hub: Hub) -> Result<Self, StoreError> {
        let random: Vec<u8> =
            connection.query_row("SELECT randomblob(8)", [], |row| row.get(0)).map_err(failed)?;
        let told = last_wake(connection)?;
        let data_version = data_version(connection)?;
        let me = crate::error::array(&random)?;
        let opened = Instant::now();
        let mut neighbours = Self { me, clock, hub, others: false, beat_ms: 0, told, data_version, opened };
        neighbours.beat(connection)?;
        Ok(neighbours)
    }

    /// Whether other processes have the file open.
    pub(crate) fn are_there(&self) -> bool {
        self.others
    }

    /// For how long the writer may wait for something to do.
    pub(crate) fn patience(&self) -> Duration {
        if self.others { LOOK } else { ALONE }
    }

    /// Leaves wakes for the others, in the transaction that causes them.
    pub(crate) fn tell(&self, connection: &Connection, wakes: &[Topic], now: u64) -> Result<(), StoreError> {
        if !self.others || wakes.is_empty() {
            return Ok(());
        }
        let mut insert = connection
            .prepare_cached("INSERT INTO wake (client, at, topic) VALUES (?1, ?2, ?3)")
            .map_err(failed)?;
        for topic in wakes {
            if let Some(topic) = topics::to_bytes(topic) {
                insert.execute(params![self.me, to_sql(now), topic]).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Hears what others have left, and says that this process is there. What fails is tried again.
    pub(crate) fn look(&mut self, connection: &Connection) {
        if self.clock.now_ms() >= self.beat_ms.saturating_add(BEAT_MS)
            && let Err(error) = self.beat(connection)
        {
            tracing::warn!(%error, "the file of the store cannot be tidied up");
        }
        if let Err(error) = self.hear(connection) {
            tracing::warn!(%error, "what others have written to the store cannot be seen");
            self.hub.gap();
        }
    }

    fn hear(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let version = data_version(connection)?;
        if version == self.data_version {
            return Ok(());
        }
        self.data_version = version;
        // Somebody is there, even if the last beat did not know of him.
        self.others = true;
        let mut select = connection
            .prepare_cached("SELECT number, client, topic FROM wake WHERE number > ?1 ORDER BY number")
            .map_err(failed)?;
        let wakes = select.query_map(params![to_sql(self.told)], |row| {
            Ok((from_sql(row.get(0)?), row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?))
        });
        let wakes: Result<Vec<_>, _> = wakes.map_err(failed)?.collect();
        let (mut heard, mut gap) = (Vec::new(), false);
        for (number, client, topic) in wakes.map_err(failed)? {
            gap |= number > self.told + 1;
            self.told = number;
            if client != self.me {
                heard.push(topics::from_bytes(&topic));
            }
        }
        // What was left is gone already, or whoever wrote did not know that anybody listens.
        let unknown = heard.is_empty() && self.opened.elapsed() < UNKNOWN;
        if unknown || gap || heard.contains(&None) {
            self.hub.gap();
        }
        self.hub.send(&heard.into_iter().flatten().collect::<Vec<_>>());
        Ok(())
    }

    /// Says that this process is there, finds out who else is, and removes what has expired.
    fn beat(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let now = self.clock.now_ms();
        let is_first = std::mem::replace(&mut self.beat_ms, now) == 0;
        let done = self.beat_in_transaction(connection, now, is_first);
        if !connection.is_autocommit() {
            connection.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).map_err(failed)?;
        }
        self.others = done?;
        Ok(())
    }

    fn beat_in_transaction(
        &self,
        connection: &Connection,
        now: u64,
        is_first: bool,
    ) -> Result<bool, StoreError> {
        connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        if is_first {
            log::limit_endless(connection, now)?;
        }
        let execute = |sql: &str, time: u64| -> Result<(), StoreError> {
            let mut statement = connection.prepare_cached(sql).map_err(failed)?;
            statement.execute(params![to_sql(time)]).map(drop).map_err(failed)
        };
        let mut insert =
            connection.prepare_cached("INSERT OR REPLACE INTO client VALUES (?1, ?2)").map_err(failed)?;
        insert.execute(params![self.me, to_sql(now.saturating_add(PRESENT_MS))]).map_err(failed)?;
        execute("DELETE FROM client WHERE until <= ?1", now)?;
        execute("DELETE FROM wake WHERE at <= ?1", now.saturating_sub(WAKES_MS))?;
        execute("DELETE FROM session WHERE until <= ?1", now)?;
        execute("DELETE FROM node WHERE until <= ?1", now)?;
        execute("DELETE FROM nonce WHERE until <= ?1", now)?;
        execute("DELETE FROM event WHERE log IN (SELECT row FROM head WHERE until <= ?1)", now)?;
        execute("DELETE FROM head WHERE until <= ?1", now)?;
        let present: i64 =
            connection.query_row("SELECT count(*) FROM client", [], |row| row.get(0)).map_err(failed)?;
        Ok(present > 1)
    }

    /// The store is closed.
    pub(crate) fn leave(&self, connection: &Connection) {
        // If it fails, the others find out by themselves.
        let _ = connection.execute("DELETE FROM client WHERE id = ?1", params![self.me]);
    }
}

fn data_version(connection: &Connection) -> Result<i64, StoreError> {
    let mut statement = connection.prepare_cached("PRAGMA data_version").map_err(failed)?;
    statement.query_row([], |row| row.get(0)).map_err(failed)
}

/// The number of the last wake, also if it is gone.
fn last_wake(connection: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'wake'), 0)";
    connection.query_row(sql, [], |row| row.get(0)).map(from_sql).map_err(failed)
}
