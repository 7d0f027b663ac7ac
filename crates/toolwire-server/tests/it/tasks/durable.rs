//! Tasks that outlive those who run them.

use std::sync::Mutex;

use toolwire_protocol::Version;
use toolwire_server::{AskError, Context, StateKeys, TaskPolicy, tool};
use toolwire_store::{Claim, NewTask, NodeId, Token};

use super::{
    tap::{Fate, Tap},
    *,
};

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cut_off_stops_and_another_one_goes_on() {
    let bench = Bench::new();
    let ledger = Arc::new(Mutex::new(Vec::new()));
    let work = |who: &'static str| {
        let ledger = Arc::clone(&ledger);
        move |cx: Context| {
            let ledger = Arc::clone(&ledger);
            async move {
                let step = |name: &'static str| {
                    let ledger = Arc::clone(&ledger);
                    async move {
                        ledger.lock().unwrap().push(format!("{name} {who}"));
                        name.to_owned()
                    }
                };
                cx.once("one", step("one")).await.unwrap();
                tokio::time::sleep(seconds(30)).await;
                cx.once("two", step("two")).await.unwrap();
                format!("{who} {} {}", cx.attempt(), cx.fence().unwrap())
            }
        }
    };
    let tap = Tap::to(&bench);
    let first = tap.node(&bench).tool(tool("work", work("a")).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&first);
    let id = client.start("work").await;
    tokio::time::sleep(seconds(1)).await;
    let second = bench.builder().tool(tool("work", work("b")).task(TaskPolicy::optional())).build().unwrap();
    let _serving = Wire::connect(&second);
    tap.all(Fate::Fails);
    let cut = tokio::time::Instant::now();
    let ended = bench.ended(id).await;
    assert_eq!(told(&ended), "b 1 2", "recording a step was progress, so it is a first attempt again");
    let took = cut.elapsed().as_secs();
    assert!((44..=52).contains(&took), "within a lease and a second, and then the work: {took}");
    assert_eq!(*ledger.lock().unwrap(), ["one a", "two b"], "what was recorded was not done again");
    tap.all(Fate::Done);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(told(&bench.ended(id).await), "b 1 2");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_for_a_moment_costs_nothing() {
    let bench = Bench::new();
    let steps = Count::default();
    let step = steps.clone();
    let work = move |cx: Context| {
        let step = step.clone();
        async move {
            tokio::time::sleep(seconds(4)).await;
            cx.once("step", async { step.add() }).await.unwrap();
            "done"
        }
    };
    let tap = Tap::to(&bench);
    let server = tap
        .node(&bench)
        .tool(tool("work", work).task(TaskPolicy::optional()))
        .tool(tool("must", || async { "must" }).task(TaskPolicy::required()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    tokio::time::sleep(seconds(2)).await;
    tap.all(Fate::Fails);
    tokio::time::sleep(seconds(10)).await;
    let refused = client.call("must", json!({})).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("nothing was started"), "{refused}");
    tap.all(Fate::Done);
    assert_eq!(told(&bench.ended(id).await), "done");
    assert_eq!(steps.get(), 1);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(told(&bench.ended(client.start("must").await).await), "must");
}

/// Claims a task as a node that does nothing with it, as often as it can.
async fn dies_with(bench: &Bench, tool: &str, times: usize) {
    let serves = vec![(tool.to_owned(), 1)];
    let mut claimed = 0;
    for _ in 0..100_000 {
        if claimed == times {
            return;
        }
        let token = Token::from_bytes([u8::try_from(claimed).unwrap() + 1; 16]);
        let claim = Claim::new(NodeId::from_bytes([9; 8]), token, serves.clone(), 1, seconds(20));
        claimed += bench.tasks().claim(&claim).await.unwrap().len();
        tokio::time::sleep(seconds(1)).await;
    }
    panic!("{tool} could be claimed {claimed} times within a day, not {times}");
}

pub(super) async fn stored(bench: &Bench, tool: &str) -> TaskId {
    let id = TaskId::from_bytes([u8::try_from(tool.len()).unwrap(); 24]);
    let params = json!({"name": tool, "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", CAPABILITIES: {"elicitation": {}}
    }});
    let mut request = toolwire_store::TaskRequest::new(tool, Version::V2026_07_28, RawJson::from(&params));
    request.carried = RawJson::from(&json!({}));
    let quota = toolwire_store::Quota::from_bytes([0; 32]);
    bench.tasks().create(NewTask::new(id, owner(), quota, request)).await.unwrap();
    id
}

