//! Finding out what the server speaks.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolwire_client::{
    Connection, Connector, Delivery, ElicitReply, EraCache, EraChoice, Error, ErrorKind, link::Inbox,
};
use toolwire_protocol::{
    Era, RpcError, Version,
    wire::{Root, TASKS_EXTENSION},
};
use toolwire_transport::memory::Memory;

use crate::script::{
    Script, VERSION_KEY, attempt, builder, connect, discovery, initialization, legacy, modern,
};

#[tokio::test]
async fn a_modern_server_is_found_with_one_message() {
    let (client, _script) = modern().await;
    assert_eq!((client.version(), client.era()), (Version::LATEST, Era::Modern));
    assert_eq!(client.server_info().unwrap().name, "script");
    assert_eq!(client.instructions(), Some("be kind"));
    assert!(client.capabilities().tools.is_some());
}

#[tokio::test]
async fn every_legacy_version_is_accepted() {
    for version in Version::ALL.into_iter().filter(|version| !version.is_modern()) {
        let (client, _script) = connect(builder(), version).await;
        assert_eq!(client.version(), version);
        assert_eq!(client.server_info().unwrap().name, "script");
    }
}

#[tokio::test]
async fn the_first_messages_say_who_is_calling() {
    let (client, ()) = {
        let (end, mut script) = Script::pair();
        let builder = builder().title("Test").roots([Root::new("file:///")]);
        tokio::join!(builder.connect(end), async move {
            let probe = script.expect("server/discover").await;
            let meta = &probe["params"]["_meta"];
            assert_eq!(meta[VERSION_KEY], "2026-07-28");
            assert_eq!(
                meta["io.modelcontextprotocol/clientInfo"],
                json!({"name": "test", "title": "Test", "version": "1"})
            );
            assert_eq!(
                meta["io.modelcontextprotocol/clientCapabilities"],
                json!({"roots": {}, "extensions": {TASKS_EXTENSION: {}}})
            );
            script.fail(&probe, -32601, "what?").await;
            let request = script.expect("initialize").await;
            assert_eq!(
                request["params"],
                json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"roots": {"listChanged": true}},
                    "clientInfo": {"name": "test", "title": "Test", "version": "1"},
                })
            );
            script.reply(&request, initialization("2025-11-25")).await;
            script.expect("notifications/initialized").await;
        })
    };
    assert_eq!(client.unwrap().version(), Version::LATEST_LEGACY);
}

