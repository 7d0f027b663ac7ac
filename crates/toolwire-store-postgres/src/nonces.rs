//! What may be used once.

use std::sync::Arc;
use std::time::Duration;

use toolwire_store::{NonceStore, Op, Quota, StoreError, milliseconds};

use crate::connection::{At, Connections, Failed, Operation, Order, Pinned};
use crate::tasks::signed;

/// How many nonces of one caller are remembered. For all of them the disk is the limit.
const CALLER_NONCES: i64 = 10_000;

/// Nonces in Postgres.
#[derive(Debug)]
pub(crate) struct PostgresNonces(pub(crate) Arc<Connections>);

impl NonceStore for PostgresNonces {
    fn consume<'a>(&'a self, by: &'a Quota, nonce: [u8; 24], keep: Duration) -> Op<'a, bool> {
        Box::pin(self.0.run(Consume { by: *by, nonce, keep }))
    }
}

struct Consume {
    by: Quota,
    nonce: [u8; 24],
    keep: Duration,
}

impl Operation for Consume {
    type Output = bool;

    fn order(&self) -> Order {
        Order::row("nonce", &self.nonce)
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Pinned<'a, Result<bool, Failed>> {
        const KNOWN: &str = "SELECT FROM nonce WHERE nonce = $1 AND until_ms > $2";
        const COUNT: &str = "SELECT count(*) FROM
            (SELECT FROM nonce WHERE caller = $1 AND until_ms > $2 LIMIT $3) AS counted";
        const TAKE: &str = "INSERT INTO nonce (nonce, caller, until_ms) VALUES ($1, $2, $3)
            ON CONFLICT (nonce) DO UPDATE SET caller = excluded.caller, until_ms = excluded.until_ms
            WHERE nonce.until_ms <= $4 RETURNING 1";
        Box::pin(async move {
            let (nonce, by) = (self.nonce.as_slice(), self.by.as_bytes().as_slice());
            let now = signed(at.now);
            if at.first(KNOWN, &[&nonce, &now]).await?.is_some() {
                return Ok(false);
            }
            let count = at.first(COUNT, &[&by, &now, &CALLER_NONCES]).await?;
            let count = count.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default();
            if count >= CALLER_NONCES {
                return Err(StoreError::Full("nonces of this caller").into());
            }
            let until = signed(at.now.saturating_add(milliseconds(self.keep)));
            Ok(at.first(TAKE, &[&nonce, &by, &until, &now]).await?.is_some())
        })
    }
}
