//! What takes a server of its own, because it changes the settings: no memory left, other policies, other users.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, InfoDict};
use toolwire_protocol::RawJson;
use toolwire_store::{Advance, Lease, Store, StoreError, TaskNote};

use super::own::{LEASE, cause, new_task, outcome};

/// A server of one test.
struct Server {
    _running: Running,
    port: u16,
    admin: MultiplexedConnection,
}

/// The process of a server and the folder of its data. Dropping it ends the one and removes the other.
struct Running {
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts another server of the program that the other tests use.
    async fn start(settings: &[&str]) -> Self {
        let shared = std::env::var("TOOLWIRE_TEST_REDIS").expect("TOOLWIRE_TEST_REDIS has no URL");
        let mut shared = connect(&shared).await.unwrap();
        let info: InfoDict = redis::cmd("INFO").arg("server").query_async(&mut shared).await.unwrap();
        let executable: String = info.get("executable").unwrap();
        let mut program = PathBuf::from(executable);
        if !program.exists() {
            // It was found in the search path, and tells a path in the folder that it was started in.
            program = program.file_name().unwrap().into();
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let running = Running::start(program, port, settings);
        let url = format!("redis://127.0.0.1:{port}/");
        let connected = async {
            loop {
                if let Ok(admin) = connect(&url).await {
                    return admin;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let admin = tokio::time::timeout(Duration::from_secs(60), connected).await.expect("no server");
        Self { _running: running, port, admin }
    }

    async fn open(&self, login: &str) -> Result<Store, StoreError> {
        toolwire_store_redis::open(&format!("redis://{login}127.0.0.1:{}/", self.port)).await
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>());
        command.query_async(&mut self.admin).await.unwrap()
    }

    async fn set(&mut self, setting: &str) {
        let () = self.ask(&format!("CONFIG SET {setting}")).await;
    }
}

impl Running {
    fn start(program: PathBuf, port: u16, settings: &[&str]) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{port}"));
        std::fs::create_dir_all(&folder).unwrap();
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--dir"])
            .arg(&folder)
            .args(["--appendonly", "yes"])
            .args(settings)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, folder }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    redis::Client::open(url)?.get_multiplexed_async_connection().await
}

fn large(bytes: usize) -> RawJson {
    RawJson::of(&"x".repeat(bytes)).unwrap()
}

fn is_full<T: std::fmt::Debug>(done: Result<T, StoreError>) -> bool {
    match done {
        Err(StoreError::Full(_)) => true,
        Ok(_) => false,
        Err(error) => panic!("{}", cause(&error)),
    }
}

#[tokio::test]
async fn at_maxmemory_leases_are_renewed_and_tasks_end_and_make_room() {
    let mut server = Server::start(&["--maxmemory", "12mb"]).await;
    let store = server.open("").await.unwrap();
    let tasks = store.tasks();
    let mut expires = new_task(1);
    (expires.keep, expires.ttl) = (Duration::from_millis(1), Duration::from_secs(1));
    tasks.create(expires.clone()).await.unwrap();
    let mut leases: Vec<Lease> = Vec::new();
    for number in 2.. {
        let mut task = new_task(number);
        task.request.params = large(200_000);
        match tasks.create(task).await {
            Ok(created) => leases.extend(created.lease),
            refused => {
                assert!(is_full(refused));
                break;
            }
        }
        assert!(number < 500, "there is always room");
    }
    // The least that can be asked for finds no room either.
    server.set("maxmemory 1").await;
    assert!(is_full(tasks.create(new_task(1000)).await));
    assert!(is_full(tasks.advance(&leases[0], 1, Advance::Record(vec![large(10)])).await));
    server.open("").await.expect("a store can be opened to make room");

    assert!(tasks.renew(&leases, LEASE).await.unwrap().lost.is_empty());
    tasks.advance(&leases[0], 1, outcome()).await.unwrap();
    tasks.advance(&leases[1], 1, Advance::Release).await.unwrap();
    let owner = &expires.owner;
    let cancelled = tasks.cancel(owner, &leases[2].id, TaskNote::default()).await.unwrap();
    assert!(!cancelled.unwrap().was_terminal);
    let swept = async { while tasks.sweep(10).await.unwrap() == 0 {} };
    tokio::time::timeout(Duration::from_secs(60), swept).await.expect("nothing is swept");
    assert!(tasks.view(owner, &expires.id).await.unwrap().is_none());

    server.set("maxmemory 12mb").await;
    for lease in &leases[3..] {
        tasks.cancel(owner, &lease.id, TaskNote::default()).await.unwrap();
    }
    tasks.create(new_task(1001)).await.unwrap();
}

#[tokio::test]
async fn a_server_that_begins_to_forget_keys_is_not_used_until_it_stops() {
    let mut server = Server::start(&[]).await;
    let store = server.open("").await.unwrap();
    store.tasks().create(new_task(1)).await.unwrap();
    for policy in ["allkeys-lru", "noeviction"] {
        server.set(&format!("maxmemory-policy {policy}")).await;
        let _: redis::Value = server.ask("CLIENT KILL TYPE normal SKIPME yes").await;
        let created = store.tasks().create(new_task(2)).await;
        if policy == "noeviction" {
            drop(created.unwrap());
        } else {
            let error = created.unwrap_err();
            assert!(error.is_unavailable() && cause(&error).contains(policy), "{}", cause(&error));
            let refused = server.open("").await.unwrap_err();
            assert!(matches!(refused, StoreError::Corrupt(_)), "{}", cause(&refused));
        }
    }
}

#[tokio::test]
async fn a_store_is_as_durable_as_the_log_of_its_server() {
    let mut server = Server::start(&[]).await;
    let () = server.ask("ACL SETUSER limited on >secret ~* &* +@all -config").await;
    for (setting, is_durable, seems_durable) in [
        ("appendfsync everysec", true, true),
        ("appendfsync always", true, true),
        ("appendfsync no", false, true),
        ("appendonly no", false, false),
    ] {
        server.set(setting).await;
        assert_eq!(server.open("").await.unwrap().is_durable(), is_durable, "{setting}");
        let limited = server.open("limited:secret@").await.unwrap();
        assert_eq!(limited.is_durable(), seems_durable, "{setting}, where CONFIG is forbidden");
    }
}