#[tokio::test]
async fn capabilities_follow_from_handlers() {
    let all = builder()
        .on_elicit(async |_| ElicitReply::cancel())
        .elicit_url(true)
        .on_sample(async |_| Err(RpcError::internal("no")))
        .sample_tools(true)
        .extension("com.example/x", json!({"a": 1}).as_object().unwrap().clone());
    let without = builder().elicit_url(true).sample_tools(true).sample_context(true);
    for (builder, expected) in [
        (
            all,
            json!({
                "elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}},
                "extensions": {"com.example/x": {"a": 1}, TASKS_EXTENSION: {}},
            }),
        ),
        (without, json!({"extensions": {TASKS_EXTENSION: {}}})),
        (builder().tasks(false), json!({})),
    ] {
        let (client, _script) = attempt(builder, async |script| {
            let probe = script.expect("server/discover").await;
            assert_eq!(probe["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], expected);
            script.reply(&probe, discovery()).await;
        })
        .await;
        client.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_a_legacy_server_says_to_the_probe_leads_to_initialize() {
    let error = |error: Value| json!({"jsonrpc": "2.0", "id": 1, "error": error});
    let answers = [
        Some(error(json!({"code": -32601, "message": "x"}))),
        Some(error(json!({"code": -32602, "message": "x"}))),
        Some(error(json!({"code": -32000, "message": "not initialized"}))),
        // The server could not even make out the id.
        Some(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "x"}})),
        Some(json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        Some(json!({"jsonrpc": "2.0", "id": 1, "result": [1]})),
        // Not a message at all, but the answer to this request.
        Some(json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": 1})),
        Some(error(
            json!({"code": -32022, "message": "x", "data": {"supported": ["2025-06-18"], "requested": "?"}}),
        )),
        // It never answers.
        None,
    ];
    for answer in answers {
        let (client, _script) = attempt(builder(), async |script| {
            script.expect("server/discover").await;
            if let Some(answer) = answer.clone() {
                script.send(answer).await;
            }
            script.initialized(Version::V2025_06_18).await;
        })
        .await;
        assert_eq!(client.unwrap().version(), Version::V2025_06_18, "{answer:?}");
    }
}

#[tokio::test]
async fn a_modern_refusal_is_corrected_once() {
    let (client, _script) = attempt(builder(), async |script| {
        let probe = script.expect("server/discover").await;
        script.fail(&probe, -32021, "capability").await;
        script.discovered().await;
    })
    .await;
    assert!(client.unwrap().version().is_modern());

    let (client, mut script) = attempt(builder(), async |script| {
        for _ in 0..2 {
            let probe = script.expect("server/discover").await;
            script.fail(&probe, -32021, "capability").await;
        }
    })
    .await;
    assert_eq!(client.unwrap_err().rpc().unwrap().code.0, -32021);
    script.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_was_slow_to_start_is_still_modern() {
    let (client, _script) = attempt(builder(), async |script| {
        script.expect("server/discover").await;
        let request = script.expect("initialize").await;
        let data = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
        let error = json!({"code": -32022, "message": "x", "data": data});
        script.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
        script.discovered().await;
    })
    .await;
    assert!(client.unwrap().version().is_modern());
}

#[tokio::test]
async fn a_version_nobody_knows_ends_the_connection() {
    for version in ["2031-01-01", "2026-07-28", ""] {
        let (client, mut script) = attempt(builder().era(EraChoice::Legacy), async |script| {
            let request = script.expect("initialize").await;
            script.reply(&request, initialization(version)).await;
        })
        .await;
        let error = client.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoCommonVersion);
        assert!(error.to_string().contains(&format!("{version:?}")), "{error}");
        assert!(error.to_string().contains("2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25"), "{error}");
        script.expect_end().await;
    }
}

#[tokio::test]
async fn pinned_versions_skip_the_search() {
    let (client, _script) = attempt(builder().era(EraChoice::Legacy), async |script| {
        script.initialized(Version::V2024_11_05).await;
    })
    .await;
    assert_eq!(client.unwrap().version(), Version::V2024_11_05);

    let choice = EraChoice::Version(Version::V2025_03_26);
    let (client, _script) = attempt(builder().era(choice), async |script| {
        let request = script.expect("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], "2025-03-26");
        script.reply(&request, initialization("2025-06-18")).await;
    })
    .await;
    assert_eq!(client.unwrap_err().kind(), ErrorKind::NoCommonVersion);

    for choice in [EraChoice::Modern, EraChoice::Version(Version::LATEST)] {
        let (client, mut script) = attempt(builder().era(choice), async |script| {
            let probe = script.expect("server/discover").await;
            script.fail(&probe, -32601, "what?").await;
        })
        .await;
        assert_eq!(client.unwrap_err().kind(), ErrorKind::NoCommonVersion);
        script.expect_end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_only_the_modern_era_silence_is_a_timeout() {
    let started = tokio::time::Instant::now();
    let (client, _script) = attempt(builder().era(EraChoice::Modern), async |script| {
        script.expect("server/discover").await;
    })
    .await;
    assert!(client.unwrap_err().is_timeout());
    assert_eq!(started.elapsed(), Duration::from_secs(60));
}

/// Hands out one end after the other, as a command that is run again and again.
#[derive(Clone)]
struct Command {
    ends: Arc<Mutex<VecDeque<Memory>>>,
}

/// The kind of a connector from outside of the crate.
enum Custom {}

impl Command {
    fn scripts(count: usize) -> (Self, Vec<Script>) {
        let (ends, scripts) = (0..count).map(|_| Script::pair()).unzip::<_, _, VecDeque<_>, _>();
        (Self { ends: Arc::new(Mutex::new(ends)) }, scripts)
    }

    fn next(&self) -> io::Result<Memory> {
        self.ends.lock().unwrap().pop_front().ok_or_else(|| io::Error::other("no such program"))
    }
}

impl Connector<Custom> for Command {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        Ok(Connection::over(self.next()?, inbox).key("command").again(self))
    }
}

#[tokio::test]
async fn a_server_that_dies_of_the_probe_is_started_again() {
    let (command, mut scripts) = Command::scripts(2);
    let mut second = scripts.pop().unwrap();
    let mut first = scripts.pop().unwrap();
    let closure = move || std::future::ready(command.next());
    let (client, ()) = tokio::join!(builder().connect(closure), async {
        first.expect("server/discover").await;
        drop(first);
        second.initialized(Version::V2025_06_18).await;
    });
    assert_eq!(client.unwrap().version(), Version::V2025_06_18);
}

#[tokio::test]
async fn a_server_that_cannot_be_started_again_is_an_error() {
    let (end, mut script) = Script::pair();
    let (client, ()) = tokio::join!(builder().connect(end), async {
        script.expect("server/discover").await;
        drop(script);
    });
    let error = client.unwrap_err();
    assert!(error.is_closed(), "{error}");
    assert!(error.to_string().contains("pin the legacy era"), "{error}");

    let (command, mut scripts) = Command::scripts(2);
    let (client, ()) = tokio::join!(builder().connect(command), async {
        scripts.remove(0).expect("server/discover").await;
        scripts.remove(0).expect("initialize").await;
    });
    assert!(client.unwrap_err().is_closed(), "it is started again only once");
}

#[tokio::test]
async fn what_cannot_be_connected_says_why() {
    let (command, _) = Command::scripts(0);
    let error = builder().connect(command).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connect, Delivery::NotSent));
    assert_eq!(format!("{error:?}"), "the connection could not be made: no such program");
}

/// Connects with the memory of `eras` while `server` runs.
async fn remembering(
    eras: &Arc<EraCache>,
    command: &Command,
    server: impl Future<Output = ()>,
) -> Result<Version, Error> {
    let builder = builder().era_cache(Arc::clone(eras));
    let (client, ()) = tokio::join!(builder.connect(command.clone()), server);
    client.map(|client| client.version())
}

#[tokio::test]
async fn a_verdict_is_remembered_and_revised() {
    let eras = Arc::new(EraCache::new());
    let (command, scripts) = Command::scripts(4);
    let [mut first, mut second, mut third, mut fourth] = <[Script; 4]>::try_from(scripts).ok().unwrap();

    let found = remembering(&eras, &command, async {
        let probe = first.expect("server/discover").await;
        first.fail(&probe, -32601, "what?").await;
        first.initialized(Version::V2025_06_18).await;
    });
    assert_eq!(found.await.unwrap(), Version::V2025_06_18);
    assert_eq!(eras.version("command"), Some(Version::V2025_06_18));

    let remembered = remembering(&eras, &command, async {
        let request = second.expect("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], "2025-06-18");
        second.reply(&request, initialization("2025-06-18")).await;
        second.expect("notifications/initialized").await;
    });
    assert_eq!(remembered.await.unwrap(), Version::V2025_06_18);

    let upgraded = remembering(&eras, &command, async {
        let request = third.expect("initialize").await;
        third.fail(&request, -32601, "we are modern now").await;
        third.discovered().await;
    });
    assert_eq!(upgraded.await.unwrap(), Version::LATEST);
    assert_eq!(eras.version("command"), Some(Version::LATEST));

    let failed = remembering(&eras, &command, async {
        for _ in 0..2 {
            let probe = fourth.expect("server/discover").await;
            fourth.fail(&probe, -32021, "no").await;
        }
    });
    failed.await.unwrap_err();
    assert_eq!(eras.version("command"), None);
}

#[tokio::test]
async fn a_remembered_server_that_dies_is_asked_anew() {
    let eras = Arc::new(EraCache::new());
    eras.remember("command", Version::V2025_06_18);
    let (command, mut scripts) = Command::scripts(2);
    let found = remembering(&eras, &command, async {
        scripts.remove(0).expect("initialize").await;
        scripts.remove(0).discovered().await;
    });
    assert_eq!(found.await.unwrap(), Version::LATEST);
}

#[tokio::test]
async fn methods_of_the_other_era_are_refused_by_name() {
    let (client, mut script) = modern().await;
    for error in [
        client.ping().await.unwrap_err(),
        client.set_log_level(toolwire_protocol::wire::LoggingLevel::Info).await.unwrap_err(),
        client.roots_changed().await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::NotInThisVersion, Delivery::NotSent));
        assert!(error.to_string().contains("2026-07-28"), "{error}");
    }
    script.expect_silence().await;

    let (client, mut script) = legacy().await;
    let error = client.discover().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotInThisVersion);
    script.expect_silence().await;
}

#[tokio::test]
async fn what_the_server_does_not_have_is_not_asked_for() {
    let (client, mut script) = attempt(builder(), async |script| {
        let probe = script.expect("server/discover").await;
        let mut found = discovery();
        found["capabilities"] = json!({});
        script.reply(&probe, found).await;
    })
    .await;
    let client = client.unwrap();
    let error = client.call("x", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::NotAdvertised, Delivery::NotSent));
    assert!(error.to_string().contains("Tools"), "{error}");
    script.expect_silence().await;
}

#[tokio::test]
async fn a_log_level_is_told_once_or_always() {
    let level = toolwire_protocol::wire::LoggingLevel::Warning;
    let (client, _script) = attempt(builder().era(EraChoice::Legacy).log_level(level), async |script| {
        script.initialized(Version::LATEST_LEGACY).await;
        let request = script.expect("logging/setLevel").await;
        assert_eq!(request["params"], json!({"level": "warning"}));
        script.reply(&request, json!({})).await;
    })
    .await;
    client.unwrap();

    let (client, mut script) = connect(builder().on_log(|_| ()), Version::LATEST).await;
    let (_, ()) = tokio::join!(client.list_tools(), async {
        let request = script.expect("tools/list").await;
        assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "info");
        script.reply(&request, json!({"tools": []})).await;
    });
}
