//! Tasks through Toolwire's own client, over every link: one test for both eras.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use toolwire_client::{Client, ElicitReply, ErrorKind, Observed, Started, TaskHandle};
use toolwire_protocol::wire::TaskStatus;

use super::*;

fn both_eras() -> Matrix {
    Matrix::clients().since(CORE)
}

/// A client whose user says how deep.
async fn deep(setup: &Setup, server: &Server, asked: &Arc<AtomicUsize>) -> Client {
    let asked = Arc::clone(asked);
    let describe = |builder: toolwire_client::ClientBuilder| {
        builder.on_elicit(move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            async { ElicitReply::accept(json!({ "depth": 3 })) }
        })
    };
    setup.client_with(server, describe).await
}

async fn begun(client: &Client, tool: &str) -> TaskHandle {
    match client.call(tool, json!({})).start().await.unwrap() {
        Started::Task(task) => task,
        Started::Done(outcome) => panic!("{tool} is no task: {outcome:?}"),
    }
}

#[tokio::test]
async fn a_call_gives_its_result_whatever_it_becomes() {
    each_version(async |setup| {
        let asked = Arc::default();
        let client = deep(&setup, &server(), &asked).await;
        let text = async |tool: &str, arguments| client.call(tool, arguments).await.unwrap().text();
        assert_eq!(text("plain", json!({})).await, "plain");
        assert_eq!(text("sum", json!({ "a": 1, "b": 2 })).await, "3");
        assert_eq!(text("later", json!({ "a": 2, "b": 2 })).await, "4");
        if setup.version >= Version::V2025_06_18 {
            assert_eq!(text("asks", json!({})).await, "3 deep");
            assert_eq!(text("asks_twice", json!({})).await, "3 and 3");
            assert_eq!(asked.load(Ordering::Relaxed), 3, "each question once");
        }
        let failed = client.call("fails", json!({})).await.unwrap();
        assert!(failed.is_error() && failed.text() == "no such file", "{failed:?}");
        let wrong = client.call("sum", json!({ "a": "one" })).await.unwrap();
        assert!(wrong.is_error(), "{wrong:?}");
        let must = client.call("must", json!({})).await.unwrap();
        assert_eq!(must.is_error(), setup.version < CORE, "{must:?}");
        let panicked = client.call("panics", json!({})).await.unwrap_err();
        assert_eq!(panicked.kind(), ErrorKind::Rpc, "{panicked}");
    })
    .await;
}

async fn each_version(body: impl AsyncFn(Setup)) {
    Matrix::clients().run(body).await;
}

#[tokio::test]
async fn a_handle_tells_how_it_stands_and_its_ticket_goes_on_elsewhere() {
    both_eras()
        .run(async |setup| {
            let server = server();
            let asked = Arc::default();
            let client = deep(&setup, &server, &asked).await;
            let task = begun(&client, "reports").await;
            let mut updates = task.updates();
            let mut last = None;
            while let Some(state) = updates.next().await {
                assert_eq!(state.id(), task.id());
                last = Some(state.status());
            }
            assert!(updates.error().is_none(), "{:?}", updates.error());
            assert_eq!(last, Some(TaskStatus::Completed));
            assert_eq!(task.result().await.unwrap().text(), "done");

            // Nobody follows it until another client does, which may be of another program.
            let ticket = begun(&client, "asks").await.ticket();
            drop(client);
            let client = deep(&setup, &server, &asked).await;
            let task = client.task(&ticket).unwrap();
            assert_eq!(task.tool(), Some("asks"));
            assert_eq!(task.result().await.unwrap().text(), "3 deep");
            assert_eq!(asked.load(Ordering::Relaxed), 2);
        })
        .await;
}

#[tokio::test]
async fn a_task_of_one_version_is_gone_on_with_in_another() {
    let server = server();
    let setups = both_eras().setups();
    for setup in setups.iter().filter(|setup| setup.version == CORE) {
        let asked = Arc::default();
        let client = deep(setup, &server, &asked).await;
        let ticket = begun(&client, "asks").await.ticket();
        let newer =
            setups.iter().find(|other| other.link == setup.link && other.version == EXTENSION).unwrap();
        let client = deep(newer, &server, &asked).await;
        let outcome = client.task(&ticket).unwrap().result().await;
        assert_eq!(outcome.unwrap().text(), "3 deep", "{setup:?}");
    }
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[tokio::test]
async fn cancelling_ends_the_work_and_so_does_dropping_a_call_but_not_a_handle() {
    both_eras()
        .run(async |setup| {
            let [running, dropped, followed] = <[Arc<AtomicBool>; 3]>::default();
            let (runs, drops, follows) = (Arc::clone(&running), Arc::clone(&dropped), Arc::clone(&followed));
            let hang = move || {
                let (runs, dropped) = (Arc::clone(&runs), Dropped(Arc::clone(&drops)));
                async move {
                    let _dropped = dropped;
                    runs.store(true, Ordering::Release);
                    std::future::pending::<&'static str>().await
                }
            };
            let server =
                Server::builder("tasks", "1.0").tool(tool("hang", hang).task(TaskPolicy::required()));
            let server = server.build().unwrap();
            // A client that sends the id of a task has received it.
            let note = move |observed: Observed| {
                if let Observed::Sent(message) = observed
                    && String::from_utf8_lossy(&message).contains("\"taskId")
                {
                    follows.store(true, Ordering::Release);
                }
            };
            let client = setup.client_with(&server, |builder| builder.observe(note)).await;

            let task = begun(&client, "hang").await;
            is_set(&running).await;
            let other = task.clone();
            drop(task);
            assert_eq!(other.get().await.unwrap().status(), TaskStatus::Working);
            other.cancel().await.unwrap();
            assert_eq!(other.result().await.unwrap_err().kind(), ErrorKind::TaskCancelled);
            // Once more changes nothing.
            other.cancel().await.unwrap();
            is_set(&dropped).await;

            followed.store(false, Ordering::Release);
            let call = tokio::spawn(client.call("hang", json!({})).into_future());
            is_set(&running).await;
            is_set(&followed).await;
            call.abort();
            is_set(&dropped).await;
            let unknown = client.task(r#"{"toolwire-task":1,"id":"nothing"}"#).unwrap();
            assert_eq!(unknown.get().await.unwrap_err().kind(), ErrorKind::TaskGone);
        })
        .await;
}

async fn is_set(flag: &AtomicBool) {
    crate::until(|| flag.swap(false, Ordering::AcqRel)).await;
}

#[tokio::test]
async fn without_tasks_a_client_is_answered_at_once_or_refused() {
    both_eras()
        .run(async |setup| {
            let client = setup.client_with(&server(), |builder| builder.tasks(false)).await;
            let sum = client.call("sum", json!({ "a": 1, "b": 2 })).start().await.unwrap();
            assert!(matches!(sum, Started::Done(sum) if sum.text() == "3"));
            let refused = client.call("must", json!({})).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Rpc, "{refused}");
        })
        .await;
}