#[tokio::test(start_paused = true)]
async fn a_task_that_kills_its_nodes_is_given_up() {
    let bench = Bench::new();
    let runs = Count::default();
    let run = runs.clone();
    let work = move || {
        let run = run.clone();
        async move { format!("ran {}", run.add()) }
    };
    for (name, deaths) in [("four", 4), ("fives", 5)] {
        let id = stored(&bench, name).await;
        dies_with(&bench, name, deaths).await;
        let server =
            bench.builder().tool(tool(name, work.clone()).task(TaskPolicy::optional())).build().unwrap();
        let _serving = Wire::connect(&server);
        let ended = bench.ended(id).await;
        if deaths < 5 {
            assert_eq!(told(&ended), "ran 1");
        } else {
            assert_eq!(told(&ended), "stopped after 5 attempts without progress");
            let Some(Outcome::Error(error)) = ended.outcome else { panic!() };
            assert_eq!(error.decode::<Value>().unwrap()["data"]["attempts"], 5);
        }
    }
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn live_work_whose_process_is_gone_has_failed_and_what_may_run_once_is_not_run_again() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let live = || async {
        tokio::time::sleep(seconds(100_000)).await;
        "never"
    };
    let pays = Count::default();
    let pay = pays.clone();
    let once = move |cx: Context| {
        let pay = pay.clone();
        async move {
            let paid = cx.at_most_once("pay", async {
                pay.add();
                tokio::time::sleep(seconds(100)).await;
            });
            match paid.await {
                Err(AskError::Interrupted(name)) => format!("nobody knows about {name}"),
                other => format!("{other:?}"),
            }
        }
    };
    let with_tools = |builder: ServerBuilder| {
        builder
            .tool(tool("live", live).task(TaskPolicy::optional().live()))
            .tool(tool("once", once.clone()).task(TaskPolicy::optional()))
            .build()
            .unwrap()
    };
    let first = with_tools(tap.node(&bench));
    let mut client = Modern::connect(&first);
    let (live, once) = (client.start("live").await, client.start("once").await);
    tokio::time::sleep(seconds(1)).await;
    tap.all(Fate::Fails);
    let second = with_tools(bench.builder());
    let _serving = Wire::connect(&second);
    assert_eq!(told(&bench.ended(live).await), "the process that ran this task is gone");
    assert_eq!(told(&bench.ended(once).await), "nobody knows about pay");
    assert_eq!(pays.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_run_by_those_who_have_it() {
    let bench = Bench::new();
    let ask = |what: &'static str| {
        move |cx: Context| async move {
            format!("{what} {}", cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name)
        }
    };
    let old = bench.builder().tool(tool("build", ask("v1")).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&old);
    let (one, two) = (client.start("build").await, client.start("build").await);
    bench.asked(one).await;
    bench.asked(two).await;
    drop(client);
    old.shutdown();
    tokio::time::sleep(seconds(30)).await;

    let policy = TaskPolicy::optional().revision(2);
    let newer = bench.builder().tool(tool("build", ask("v2")).task(policy.clone())).build().unwrap();
    let _serving = Wire::connect(&newer);
    bench.answer(one, "n", json!({"name": "x"})).await;
    tokio::time::sleep(seconds(100)).await;
    assert!(!bench.view(one).await.unwrap().head.status.is_terminal(), "nobody has its revision");
    let both = bench.builder().tool(tool("build", ask("v2")).task(policy.older(1, ask("v1 of old"))));
    let both = both.build().unwrap();
    let mut client = Modern::connect(&both);
    assert_eq!(told(&bench.ended(one).await), "v1 of old x");
    let three = client.start("build").await;
    bench.asked(three).await;
    bench.answer(three, "n", json!({"name": "y"})).await;
    assert_eq!(told(&bench.ended(three).await), "v2 y");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_shut_down_gives_its_tasks_back() {
    let bench = Bench::new();
    let work = |who: &'static str| {
        move |cx: Context| async move {
            tokio::time::sleep(seconds(60)).await;
            format!("{who} {}", cx.attempt())
        }
    };
    let first = bench.builder().tool(tool("work", work("a")).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&first);
    let id = client.start("work").await;
    let second = bench.builder().tool(tool("work", work("b")).task(TaskPolicy::optional())).build().unwrap();
    let _serving = Wire::connect(&second);
    let began = tokio::time::Instant::now();
    first.shutdown();
    assert_eq!(told(&bench.ended(id).await), "b 1", "which is no attempt");
    assert!(began.elapsed() < seconds(70), "nobody waits for a lease to end");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_shut_down_while_its_store_is_full_gives_its_tasks_back() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let with_tools = |builder: ServerBuilder, who: &'static str| {
        let record = move |cx: Context| async move {
            tokio::time::sleep(seconds(1)).await;
            let step = cx.once("step", async { who.to_owned() }).await;
            format!("{who} recorded {step:?}")
        };
        let question = move |cx: Context| async move {
            tokio::time::sleep(seconds(1)).await;
            let name = cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name;
            format!("{who} asked {name}")
        };
        let result = move || async move {
            tokio::time::sleep(seconds(1)).await;
            format!("{who} ended")
        };
        builder
            .tool(tool("record", record).task(TaskPolicy::optional()))
            .tool(tool("question", question).task(TaskPolicy::optional()))
            .tool(tool("result", result).task(TaskPolicy::optional()))
            .build()
            .unwrap()
    };
    let first = with_tools(tap.node(&bench), "a");
    let mut client = Modern::connect(&first);
    let record = client.start("record").await;
    let (question, result) = (client.start("question").await, client.start("result").await);
    tap.refuse_growth();
    tokio::time::sleep(seconds(20)).await;
    let second = with_tools(bench.builder(), "b");
    let _serving = Wire::connect(&second);
    let began = tokio::time::Instant::now();
    first.shutdown();
    assert_eq!(told(&bench.ended(record).await), "b recorded Ok(\"b\")");
    assert_eq!(told(&bench.ended(result).await), "b ended");
    assert_eq!(bench.asked(question).await, ["n"]);
    assert!(began.elapsed() < seconds(10), "no lease is waited for: {:?}", began.elapsed());
    bench.answer(question, "n", json!({"name": "me"})).await;
    assert_eq!(told(&bench.ended(question).await), "b asked me");
}

