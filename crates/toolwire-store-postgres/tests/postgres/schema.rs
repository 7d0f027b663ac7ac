//! Tables of other versions.

use std::time::Duration;

use toolwire_store::{Outcome, Quota, SessionKey, StoreError};

use super::Postgres;
use super::kit::{OWNER, answer, begin, claim, id, json, outcome, token, write};

/// The tables of the first version.
const FIRST: &str = include_str!("../../src/migrations/0001.sql");

const FAR: i64 = 4_000_000_000_000;

impl Postgres {
    /// Makes the tables that the first version made.
    async fn first_version(&self) -> tokio_postgres::Client {
        let raw = self.raw().await;
        let schema = &self.schema;
        let meta = format!(
            "CREATE SCHEMA {schema}; CREATE TABLE meta (version bigint NOT NULL); INSERT INTO meta VALUES (1); {FIRST}"
        );
        raw.batch_execute(&meta).await.unwrap();
        raw
    }
}

/// A task as the first version wrote it.
struct Row {
    number: u64,
    phase: &'static str,
    due: Option<i64>,
    lease: bool,
    entries: &'static [(&'static str, bool)],
    open: &'static str,
    outcome: Option<&'static str>,
    params: &'static str,
}

impl Row {
    async fn insert(&self, raw: &tokio_postgres::Client, session: SessionKey) {
        let lease = if self.lease { format!("\"{}\"", token()) } else { "null".into() };
        let state = format!(
            r#"{{"phase":"{}","keep_ms":60000,"ttl_ms":600000,"floor_ms":{FAR},"works":false,"until_ms":{FAR},"fence":3,"attempt":2,"entries":{},"node":"AQEBAQEBAQE","token":{lease},"lease_ms":600000,"lease_until_ms":{FAR},"written":1,"held":false,"parked_at":0,"journal_bytes":4,"open":{},"answered":[],"note":{{"message":"\u0000\"rev\":9}}"}},"is_error":false,"poll_ms":1000,"updated_ms":7,"rev":5}}"#,
            self.phase,
            self.entries.len(),
            self.open,
        );
        let request = format!(
            r#"{{"tool":"report","revision":1,"version":"2025-11-25","params":{},"client":null,"principal":null,"carried":null,"session":"{session}","progress":"a \" b","call":"c","live":false,"wrap":false}}"#,
            self.params
        );
        let id = id(self.number);
        let ended = self.outcome.is_some();
        raw.execute(
            "INSERT INTO task (id, owner, quota, tool, revision, format, key, created_ms, due_ms, until_ms, ended, state,
                request, outcome) VALUES ($1, $2, $3, 'report', 1, 1, NULL, 7, $4, $5, $6, $7, $8, $9)",
            &[
                &id.as_bytes().as_slice(),
                &OWNER.to_bytes(),
                &Quota::from_bytes([1; 32]).as_bytes().as_slice(),
                &self.due,
                &FAR,
                &ended,
                &state,
                &request,
                &self.outcome,
            ],
        )
        .await
        .unwrap();
        for (place, (entry, answer)) in (0_i64..).zip(self.entries) {
            let sql = "INSERT INTO journal (task, place, answer, entry) VALUES ($1, $2, $3, $4)";
            raw.execute(sql, &[&id.as_bytes().as_slice(), &place, answer, entry]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn tasks_of_the_first_version_go_on() {
    const NUL: &str = r#""\u0000""#;
    let postgres = Postgres::new().await;
    let raw = postgres.first_version().await;
    let session = SessionKey::from_bytes([5; 32]);
    let row = |number, phase| Row {
        number,
        phase,
        due: None,
        lease: false,
        entries: &[(NUL, false)],
        open: "[]",
        outcome: None,
        params: r#"{"x":"\u0000","session":"no"}"#,
    };
    let rows = [
        Row { due: Some(1), ..row(1, "ready") },
        Row { due: Some(FAR), lease: true, ..row(2, "leased") },
        Row { open: r#"[{"key":"k","question":"\u0000"}]"#, ..row(3, "parked") },
        Row { outcome: Some(r#"{"result":1}"#), ..row(4, "completed") },
    ];
    for row in &rows {
        row.insert(&raw, session).await;
    }
    let store = postgres.direct().await;
    let tasks = store.tasks();
    assert_eq!(tasks.revs(&[id(1), id(2), id(3), id(4)]).await.unwrap(), [Some(5); 4]);
    let heads = tasks.list(&OWNER, None, 10).await.unwrap();
    assert!(heads.len() == 4 && heads.iter().all(|head| head.session == Some(session)), "{heads:?}");

    let run = tasks.claim(&claim(9)).await.unwrap();
    assert_eq!(run.len(), 1, "{run:?}");
    assert_eq!((run[0].lease.id, run[0].lease.fence, run[0].attempt), (id(1), 4, 3));
    assert_eq!((run[0].journal.as_slice(), run[0].request.session), ([json(NUL)].as_slice(), Some(session)));
    write(&store, &run[0].lease, 1, outcome()).await;

    let lease = toolwire_store::Lease { id: id(2), fence: 3, token: token() };
    assert!(tasks.renew(&[lease], Duration::from_secs(60)).await.unwrap().lost.is_empty());
    assert!(tasks.answers(&lease).await.unwrap().is_empty());
    write(&store, &lease, 2, outcome()).await;

    assert!(tasks.answer(&OWNER, &id(3), vec![answer("k")]).await.unwrap().unwrap().ready);
    let run = tasks.claim(&claim(9)).await.unwrap().pop().unwrap();
    assert_eq!((run.lease.id, run.journal), (id(3), vec![json(NUL), answer("k").entry]));

    let view = tasks.view(&OWNER, &id(4)).await.unwrap().unwrap();
    assert_eq!(view.outcome, Some(Outcome::Result(json("1"))));
    let kept = "SELECT (SELECT count(*) FROM task WHERE ended AND request IS NOT NULL),
        (SELECT count(*) FROM journal JOIN task ON id = task WHERE ended)";
    let row = raw.query_one(kept, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 0));
    // A node of the first version that is still open fails, and so cannot overlook what this one writes.
    assert!(raw.query("SELECT state FROM task", &[]).await.is_err());
}

#[tokio::test]
async fn tables_of_a_newer_version_are_used_if_that_says_so() {
    let postgres = Postgres::new().await;
    postgres.direct().await;
    let raw = postgres.raw().await;
    raw.batch_execute("INSERT INTO meta VALUES (3, 2), (4, 1)").await.unwrap();
    for suffix in ["", "&migrate=off"] {
        let store = toolwire_store_postgres::open(&format!("{}{suffix}", postgres.direct)).await.unwrap();
        begin(&store, suffix.len() as u64).await;
    }
    raw.batch_execute("INSERT INTO meta VALUES (5, 5)").await.unwrap();
    for suffix in ["", "&migrate=off"] {
        let error = toolwire_store_postgres::open(&format!("{}{suffix}", postgres.direct)).await.unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(matches!(error, StoreError::Corrupt(_)) && why.contains("newer Toolwire"), "{why}");
    }
}

#[tokio::test]
async fn tables_of_an_older_version_are_left_alone_if_the_url_says_so() {
    let postgres = Postgres::new().await;
    let raw = postgres.first_version().await;
    let error = toolwire_store_postgres::open(&format!("{}&migrate=off", postgres.direct)).await.unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(matches!(error, StoreError::Corrupt(_)) && why.contains("without `migrate=off`"), "{why}");
    assert!(raw.query("SELECT state FROM task", &[]).await.is_ok());
}
