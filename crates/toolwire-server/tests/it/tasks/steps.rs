//! Steps whose futures are dropped, whose results do not fit, and for which there is no room.

use std::{
    future::Future,
    pin::Pin,
    task::{Context as Task, Poll},
};

use tokio::time::{sleep, timeout};
use toolwire_protocol::wire::TaskStatus;
use toolwire_server::{AskError, BoxError, Context, Reply, Route, TaskPolicy, tool};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    tap::{Fate, Tap},
    *,
};

const SECOND: Duration = Duration::from_secs(1);

/// Longer than the steps are waited for.
const LONG: Duration = Duration::from_secs(3);

fn said<T: std::fmt::Debug>(outcome: Result<T, AskError>) -> String {
    match outcome {
        Ok(value) => format!("{value:?}"),
        Err(AskError::Interrupted(name)) => format!("nobody knows about {name}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_run_once_is_not_run_again_when_its_future_was_dropped() {
    let bench = Bench::new();
    let pays = Count::default();
    let pay = pays.clone();
    let work = move |cx: Context| {
        let pay = pay.clone();
        async move {
            let pay = || async {
                pay.add();
                sleep(LONG).await;
            };
            assert!(timeout(SECOND, cx.at_most_once("pay", pay())).await.is_err());
            let again = cx.at_most_once("pay", pay()).await;
            format!("{} {}", said(again), said(cx.at_most_once("other", async { 1 }).await))
        }
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(told(&bench.ended(id).await), "nobody knows about pay 1");
    assert_eq!(pays.get(), 1);
    let plain = modern(1, "tools/call", json!({"name": "work", "arguments": {}}));
    assert_eq!(text(&client.0.ask(&plain).await), "nobody knows about pay 1", "also without a task");
    assert_eq!(pays.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_may_run_once_and_was_dropped_before_it_began_can_be_tried_again() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let pays = Count::default();
    let (pay, slow, run) = (pays.clone(), tap.clone(), Count::default());
    let work = move |cx: Context| {
        let (pay, slow, run) = (pay.clone(), slow.clone(), run.clone());
        async move {
            let is_first = run.add() == 1;
            let pay = || async { pay.add() };
            if is_first {
                slow.all(Fate::Takes(LONG));
                assert!(timeout(SECOND, cx.at_most_once("pay", pay())).await.is_err());
                slow.all(Fate::Done);
            }
            let again = said(cx.at_most_once("pay", pay()).await);
            let name = cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name;
            format!("{again} {name}")
        }
    };
    let server = tap.node(&bench).tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    bench.asked(id).await;
    assert_eq!(pays.get(), 1);
    bench.answer(id, "n", json!({"name": "me"})).await;
    assert_eq!(told(&bench.ended(id).await), "1 me");
    assert_eq!(pays.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_dropped_while_its_result_is_written_has_happened() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let done = Count::default();
    let (count, slow, run) = (done.clone(), tap.clone(), Count::default());
    let work = move |cx: Context| {
        let (count, slow, run) = (count.clone(), slow.clone(), run.clone());
        async move {
            let is_first = run.add() == 1;
            let step = || async {
                let number = count.add();
                // From now on, so that the result takes so long to be written.
                slow.all(Fate::Takes(LONG));
                number
            };
            if is_first {
                assert!(timeout(SECOND, cx.once("fetch", step())).await.is_err());
            }
            let fetched = cx.once("fetch", step()).await;
            slow.all(Fate::Done);
            if is_first {
                assert!(timeout(SECOND, cx.at_most_once("pay", step())).await.is_err());
                assert!(
                    timeout(SECOND, cx.at_most_once("pay", step())).await.is_err(),
                    "it is still written"
                );
            }
            let paid = cx.at_most_once("pay", step()).await;
            slow.all(Fate::Done);
            let name = cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name;
            format!("{} {} {name}", said(fetched), said(paid))
        }
    };
    let server = tap.node(&bench).tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    bench.asked(id).await;
    assert_eq!(done.get(), 2, "each was done once");
    bench.answer(id, "n", json!({"name": "me"})).await;
    let ended = bench.ended(id).await;
    assert_eq!(ended.head.status, TaskStatus::Completed, "its journal can be read: {ended:?}");
    assert_eq!(told(&ended), "1 2 me");
    assert_eq!(done.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_nothing_waits_for_is_written_before_its_task_is_put_aside() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let done = Count::default();
    let (count, slow, run) = (done.clone(), tap.clone(), Count::default());
    let work = move |cx: Context| {
        let (count, slow, run) = (count.clone(), slow.clone(), run.clone());
        async move {
            let is_first = run.add() == 1;
            let step = || async {
                slow.all(Fate::Takes(LONG));
                count.add()
            };
            if is_first {
                assert!(timeout(SECOND, cx.once("fetch", step())).await.is_err());
            }
            let name = cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name;
            format!("{} {name}", said(cx.once("fetch", step()).await))
        }
    };
    let server = tap.node(&bench).tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    bench.asked(id).await;
    tap.all(Fate::Done);
    bench.answer(id, "n", json!({"name": "me"})).await;
    assert_eq!(told(&bench.ended(id).await), "1 me");
    assert_eq!(done.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_run_once_and_has_a_result_that_is_too_large_is_not_run_again() {
    let bench = Bench::new();
    let pays = Count::default();
    let pay = pays.clone();
    let work = move |cx: Context| {
        let pay = pay.clone();
        async move {
            let pay = || async {
                pay.add();
                "x".repeat(300 * 1024)
            };
            let first = said(cx.at_most_once("pay", pay()).await);
            format!("{first}, then {}", said(cx.at_most_once("pay", pay()).await))
        }
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let id = Modern::connect(&server).start("work").await;
    let said = told(&bench.ended(id).await);
    assert!(said.contains("keep large results elsewhere"), "{said}");
    assert!(said.ends_with(", then nobody knows about pay"), "{said}");
    assert_eq!(pays.get(), 1);
}

/// Calls a handler again when it takes too long.
#[derive(Clone)]
struct Retry<S = ()>(S);

impl Layer<Route> for Retry {
    type Service = Retry<Route>;

    fn layer(&self, route: Route) -> Self::Service {
        Retry(route)
    }
}

impl Service<Context> for Retry<Route> {
    type Response = Reply;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, cx: Context) -> Self::Future {
        let mut route = self.0.clone();
        Box::pin(async move {
            match timeout(SECOND, route.call(cx.clone())).await {
                Ok(reply) => Ok(reply?),
                Err(_) => Ok(route.call(cx).await?),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_run_once_is_not_run_again_by_a_layer() {
    let bench = Bench::new();
    let pays = Count::default();
    let pay = pays.clone();
    let work = move |cx: Context| {
        let pay = pay.clone();
        async move {
            let paid = cx.at_most_once("pay", async {
                pay.add();
                sleep(LONG).await;
            });
            said(paid.await)
        }
    };
    let route = tool("work", work).layer(Retry(())).task(TaskPolicy::optional());
    let server = bench.builder().tool(route).build().unwrap();
    let id = Modern::connect(&server).start("work").await;
    assert_eq!(told(&bench.ended(id).await), "nobody knows about pay");
    assert_eq!(pays.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_done_waits_for_room_in_the_store() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let steps = Count::default();
    let step = steps.clone();
    let work = move |cx: Context| {
        let step = step.clone();
        async move {
            sleep(LONG).await;
            let done = said(cx.once("step", async { step.add() }).await);
            let name = cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name;
            sleep(LONG).await;
            format!("{done} {name}")
        }
    };
    let server = tap.node(&bench).tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    let waits = async |time| {
        sleep(SECOND).await;
        tap.refuse_growth();
        sleep(time).await;
        assert_eq!(bench.view(id).await.unwrap().head.status, TaskStatus::Working);
        tap.all(Fate::Done);
    };
    waits(seconds(1000)).await;
    assert_eq!(bench.asked(id).await, ["n"]);
    bench.answer(id, "n", json!({"name": "me"})).await;
    waits(seconds(3000)).await;
    assert_eq!(told(&bench.ended(id).await), "1 me");
    assert_eq!(steps.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_waits_for_room_no_longer_than_a_run_may_take() {
    // Without a share, beyond which nothing waits.
    let caller_task_bytes = Some(usize::MAX);
    let limits = MemoryLimits { task_bytes: 100_000, caller_task_bytes, ..MemoryLimits::default() };
    let memory = MemoryStore::new(limits);
    let bench = Bench { store: memory.store(), memory };
    let policy = TaskPolicy::optional().run_time(seconds(60));
    let work = |cx: Context| async move {
        let step = cx.once("large", async { "x".repeat(120_000) }).await;
        assert!(step.is_err());
        "never"
    };
    let large = || async { "x".repeat(200_000) };
    let server = bench
        .builder()
        .tool(tool("large", large).task(policy.clone()))
        .tool(tool("work", work).task(policy))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let began = tokio::time::Instant::now();
    let id = client.start("large").await;
    let said = told(&bench.ended(id).await);
    assert!(said.contains("there is no room for more bytes") && !said.contains("elsewhere"), "{said}");
    assert!((60..65).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let id = client.start("work").await;
    assert!(told(&bench.ended(id).await).contains("task_run_time"), "a step has the time of its run");
    assert!(began.elapsed() < seconds(130), "{:?}", began.elapsed());
}