#[tokio::test(start_paused = true)]
async fn with_keys_the_store_sees_names_only_and_those_without_them_see_nothing() {
    let bench = Bench::new();
    let keys = || StateKeys::new(["a secret that is long enough for this"]).unwrap();
    let others = || StateKeys::new(["another secret, which is long enough, too"]).unwrap();
    let work = |cx: Context| async move {
        let secret = cx.once("step", async { "swordfish".to_owned() }).await.unwrap();
        cx.progress().report_message(1.0, None, "swordfish again");
        tokio::time::sleep(seconds(2)).await;
        let answer = cx.elicit::<Name>("swordfish?").key("n").accepted().await.unwrap();
        format!("{secret} {}", answer.name)
    };
    let task = || tool("work", work).task(TaskPolicy::optional());
    let server = bench.builder().state_keys(keys()).tool(task()).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    let asked = bench.when(id, |view| !view.open.is_empty()).await;
    assert!(!format!("{asked:?}").contains("swordfish"), "{asked:?}");
    drop(client);
    server.shutdown();
    tokio::time::sleep(seconds(30)).await;
    drop(server);

    // The answer comes in at a server that has the keys, so it is sealed; here it is made by hand, and is not taken.
    bench.answer(id, "n", json!({"name": "x"})).await;
    let stranger = bench.builder().state_keys(others()).tool(task()).build().unwrap();
    let _serving = Wire::connect(&stranger);
    tokio::time::sleep(seconds(60)).await;
    assert!(!bench.view(id).await.unwrap().head.status.is_terminal(), "it is not claimed without its key");
    let again = bench.builder().state_keys(keys()).tool(task()).build().unwrap();
    let _serving = Wire::connect(&again);
    let ended = bench.ended(id).await;
    assert_eq!(ended.head.status, TaskStatus::Failed, "what was not sealed is not taken: {ended:?}");
    assert!(!format!("{ended:?}").contains("swordfish"), "{ended:?}");
}
