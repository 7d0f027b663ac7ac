//! Tasks that wait: for answers, for a time, for both.

use serde_json::json;
use toolwire_protocol::wire::TaskStatus;
use toolwire_server::{Answer as Given, Context, NeedInput, Progress, TaskPolicy, tool};

use super::{
    tap::{Fate, Tap},
    *,
};

#[tokio::test(start_paused = true)]
async fn a_task_that_asks_is_run_again_and_does_nothing_twice() {
    let bench = Bench::new();
    let (runs, steps) = (Count::default(), Count::default());
    let (run, step) = (runs.clone(), steps.clone());
    let work = move |cx: Context| {
        let (run, step) = (run.clone(), step.clone());
        async move {
            run.add();
            let fetched = cx.once("fetch", async { step.add() }).await.unwrap();
            let key = cx.idempotency_key("file");
            let ask = |key: &str| cx.elicit::<Name>("Name?").key(key).accepted();
            let (a, b) = tokio::join!(ask("a"), ask("b"));
            let filed = cx.once("file", async { step.add() }).await.unwrap();
            assert_eq!(cx.once("key", async { key.clone() }).await.unwrap(), key);
            format!("{fetched} {filed} {} {}", a.unwrap().name, b.unwrap().name)
        }
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(bench.asked(id).await, ["a", "b"]);
    let answered = bench.answer(id, "b", json!({"name": "two"})).await;
    assert_eq!((answered.left, answered.ready), (vec!["a".to_owned()], false));
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(bench.asked(id).await, ["a"]);
    assert_eq!(runs.get(), 1, "nothing runs while a question is open");
    assert!(bench.answer(id, "a", json!({"name": "one"})).await.ready);
    let started = tokio::time::Instant::now();
    assert_eq!(told(&bench.ended(id).await), "1 2 one two");
    assert_eq!((runs.get(), steps.get()), (2, 2));
    assert!(started.elapsed() < seconds(1));
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_answer_does_not_fit_is_asked_again_under_another_key() {
    let bench = Bench::new();
    let work = |cx: Context| async move {
        match cx.elicit::<Name>("Name?").key("n").await {
            Ok(Given::Accept(name)) => name.name,
            other => format!("{:?}", other.err()),
        }
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(bench.asked(id).await, ["n"]);
    bench.answer(id, "n", json!({"name": 7})).await;
    bench.when(id, |view| view.open.iter().any(|open| open.key == "n#2")).await;
    assert!(bench.answer(id, "n", json!({"name": "late"})).await.taken.is_empty());
    bench.answer(id, "n#2", json!({"name": "good"})).await;
    assert_eq!(told(&bench.ended(id).await), "good");

    let id = client.start("work").await;
    bench.asked(id).await;
    bench.answer(id, "n", json!({})).await;
    bench.when(id, |view| view.open.iter().any(|open| open.key == "n#2")).await;
    bench.answer(id, "n#2", json!({})).await;
    assert!(told(&bench.ended(id).await).contains("did not fit"), "twice is enough");
}

#[tokio::test(start_paused = true)]
async fn questions_can_be_returned_and_refused() {
    let bench = Bench::new();
    let work = |cx: Context| async move {
        let pages: u32 = cx.remembered().unwrap_or(0);
        match cx.input::<Name>("who").unwrap() {
            None => {
                let need = NeedInput::new().elicit::<Name>("who", "Who?").unwrap().remember(&3).unwrap();
                toolwire_server::IntoToolOutput::into_tool_output(need)
            }
            Some(who) => toolwire_server::IntoToolOutput::into_tool_output(format!(
                "{} {pages}",
                who.accepted().unwrap().name
            )),
        }
    };
    let refused =
        |cx: Context| async move { format!("{:?}", cx.elicit::<Name>("Who?").key("who").await.err()) };
    let server = bench
        .builder()
        .tool(tool("work", work).task(TaskPolicy::optional()))
        .tool(tool("refused", refused).task(TaskPolicy::optional()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(bench.asked(id).await, ["who"]);
    bench.answer(id, "who", json!({"name": "me"})).await;
    assert_eq!(told(&bench.ended(id).await), "me 3");

    let id = client.start("refused").await;
    bench.asked(id).await;
    let error = RawJson::from(&json!({"code": -1, "message": "nobody is here"}));
    let entry = RawJson::of(&Entry::refusal("who", error)).unwrap();
    bench.tasks().answer(&owner(), &id, vec![Answer { key: "who".into(), entry }]).await.unwrap();
    assert!(told(&bench.ended(id).await).contains("nobody is here"));
}

#[tokio::test(start_paused = true)]
async fn a_long_sleep_takes_no_place_and_counts_from_its_beginning() {
    let bench = Bench::new();
    let runs = Count::default();
    let run = runs.clone();
    let work = move |cx: Context| {
        let run = run.clone();
        async move {
            run.add();
            cx.sleep("cool down", seconds(3600)).await.unwrap();
            cx.sleep("short", seconds(5)).await.unwrap();
            assert!(cx.sleep("short", seconds(5)).await.is_err(), "a name stands for one wait");
            assert!(cx.sleep("for ever", seconds(40 * 24 * 3600)).await.is_err());
            "rested"
        }
    };
    let limits = limits(|limits| limits.task_runs = 1);
    let server = bench
        .builder()
        .limits(limits)
        .tool(tool("work", work).task(TaskPolicy::optional()))
        .tool(tool("quick", || async { "quick" }).task(TaskPolicy::optional()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let started = tokio::time::Instant::now();
    let id = client.start("work").await;
    let other = client.start("quick").await;
    assert_eq!(told(&bench.ended(other).await), "quick", "there is one place, and the sleeper has left it");
    assert!(started.elapsed() < seconds(10));
    assert_eq!(told(&bench.ended(id).await), "rested");
    let took = started.elapsed().as_secs();
    assert!((3605..3612).contains(&took), "{took}");
    assert_eq!(runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_while_a_timer_has_a_run_under_way_is_not_lost() {
    let bench = Bench::new();
    let work = |cx: Context| async move {
        let asked = cx.elicit::<Name>("Name?").key("n").accepted();
        let reminded = async {
            cx.sleep("remind", seconds(100)).await.unwrap();
            cx.once("reminder", tokio::time::sleep(seconds(10))).await.unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            name = asked => name.unwrap().name,
            () = reminded => unreachable!(),
        }
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(bench.asked(id).await, ["n"]);
    tokio::time::sleep(seconds(105)).await;
    assert_eq!(bench.asked(id).await, ["n"], "the run of the timer closes no question");
    let answered = bench.answer(id, "n", json!({"name": "in time"})).await;
    assert_eq!(answered.taken, ["n"]);
    assert_eq!(told(&bench.ended(id).await), "in time");
}

#[tokio::test(start_paused = true)]
async fn progress_becomes_part_of_the_task() {
    let bench = Bench::new();
    let work = |progress: Progress| async move {
        for done in 1..=30 {
            progress.report_message(f64::from(done), 30.0, format!("step {done}"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        "done"
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    let view = bench.when(id, |view| view.head.note.done.is_some_and(|done| done > 10.0)).await;
    assert!(view.head.rev < 8, "it is not written each time: {view:?}");
    let ended = bench.ended(id).await;
    assert_eq!((ended.head.note.done, ended.head.note.total), (Some(30.0), Some(30.0)));
    assert_eq!(ended.head.note.message.unwrap().text(), "\"step 30\"");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_stopped_wherever_it_runs() {
    struct Dropped(Count);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add();
        }
    }
    let bench = Bench::new();
    let dropped = Count::default();
    let count = dropped.clone();
    let work = move || {
        let count = count.clone();
        async move {
            let _dropped = Dropped(count);
            std::future::pending::<()>().await;
        }
    };
    let server = bench.builder().tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(dropped.get(), 0, "its lease is kept");
    let note = toolwire_store::TaskNote::default();
    bench.tasks().cancel(&owner(), &id, note).await.unwrap().unwrap();
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(dropped.get(), 1);
    assert_eq!(bench.view(id).await.unwrap().head.status, TaskStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn live_work_waits_where_it_is_and_is_not_run_again() {
    let bench = Bench::new();
    let runs = Count::default();
    let run = runs.clone();
    let work = move |cx: Context| {
        let run = run.clone();
        async move {
            let run = run.add();
            let a = cx.elicit::<Name>("A?").key("a").accepted().await.unwrap().name;
            let (b, c) = tokio::join!(
                async { cx.elicit::<Name>("B?").key("b").accepted().await.unwrap().name },
                async { cx.elicit::<Name>("C?").key("c").accepted().await.unwrap().name },
            );
            format!("{run} {a}{b}{c}")
        }
    };
    let server = bench
        .builder()
        .tool(tool("work", work).task(TaskPolicy::required().live().run_time(seconds(600))))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(bench.asked(id).await, ["a"]);
    tokio::time::sleep(seconds(3000)).await;
    bench.answer(id, "a", json!({"name": "x"})).await;
    bench.when(id, |view| view.open.len() == 2).await;
    bench.answer(id, "c", json!({"name": "z"})).await;
    tokio::time::sleep(seconds(3000)).await;
    assert_eq!(bench.asked(id).await, ["b"]);
    bench.answer(id, "b", json!({"name": "y"})).await;
    assert_eq!(told(&bench.ended(id).await), "1 xyz");
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn live_work_gets_an_answer_that_comes_while_it_asks_for_another() {
    let bench = Bench::new();
    let tap = Tap::to(&bench);
    let work = |cx: Context| async move {
        let ask = async |key: &str| cx.elicit::<Name>("Name?").key(key).accepted().await.unwrap().name;
        let ((a, c), b) = tokio::join!(async { (ask("a").await, ask("c").await) }, ask("b"));
        format!("{a}{b}{c}")
    };
    let live = TaskPolicy::required().live();
    let server = tap.node(&bench).tool(tool("work", work).task(live)).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(bench.asked(id).await, ["a", "b"]);
    // Each operation takes two seconds, and happens after the first of them.
    tap.all(Fate::Takes(seconds(2)));
    bench.answer(id, "a", json!({"name": "x"})).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(bench.answer(id, "b", json!({"name": "y"})).await.taken, ["b"], "before it is held for c");
    tap.all(Fate::Done);
    bench.when(id, |view| view.open.iter().any(|open| open.key == "c")).await;
    bench.answer(id, "c", json!({"name": "z"})).await;
    assert_eq!(told(&bench.ended(id).await), "xyz");
}

#[tokio::test(start_paused = true)]
async fn live_work_that_has_some_of_its_answers_has_its_time_and_gives_its_place_back_when_it_waits() {
    let bench = Bench::new();
    let work = |cx: Context| async move {
        let ask = async |key: &str| cx.elicit::<Name>("Name?").key(key).accepted().await.unwrap().name;
        let work = async {
            ask("wait").await;
            let what = ask("work").await;
            cx.once("hang", std::future::pending::<()>()).await.unwrap();
            what
        };
        let (last, _) = tokio::join!(ask("last"), work);
        last
    };
    let server = bench
        .builder()
        .limits(limits(|limits| limits.task_runs = 1))
        .tool(tool("work", work).task(TaskPolicy::required().live().run_time(seconds(600))))
        .tool(tool("quick", || async { "quick" }).task(TaskPolicy::optional()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    assert_eq!(bench.asked(id).await, ["last", "wait"]);
    bench.answer(id, "wait", json!({"name": "x"})).await;
    bench.when(id, |view| view.open.iter().any(|open| open.key == "work")).await;
    tokio::time::sleep(seconds(3000)).await;
    let other = client.start("quick").await;
    assert_eq!(told(&bench.ended(other).await), "quick", "there is one place, and nothing has it");
    bench.answer(id, "work", json!({"name": "x"})).await;
    let began = tokio::time::Instant::now();
    assert!(told(&bench.ended(id).await).contains("task_run_time"));
    assert!((600..605).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn keys_that_a_task_cannot_have_are_refused_before_anything_is_asked() {
    let bench = Bench::new();
    let ask = |keys: [&'static str; 2]| {
        move || async move {
            let [first, second] = keys;
            NeedInput::new()
                .elicit::<Name>(first, "Who?")
                .unwrap()
                .elicit::<Name>(second, "And who?")
                .unwrap()
        }
    };
    let server = bench
        .builder()
        .tool(tool("twice", ask(["who", "who"])).task(TaskPolicy::required()))
        .tool(tool("marked", ask(["who", "who#2"])).task(TaskPolicy::required()))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    for (name, why) in [("twice", "another question has this key"), ("marked", "contains \"#\"")] {
        let id = client.start(name).await;
        let view = bench.when(id, |view| view.head.status != TaskStatus::Working).await;
        assert_eq!(view.head.status, TaskStatus::Failed, "{name}");
        assert!(told(&view).contains(why), "{}", told(&view));
    }
}
