//! Sessions, and which nodes are alive.

use std::sync::Arc;
use std::time::Duration;

use toolwire_store::{
    NodeId, Op, SessionKey, SessionRecord, SessionStore, StoreError, Topic, limits::Check, milliseconds,
};

use crate::connection::{At, Connections, Failed, Operation, Order, Pinned};
use crate::tasks::{signed, unsigned};

type Done<'a, T> = Pinned<'a, Result<T, Failed>>;

/// Sessions in Postgres.
#[derive(Debug)]
pub(crate) struct PostgresSessions(pub(crate) Arc<Connections>);

impl SessionStore for PostgresSessions {
    fn put<'a>(&'a self, session: &'a SessionRecord, expect: Option<u64>, idle: Duration) -> Op<'a, u64> {
        Box::pin(async move {
            session.check()?;
            self.0.run(Put { session: session.clone(), expect, idle }).await
        })
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> Op<'a, Option<SessionRecord>> {
        Box::pin(self.0.run(Get(*key)))
    }

    fn touch<'a>(&'a self, keys: &'a [(SessionKey, u64)], idle: Duration) -> Op<'a, ()> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        Box::pin(self.0.run(Touch { keys, idle }))
    }

    fn remove<'a>(&'a self, key: &'a SessionKey) -> Op<'a, bool> {
        Box::pin(self.0.run(Remove(*key)))
    }

    fn beat<'a>(&'a self, node: &'a NodeId, lease: Duration) -> Op<'a, ()> {
        Box::pin(self.0.run(Beat { node: *node, lease }))
    }

    fn alive<'a>(&'a self, node: &'a NodeId) -> Op<'a, bool> {
        Box::pin(self.0.run(Alive(*node)))
    }
}

fn until(now: u64, time: Duration) -> i64 {
    signed(now.saturating_add(milliseconds(time)))
}

struct Put {
    session: SessionRecord,
    expect: Option<u64>,
    idle: Duration,
}

impl Operation for Put {
    type Output = u64;

    fn order(&self) -> Order {
        Order::row("session", self.session.key.as_bytes())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, u64> {
        const INSERT: &str = "INSERT INTO session (key, rev, seen, gone, until_ms, record)
            VALUES ($1, 1, $2, false, $3, $4) ON CONFLICT DO NOTHING RETURNING rev";
        const UPDATE: &str = "UPDATE session SET rev = rev + 1, seen = $2, until_ms = $3, record = $4
            WHERE key = $1 AND rev = $5 AND NOT gone RETURNING rev";
        Box::pin(async move {
            let key = self.session.key.as_bytes().as_slice();
            at.query("DELETE FROM session WHERE key = $1 AND until_ms <= $2", &[&key, &signed(at.now)])
                .await?;
            let record = serde_json::to_string(&self.session).map_err(StoreError::corrupt)?;
            let (seen, until) = (signed(self.session.seen), until(at.now, self.idle));
            let row = match self.expect {
                None => at.first(INSERT, &[&key, &seen, &until, &record]).await?,
                Some(rev) => at.first(UPDATE, &[&key, &seen, &until, &record, &signed(rev)]).await?,
            };
            let rev = unsigned(row.ok_or(StoreError::Conflict)?.try_get(0)?);
            at.wakes.push(Topic::Session(self.session.key));
            Ok(rev)
        })
    }
}

struct Get(SessionKey);

impl Operation for Get {
    type Output = Option<SessionRecord>;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        const SQL: &str =
            "SELECT record, rev, seen FROM session WHERE key = $1 AND until_ms > $2 AND NOT gone";
        Box::pin(async move {
            let row = at.first(SQL, &[&self.0.as_bytes().as_slice(), &signed(at.now)]).await?;
            let Some(row) = row else { return Ok(None) };
            let mut record: SessionRecord =
                serde_json::from_str(row.try_get(0)?).map_err(StoreError::corrupt)?;
            record.rev = unsigned(row.try_get(1)?);
            record.seen = unsigned(row.try_get(2)?);
            Ok(Some(record))
        })
    }
}

struct Touch {
    keys: Vec<(SessionKey, u64)>,
    idle: Duration,
}

impl Operation for Touch {
    type Output = ();

    fn order(&self) -> Order {
        Order::Alone
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, ()> {
        const SQL: &str = "UPDATE session SET until_ms = $2, seen = greatest(seen, $3)
            WHERE key = $1 AND until_ms > $4 AND NOT gone";
        Box::pin(async move {
            let (now, until) = (signed(at.now), until(at.now, self.idle));
            for (key, seen) in &self.keys {
                at.query(SQL, &[&key.as_bytes().as_slice(), &until, &signed(*seen), &now]).await?;
            }
            Ok(())
        })
    }
}

struct Remove(SessionKey);

impl Operation for Remove {
    type Output = bool;

    fn order(&self) -> Order {
        Order::row("session", self.0.as_bytes())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, bool> {
        // What is left keeps the session from coming back for as long as it would have been there.
        const SQL: &str = "UPDATE session SET gone = true, record = ''
            WHERE key = $1 AND until_ms > $2 AND NOT gone RETURNING 1";
        Box::pin(async move {
            let removed = at.first(SQL, &[&self.0.as_bytes().as_slice(), &signed(at.now)]).await?.is_some();
            if removed {
                at.wakes.push(Topic::Session(self.0));
            }
            Ok(removed)
        })
    }
}

struct Beat {
    node: NodeId,
    lease: Duration,
}

impl Operation for Beat {
    type Output = ();

    fn order(&self) -> Order {
        Order::row("node", self.node.as_bytes())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, ()> {
        const SQL: &str = "INSERT INTO node (id, until_ms) VALUES ($1, $2)
            ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms";
        // Everybody who lives takes away a little of what has expired.
        const CLEAN: [&str; 4] = [
            "DELETE FROM session WHERE key IN
                (SELECT key FROM session WHERE until_ms <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)",
            "DELETE FROM log WHERE key IN (SELECT key FROM log WHERE until_ms <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)",
            "DELETE FROM nonce WHERE nonce IN
                (SELECT nonce FROM nonce WHERE until_ms <= $1 LIMIT 1000 FOR UPDATE SKIP LOCKED)",
            "DELETE FROM node WHERE id IN (SELECT id FROM node WHERE until_ms <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)",
        ];
        Box::pin(async move {
            let until = until(at.now, self.lease);
            at.query(SQL, &[&self.node.as_bytes().as_slice(), &until]).await?;
            for clean in CLEAN {
                at.query(clean, &[&signed(at.now)]).await?;
            }
            Ok(())
        })
    }
}

struct Alive(NodeId);

impl Operation for Alive {
    type Output = bool;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, bool> {
        Box::pin(async move {
            let node = self.0.as_bytes().as_slice();
            let sql = "SELECT FROM node WHERE id = $1 AND until_ms > $2";
            Ok(at.first(sql, &[&node, &signed(at.now)]).await?.is_some())
        })
    }
}
