//! Makes and changes tables. Each file is applied once, in one transaction, by one node at a time.

use tokio_postgres::{Client, Transaction};
use toolwire_store::StoreError;

use crate::TIME_LIMIT;
use crate::connection::{Server, explain};

/// The statements that make each version out of the one before, and the oldest version whose nodes can work on the
/// tables then.
/// With additions alone the nodes of older versions go on.
const MIGRATIONS: [(&str, i64); 2] =
    [(include_str!("migrations/0001.sql"), 1), (include_str!("migrations/0002.sql"), 2)];

/// The version that this Toolwire works on.
const VERSION: i64 = 2;

/// The lock that those who migrate take.
const LOCK: i64 = 0x746f_6f6c_7769_7265;

/// Brings the tables to this version, or says why they are not. Returns whether what is committed is on the disk.
pub(crate) async fn migrate(server: &Server) -> Result<bool, StoreError> {
    let late = |_| StoreError::unavailable(format!("Postgres did not answer within {TIME_LIMIT:?}"));
    let connected = tokio::time::timeout(TIME_LIMIT, server.connect()).await.map_err(late)?;
    let (mut client, connection) = connected?;
    let driver = tokio::spawn(connection);
    let migrated = apply(&mut client, server).await;
    let durable = match migrated {
        Ok(()) => is_durable(&client).await.map_err(|error| explain(&error)),
        Err(error) => Err(error),
    };
    driver.abort();
    durable
}

/// Of which version tables are.
struct Found {
    /// 0 if there are none.
    version: i64,
    /// The oldest version whose nodes can work on them.
    least_reader: i64,
}

impl Found {
    /// Returns whether the tables can be used as they are. Those of an older version have to be changed first.
    fn is_ready(&self, schema: &str) -> Result<bool, StoreError> {
        if self.least_reader > VERSION {
            return Err(StoreError::corrupt(format!(
                "the tables in the schema {schema} are of version {}, which needs a Toolwire that knows version {}, and \
                 this one knows {VERSION}: use a newer Toolwire",
                self.version, self.least_reader
            )));
        }
        Ok(self.version >= VERSION)
    }
}

async fn apply(client: &mut Client, server: &Server) -> Result<(), StoreError> {
    let (schema, explain) = (&server.settings.schema, |error: tokio_postgres::Error| explain(&error));
    let name = format!("{schema}.meta");
    let there = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await.map_err(explain)?;
    let found = if there.try_get(0).map_err(explain)? {
        let row = client.query_one(&version_of(schema), &[]).await.map_err(explain)?;
        found(&row).map_err(explain)?
    } else {
        Found { version: 0, least_reader: 0 }
    };
    if found.is_ready(schema)? {
        return Ok(());
    }
    if !server.settings.migrate {
        return Err(StoreError::corrupt(format!(
            "the tables in the schema {schema} are of version {}, and {VERSION} is needed: open the store once without \
             `migrate=off`",
            found.version
        )));
    }
    let transaction = client.transaction().await.map_err(explain)?;
    // Whoever waits here finds the work done; whoever works has more time than a request.
    transaction
        .batch_execute(
            "SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '1min';
             SET LOCAL idle_in_transaction_session_timeout = '1min'",
        )
        .await
        .map_err(explain)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(explain)?;
    let prepare = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE IF NOT EXISTS {schema}.meta (version bigint NOT NULL)"
    );
    transaction.batch_execute(&prepare).await.map_err(explain)?;
    let row = transaction.query_one(&version_of(schema), &[]).await.map_err(explain)?;
    let found = self::found(&row).map_err(explain)?;
    if found.is_ready(schema)? {
        return Ok(());
    }
    change(&transaction, schema, found.version).await.map_err(explain)?;
    transaction.commit().await.map_err(explain)
}

/// Applies what comes after a version.
async fn change(
    transaction: &Transaction<'_>,
    schema: &str,
    version: i64,
) -> Result<(), tokio_postgres::Error> {
    for (number, (sql, least_reader)) in (1..).zip(MIGRATIONS) {
        if number <= version {
            continue;
        }
        transaction.batch_execute(sql).await?;
        let insert = format!("INSERT INTO {schema}.meta (version) VALUES ({number})");
        transaction.batch_execute(&insert).await?;
        // Version 1 has no such column.
        if number > 1 {
            let update =
                format!("UPDATE {schema}.meta SET least_reader = {least_reader} WHERE version = {number}");
            transaction.batch_execute(&update).await?;
        }
    }
    Ok(())
}

/// The question for the version of tables that are there. Those of version 1 do not have the column of the second answer.
fn version_of(schema: &str) -> String {
    format!(
        "SELECT count(*), coalesce(max((to_jsonb(meta) ->> 'least_reader')::bigint), 0) FROM {schema}.meta AS meta"
    )
}

fn found(row: &tokio_postgres::Row) -> Result<Found, tokio_postgres::Error> {
    Ok(Found { version: row.try_get(0)?, least_reader: row.try_get(1)? })
}

/// Returns whether a commit is on the disk when it is acknowledged.
async fn is_durable(client: &Client) -> Result<bool, tokio_postgres::Error> {
    const SQL: &str =
        "SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') = 'on'";
    client.query_one(SQL, &[]).await?.try_get(0)
}
