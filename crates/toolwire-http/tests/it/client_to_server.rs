//! This client and this server, in every version that both of them speak.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use toolwire_client::{Change, Client, ClientBuilder, Delivery, EraChoice, Listener};
use toolwire_http::{client::Http, server::HttpService};
use toolwire_protocol::{
    Version,
    wire::{LoggingLevel, Root},
};
use toolwire_server::{Context, Log, Server, ToolError, resource, tool};

use crate::{PATIENCE, client_script::builder, fixture::Fixture, port::Port};

/// The versions that Streamable HTTP exists in.
const VERSIONS: [Version; 4] =
    [Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25, Version::V2026_07_28];

async fn connect_to(address: SocketAddr, version: Version, builder: ClientBuilder) -> Client {
    let http = Http::new(format!("http://{address}/mcp")).unwrap();
    let client = timeout(PATIENCE, builder.era(EraChoice::Version(version)).connect(http)).await;
    let client = client.unwrap().unwrap();
    assert_eq!(client.version(), version);
    client
}

async fn connect(fixture: &Fixture, version: Version) -> Client {
    connect_to(fixture.address, version, builder()).await
}

#[tokio::test]
async fn the_newest_version_is_found() {
    let fixture = Fixture::start().await;
    let http = Http::new(format!("http://{}/mcp", fixture.address)).unwrap();
    let client = builder().connect(http).await.unwrap();
    assert_eq!(client.version(), Version::V2026_07_28);
    assert_eq!(client.server_info().unwrap().name, "fixture");
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    for version in VERSIONS {
        let fixture = Fixture::start().await;
        let client = connect(&fixture, version).await;
        assert!(client.all_tools().await.unwrap().iter().any(|tool| tool.name == "mirrored"));
        assert_eq!(client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap().text(), "5");
        let agent = client.call("agent", json!({})).await.unwrap();
        assert!(agent.text().starts_with("toolwire/"), "{}", agent.text());
        client.call("nobody", json!({})).await.unwrap_err();
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn arguments_in_headers_are_accepted_without_a_list_having_been_asked_for() {
    let fixture = Fixture::start().await;
    let client = connect(&fixture, Version::V2026_07_28).await;
    for arguments in [json!({}), json!({ "value": " ä\n", "count": -3 }), json!({ "count": 42 })] {
        assert_eq!(client.call("mirrored", arguments).await.unwrap().text(), "fine");
    }
}

#[tokio::test]
async fn progress_and_logs_come_before_the_answer() {
    for version in VERSIONS {
        let fixture = Fixture::start().await;
        let logs = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&logs);
        let listening = builder().log_level(LoggingLevel::Info).on_log(move |message| {
            heard.lock().unwrap().push(message.data.text().to_owned());
        });
        let client = connect_to(fixture.address, version, listening).await;
        let steps = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&steps);
        let call = client.call("quick_steps", json!({}));
        let call = call.progress(move |step| taken.lock().unwrap().push(step.progress.as_f64()));
        assert_eq!(call.await.unwrap().text(), "done");
        assert_eq!(*steps.lock().unwrap(), [1.0, 2.0], "{version}");
        client.call("chatty", json!({})).await.unwrap();
        assert_eq!(*logs.lock().unwrap(), ["\"hello\""], "{version}");
    }
}

#[tokio::test]
async fn dropping_a_call_stops_its_handler() {
    for version in VERSIONS {
        let mut fixture = Fixture::start().await;
        let client = connect(&fixture, version).await;
        let calling = tokio::spawn(client.call("hang", json!({})).into_future());
        fixture.hears("started").await;
        calling.abort();
        fixture.hears_the_end().await;
        assert_eq!(client.call("add", json!({ "a": 1, "b": 1 })).await.unwrap().text(), "2");
    }
}

#[tokio::test]
async fn changes_are_heard_of() {
    for version in VERSIONS {
        let fixture = Fixture::start().await;
        let client = connect(&fixture, version).await;
        let mut listener = client.listen().tools().await.unwrap();
        // A legacy server tells on a stream that is opened in the background, so it is told until it is heard.
        let change = timeout(PATIENCE, async {
            loop {
                fixture.server.add_tool(tool("fresh", || async { "" })).unwrap();
                assert!(fixture.server.remove_tool("fresh"));
                if let Ok(change) = timeout(Duration::from_millis(100), listener.next()).await {
                    return change;
                }
            }
        });
        assert_eq!(change.await.unwrap(), Some(Change::Tools), "{version}");
    }
}

async fn count_roots(cx: Context) -> Result<String, ToolError> {
    Ok(format!("{} roots", cx.roots().await?.len()))
}

async fn greet(log: Log) -> &'static str {
    log.info("hello");
    log.debug("details");
    "done"
}

fn server() -> Server {
    Server::builder("roots", "1.0")
        .tool(tool("count_roots", count_roots))
        .tool(tool("greet", greet))
        .resource(resource("file:///a", || async { "text" }))
        .build()
        .unwrap()
}

/// Serves at `port`; aborting it is as if the process had ended.
async fn serve(port: &Port, server: Server) -> JoinHandle<()> {
    let service = HttpService::builder(server).path("/mcp").build().unwrap();
    let serving = service.serve(port.listen().await).into_future();
    tokio::spawn(async move { serving.await.unwrap() })
}

