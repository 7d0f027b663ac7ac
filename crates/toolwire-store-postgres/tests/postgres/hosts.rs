//! Several hosts, and servers that cannot be written to.

use toolwire_store::Store;
use toolwire_testkit::tcp_faults::Fault;

use super::Postgres;
use super::kit::{begin, new_task, outcome, until, write};

impl Postgres {
    /// A URL whose first host is the proxy, and whose second one is the server.
    fn two_hosts(&self) -> String {
        let (login, place) = self.url.rsplit_once('@').unwrap();
        let (proxy, rest) = place.split_once('/').unwrap();
        let (_, place) = self.direct.rsplit_once('@').unwrap();
        let (server, _) = place.split_once('/').unwrap();
        format!("{login}@{proxy},{server}/{rest}")
    }
}

/// Waits until the store can be written to.
async fn works(store: &Store, number: u64) {
    until("the store does not come back", async || store.tasks().create(new_task(number)).await.is_ok())
        .await;
    let lease = begin(store, number).await;
    write(store, &lease, 1, outcome()).await;
}

#[tokio::test]
async fn a_host_that_is_silent_is_left_out() {
    let postgres = Postgres::new().await;
    postgres.proxy.set(Fault::Blackhole);
    let store = toolwire_store_postgres::open(&postgres.two_hosts()).await.unwrap();
    works(&store, 1).await;
}

#[tokio::test]
async fn a_host_that_falls_silent_is_left() {
    let postgres = Postgres::new().await;
    let store = toolwire_store_postgres::open(&postgres.two_hosts()).await.unwrap();
    works(&store, 1).await;
    for (number, fault) in (2..).zip([Fault::Blackhole, Fault::None, Fault::Down]) {
        postgres.proxy.set(fault);
        works(&store, number).await;
    }
}

#[tokio::test]
async fn a_connection_to_a_server_that_has_become_a_standby_is_left() {
    let postgres = Postgres::new().await;
    let store = postgres.direct().await;
    let raw = postgres.raw().await;
    // The answer of a standby, for all connections that there are.
    raw.batch_execute(
        "CREATE TABLE standby AS SELECT pid FROM pg_stat_activity WHERE application_name = 'toolwire';
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF pg_backend_pid() IN (SELECT pid FROM standby) THEN
                RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006';
            END IF;
            RETURN NEW;
         END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON task FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .await
    .unwrap();
    for number in 0..20 {
        store.tasks().create(new_task(number)).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_written_to_is_not_used() {
    let postgres = Postgres::new().await;
    let read_only = format!("{}&options=-c%20default_transaction_read_only%3Don", postgres.direct);
    let error = toolwire_store_postgres::open(&read_only).await.unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.is_unavailable() && why.contains("does not allow writes"), "{why}");
}

#[tokio::test]
async fn a_store_is_as_durable_as_its_server() {
    let postgres = Postgres::new().await;
    assert!(postgres.direct().await.is_durable());
    let hasty = format!("{}&options=-c%20synchronous_commit%3Doff", postgres.direct);
    assert!(!toolwire_store_postgres::open(&hasty).await.unwrap().is_durable());
}
