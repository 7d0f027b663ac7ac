//! The contract of stores on a real server, which `cargo xtask stores` starts and names in
//! `TOOLWIRE_TEST_REDIS`. Each rule has keys of its own, and reaches the server through a proxy that can fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alone;
mod own;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use toolwire_store::Store;
use toolwire_testkit::store::contract::{Backend, Cut};
use toolwire_testkit::tcp_faults::{Fault, FaultyTcp};

toolwire_testkit::store_contract!(Redis::new().await);

/// The server, under a name that nobody else uses.
#[derive(Debug)]
pub(crate) struct Redis {
    proxy: FaultyTcp,
    url: String,
    /// The same without a proxy.
    direct: String,
}

impl Redis {
    pub(crate) async fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = std::env::var("TOOLWIRE_TEST_REDIS")
            .expect("TOOLWIRE_TEST_REDIS has no URL: run `cargo xtask stores`, which starts a server");
        let (login, address) = server.trim_end_matches('/').rsplit_once('@').expect("the URL has a password");
        let proxy = FaultyTcp::to(address.parse::<SocketAddr>().unwrap()).await.unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let name = format!("{}-{now}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let url = format!("{login}@{}/?name={name}", proxy.address());
        Self { proxy, url, direct: format!("{login}@{address}/?name={name}") }
    }

    pub(crate) async fn direct(&self) -> Store {
        toolwire_store_redis::open(&self.direct).await.unwrap()
    }

    /// A connection to the server, past the store, and how the keys of the store begin.
    pub(crate) async fn keys(&self) -> (redis::aio::MultiplexedConnection, String) {
        let (url, name) = self.direct.split_once("?name=").unwrap();
        let client = redis::Client::open(url).unwrap();
        (client.get_multiplexed_async_connection().await.unwrap(), format!("tw:{{{name}}}:"))
    }

    pub(crate) async fn open(&self) -> Store {
        toolwire_store_redis::open(&self.url).await.unwrap()
    }
}

type Pinned<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Backend for Redis {
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