#[tokio::test]
async fn questions_are_answered_in_both_eras() {
    for version in VERSIONS {
        let port = Port::reserve();
        let serving = serve(&port, server()).await;
        let asking = builder().roots([Root::new("file:///a"), Root::new("file:///b")]);
        let client = connect_to(port.address(), version, asking).await;
        assert_eq!(client.call("count_roots", json!({})).await.unwrap().text(), "2 roots", "{version}");
        serving.abort();
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_is_called_as_if_nothing_had_happened() {
    for version in VERSIONS {
        let port = Port::reserve();
        let serving = serve(&port, server()).await;
        let client = connect_to(port.address(), version, builder().roots([Root::new("file:///a")])).await;
        for _ in 0..2 {
            assert_eq!(client.call("count_roots", json!({})).await.unwrap().text(), "1 roots", "{version}");
        }
        serving.abort();
        let _ = serving.await;
        let serving = serve(&port, server()).await;
        // What was sent on a connection that ended at that moment may have been lost, and is told so.
        let again = timeout(PATIENCE, async {
            loop {
                match client.call("count_roots", json!({})).await {
                    Ok(result) => return result.text(),
                    Err(error) => assert_eq!(error.delivery(), Delivery::Unknown, "{error}"),
                }
            }
        });
        assert_eq!(again.await.unwrap(), "1 roots", "{version}");
        serving.abort();
    }
}

#[tokio::test]
async fn a_call_whose_server_dies_in_the_middle_of_its_stream_is_told_so() {
    for version in VERSIONS {
        let port = Port::reserve();
        let mut fixture = Fixture::at(port.listen().await, |http| http);
        let client = connect(&fixture, version).await;
        let (report, mut reports) = mpsc::unbounded_channel();
        let call = client.call("steps", json!({})).progress(move |_| {
            let _ = report.send(());
        });
        let calling = tokio::spawn(call.into_future());
        // From here on the stream is open, and half of it has come.
        timeout(PATIENCE, reports.recv()).await.unwrap().unwrap();
        fixture.serving.abort();
        let _ = (&mut fixture.serving).await;
        let serving = serve(&port, fixture.server.clone()).await;
        // Shorter than the default timeout of a call, which would end it as well.
        let error = timeout(PATIENCE / 2, calling).await.expect("it still waits").unwrap().unwrap_err();
        assert_eq!(error.delivery(), Delivery::Unknown, "{version}: {error}");
        // What went with the old server is gone, but its successor is found without any help.
        let again = timeout(PATIENCE, async {
            loop {
                match client.call("add", json!({ "a": 2, "b": 3 })).await {
                    Ok(result) => return result.text(),
                    Err(error) => assert_eq!(error.delivery(), Delivery::Unknown, "{error}"),
                }
            }
        });
        assert_eq!(again.await.unwrap(), "5", "{version}");
        serving.abort();
    }
}

/// Says that the resource has changed until the listener hears something.
///
/// A legacy server tells on a stream that is opened in the background, so once may be too early.
async fn next_change(server: &Server, listener: &mut Listener) -> Option<Change> {
    let change = timeout(PATIENCE, async {
        loop {
            server.notify().resource_updated("file:///a");
            if let Ok(change) = timeout(Duration::from_millis(50), listener.next()).await {
                return change;
            }
        }
    });
    change.await.unwrap()
}

#[tokio::test]
async fn a_listener_survives_the_restart_of_its_server() {
    survives_a_restart(async |_, serving| {
        serving.abort();
        let _ = serving.await;
    })
    .await;
}

#[tokio::test]
async fn a_listener_survives_a_server_that_is_shut_down_in_order() {
    survives_a_restart(async |server, serving| {
        server.shutdown();
        timeout(PATIENCE, serving).await.unwrap().unwrap();
    })
    .await;
}

/// A listener goes on after its server was ended like this and another has taken its place.
async fn survives_a_restart(end: impl AsyncFn(&Server, JoinHandle<()>)) {
    for version in VERSIONS {
        let logs = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&logs);
        let hearing = builder().log_level(LoggingLevel::Debug).on_log(move |message| {
            heard.lock().unwrap().push(message.data.text().to_owned());
        });
        let old = server();
        let port = Port::reserve();
        let serving = serve(&port, old.clone()).await;
        let client = connect_to(port.address(), version, hearing).await;
        let mut listener = client.listen().resource("file:///a").await.unwrap();
        let updated = Some(Change::Updated("file:///a".to_owned()));
        assert_eq!(next_change(&old, &mut listener).await, updated, "{version}");
        end(&old, serving).await;
        let new = server();
        let serving = serve(&port, new.clone()).await;
        // Nobody calls anything: the listener alone finds out. What the old server said last may still be told.
        let resync = timeout(PATIENCE, async {
            loop {
                match listener.next().await {
                    Some(Change::Updated(_)) => {}
                    other => return other,
                }
            }
        });
        assert_eq!(resync.await.unwrap(), Some(Change::Resync), "{version}");
        assert_eq!(next_change(&new, &mut listener).await, updated, "{version}");
        assert_eq!(client.call("greet", json!({})).await.unwrap().text(), "done");
        assert_eq!(*logs.lock().unwrap(), ["\"hello\"", "\"details\""], "{version}");
        serving.abort();
    }
}

#[cfg(feature = "sse2024")]
#[tokio::test]
async fn the_transport_of_the_first_revision_is_found_too() {
    let mut fixture = Fixture::with(|http| http.sse2024("/sse", "/messages")).await;
    let http = Http::new(format!("http://{}/sse", fixture.address)).unwrap();
    let client = timeout(PATIENCE, builder().connect(http)).await.unwrap().unwrap();
    assert_eq!(client.version(), Version::V2024_11_05);
    assert_eq!(client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap().text(), "5");
    let calling = tokio::spawn(client.call("hang", json!({})).into_future());
    fixture.hears("started").await;
    calling.abort();
    fixture.hears_the_end().await;
    client.close().await.unwrap();
}
