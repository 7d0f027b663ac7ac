//! The contract of stores on a real server, which `cargo xtask stores` starts and names in
//! `TOOLWIRE_TEST_POSTGRES`. Each rule has a schema of its own, and reaches the server through a proxy that can fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod frozen;
mod hosts;
mod kit;
mod own;
mod schema;
mod unreadable;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::{Client, NoTls};
use toolwire_store::Store;
use toolwire_testkit::store::contract::{Backend, Cut};
use toolwire_testkit::tcp_faults::{Fault, FaultyTcp};

toolwire_testkit::store_contract!(Postgres::new().await);

/// The server, under a name that nobody else uses.
#[derive(Debug)]
pub(crate) struct Postgres {
    proxy: FaultyTcp,
    url: String,
    /// The same without a proxy.
    direct: String,
    /// The schema of the store.
    schema: String,
}

impl Postgres {
    pub(crate) async fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = std::env::var("TOOLWIRE_TEST_POSTGRES")
            .expect("TOOLWIRE_TEST_POSTGRES has no URL: run `cargo xtask stores`, which starts a server");
        let (login, place) = server.rsplit_once('@').expect("the URL has a password");
        let (address, database) = place.split_once('/').expect("the URL has a database");
        let proxy = FaultyTcp::to(address.parse::<SocketAddr>().unwrap()).await.unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let name = format!("t{}_{now}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let url = format!("{login}@{}/{database}?sslmode=disable&schema={name}", proxy.address());
        Self { proxy, url, direct: format!("{login}@{address}/{database}?schema={name}"), schema: name }
    }

    /// A session in the schema, without the store.
    pub(crate) async fn raw(&self) -> Client {
        let (url, _) = self.direct.split_once('?').unwrap();
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("SET search_path = {}", self.schema)).await.unwrap();
        client
    }

    pub(crate) async fn direct(&self) -> Store {
        toolwire_store_postgres::open(&self.direct).await.unwrap()
    }

    pub(crate) async fn open(&self) -> Store {
        toolwire_store_postgres::open(&self.url).await.unwrap()
    }
}

type Pinned<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Backend for Postgres {
    fn connect(&self) -> Pinned<'_, Store> {
        Box::pin(self.open())
    }

    fn cut_off(&self, how: Cut) -> Pinned<'_, bool> {
        self.proxy.set(match how {
            Cut::Silent => Fault::Blackhole,
            _ => Fault::Down,
        });
        Box::pin(async { true })
    }

    fn heal(&self) -> Pinned<'_, ()> {
        self.proxy.set(Fault::None);
        Box::pin(async {})
    }
}
