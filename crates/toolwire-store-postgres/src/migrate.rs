//! Makes and changes tables. Each file is applied once, in one transaction, by one node at a time.

use tokio_postgres::Client;
use toolwire_store::StoreError;

use crate::TIME_LIMIT;
use crate::connection::{Server, explain};

/// What makes each version out of the one before. Only additions for one minor version, so that older nodes go on.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/0001.sql")];

/// The lock that those who migrate take.
const LOCK: i64 = 0x746f_6f6c_7769_7265;

/// Brings the tables to this version, or says why they are not.
pub(crate) async fn migrate(server: &Server) -> Result<(), StoreError> {
    let late = |_| StoreError::unavailable(format!("Postgres did not answer within {TIME_LIMIT:?}"));
    let connected = tokio::time::timeout(TIME_LIMIT, server.connect()).await.map_err(late)?;
    let (mut client, connection) = connected.map_err(|error| explain(&error))?;
    let driver = tokio::spawn(connection);
    let migrated = apply(&mut client, server).await;
    driver.abort();
    migrated
}

async fn apply(client: &mut Client, server: &Server) -> Result<(), StoreError> {
    let (schema, explain) = (&server.settings.schema, |error: tokio_postgres::Error| explain(&error));
    let version = version(client, schema).await.map_err(explain)?;
    if version == MIGRATIONS.len() {
        return Ok(());
    }
    if !server.settings.migrate {
        return Err(StoreError::corrupt(format!(
            "the tables in the schema {schema} are of version {version}, and {} is needed: run `toolwire store migrate` \
             with the URL of this store",
            MIGRATIONS.len()
        )));
    }
    let transaction = client.transaction().await.map_err(explain)?;
    // Whoever waits here finds the work done; whoever works has more time than a request.
    transaction
        .batch_execute("SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '1min'")
        .await
        .map_err(explain)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(explain)?;
    let prepare = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE IF NOT EXISTS {schema}.meta (version bigint NOT NULL)"
    );
    transaction.batch_execute(&prepare).await.map_err(explain)?;
    let row =
        transaction.query_one(&format!("SELECT count(*) FROM {schema}.meta"), &[]).await.map_err(explain)?;
    let done = usize::try_from(row.try_get::<_, i64>(0).map_err(explain)?).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        return Err(StoreError::corrupt(format!(
            "the tables in the schema {schema} are of version {done}, which this version of Toolwire does not know"
        )));
    }
    for (number, sql) in (1..).zip(MIGRATIONS).skip(done) {
        transaction.batch_execute(sql).await.map_err(explain)?;
        let insert = format!("INSERT INTO {schema}.meta (version) VALUES ({number})");
        transaction.batch_execute(&insert).await.map_err(explain)?;
    }
    transaction.commit().await.map_err(explain)
}

/// Of which version the tables are; 0 if there are none.
async fn version(client: &Client, schema: &str) -> Result<usize, tokio_postgres::Error> {
    let name = format!("{schema}.meta");
    let there = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row = client.query_one(&format!("SELECT count(*) FROM {name}"), &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX))
}
