//! Sessions and nodes in the file.

use std::{sync::Arc, time::Duration};

use rusqlite::{Connection, OptionalExtension, params};
use toolwire_store::{
    NodeId, Op, SessionKey, SessionRecord, SessionStore, StoreError, Topic, limits::Check, milliseconds,
};

use crate::{
    error::{failed, from_sql, to_sql},
    row::{decode, encode},
    thread::{Now, Threads},
};

/// How many sessions are kept, removed ones included as long as they must not come back.
const SESSIONS: i64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct SqliteSessions(pub(crate) Arc<Threads>);

struct Kept {
    rev: u64,
    seen: u64,
    /// `None` when it was removed.
    record: Option<String>,
}

fn find(connection: &Connection, key: &SessionKey, now: u64) -> Result<Option<Kept>, StoreError> {
    let sql = "SELECT rev, seen, record FROM session WHERE key = ?1 AND until > ?2";
    let mut select = connection.prepare_cached(sql).map_err(failed)?;
    let kept = select.query_row(params![key.as_bytes(), to_sql(now)], |row| {
        Ok(Kept { rev: from_sql(row.get(0)?), seen: from_sql(row.get(1)?), record: row.get(2)? })
    });
    kept.optional().map_err(failed)
}

fn put(
    at: &mut Now<'_>,
    session: &SessionRecord,
    expect: Option<u64>,
    idle: Duration,
) -> Result<u64, StoreError> {
    let (rev, seen) = match (expect, find(at.connection, &session.key, at.now)?) {
        (None, None) => (1, session.seen),
        (Some(expect), Some(kept)) if kept.record.is_some() && kept.rev == expect => {
            (expect + 1, kept.seen.max(session.seen))
        }
        _ => return Err(StoreError::Conflict),
    };
    if expect.is_none() {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM session LIMIT ?1)";
        let mut count = at.connection.prepare_cached(sql).map_err(failed)?;
        // Only the first million are counted, and only for a session that is new.
        let sessions: i64 = count.query_row(params![SESSIONS], |row| row.get(0)).map_err(failed)?;
        if sessions >= SESSIONS {
            return Err(StoreError::Full("sessions"));
        }
    }
    let sql = "INSERT OR REPLACE INTO session (key, rev, seen, until, record) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = at.connection.prepare_cached(sql).map_err(failed)?;
    let until = to_sql(at.now.saturating_add(milliseconds(idle)));
    let record = encode(session)?;
    insert
        .execute(params![session.key.as_bytes(), to_sql(rev), to_sql(seen), until, record])
        .map_err(failed)?;
    at.wakes.push(Topic::Session(session.key));
    Ok(rev)
}

impl SessionStore for SqliteSessions {
    fn put<'a>(&'a self, session: &'a SessionRecord, expect: Option<u64>, idle: Duration) -> Op<'a, u64> {
        if let Err(error) = session.check() {
            return Box::pin(async { Err(error) });
        }
        let session = session.clone();
        self.0.write(move |at| put(at, &session, expect, idle))
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> Op<'a, Option<SessionRecord>> {
        let key = *key;
        self.0.read(move |at| {
            let Some(kept) = find(at.connection, &key, at.now)? else { return Ok(None) };
            let Some(record) = kept.record else { return Ok(None) };
            let mut record: SessionRecord = decode(&record)?;
            (record.rev, record.seen) = (kept.rev, kept.seen);
            Ok(Some(record))
        })
    }

    fn touch<'a>(&'a self, keys: &'a [(SessionKey, u64)], idle: Duration) -> Op<'a, ()> {
        let keys = keys.to_vec();
        self.0.write(move |at| {
            let sql = "UPDATE session SET until = ?2, seen = max(seen, ?3) \
                 WHERE key = ?1 AND until > ?4 AND record IS NOT NULL";
            let mut update = at.connection.prepare_cached(sql).map_err(failed)?;
            let until = to_sql(at.now.saturating_add(milliseconds(idle)));
            for (key, seen) in keys {
                let values = params![key.as_bytes(), until, to_sql(seen), to_sql(at.now)];
                update.execute(values).map_err(failed)?;
            }
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a SessionKey) -> Op<'a, bool> {
        let key = *key;
        self.0.write(move |at| {
            let sql = "UPDATE session SET record = NULL WHERE key = ?1 AND until > ?2 AND record IS NOT NULL";
            let mut update = at.connection.prepare_cached(sql).map_err(failed)?;
            let removed = update.execute(params![key.as_bytes(), to_sql(at.now)]).map_err(failed)?;
            at.wakes.extend((removed > 0).then_some(Topic::Session(key)));
            Ok(removed > 0)
        })
    }

    fn beat<'a>(&'a self, node: &'a NodeId, lease: Duration) -> Op<'a, ()> {
        let node = *node;
        self.0.write_first(move |at| {
            let sql = "INSERT OR REPLACE INTO node (id, until) VALUES (?1, ?2)";
            let mut insert = at.connection.prepare_cached(sql).map_err(failed)?;
            let until = to_sql(at.now.saturating_add(milliseconds(lease)));
            insert.execute(params![node.as_bytes(), until]).map(drop).map_err(failed)
        })
    }

    fn alive<'a>(&'a self, node: &'a NodeId) -> Op<'a, bool> {
        let node = *node;
        self.0.read(move |at| {
            let sql = "SELECT 1 FROM node WHERE id = ?1 AND until > ?2";
            let mut select = at.connection.prepare_cached(sql).map_err(failed)?;
            select.exists(params![node.as_bytes(), to_sql(at.now)]).map_err(failed)
        })
    }
}
