//! Limits of tasks, each met.

use toolwire_server::{Context, TaskPolicy, tool};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_caller_has_so_many_tasks_and_is_then_served_without_or_told() {
    let bench = Bench::new();
    let limits = limits(|limits| limits.tasks_per_owner = 2);
    let work = |cx: Context| async move {
        cx.once("s", async { 1 }).await.unwrap();
        tokio::time::sleep(seconds(3)).await;
        "worked"
    };
    let server = bench
        .builder()
        .limits(limits)
        .tool(tool("may", work).task(TaskPolicy::optional()))
        .tool(tool("must", work).task(TaskPolicy::required()))
        .tool(tool("slow", work).task(TaskPolicy::after(seconds(1))))
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let first = client.start("may").await;
    client.start("must").await;
    let refused = client.call("must", json!({})).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("nothing was started"), "{refused}");
    assert_eq!(text(&client.call("slow", json!({})).await), "worked", "it goes on as it is");
    bench.ended(first).await;
    client.start("may").await;
    client.start("may").await;
    assert_eq!(text(&client.call("may", json!({})).await), "worked");
    let mut core = Wire::connect_as(&server, Some(ada()));
    core.handshake("2025-11-25", json!({})).await;
    client.start("may").await;
    client.start("may").await;
    let refused = ask(&mut core, &core_call("may", json!({}))).await;
    assert_eq!(refused["error"]["code"], -32603, "who asks for a task gets one or an error: {refused}");
}

#[tokio::test(start_paused = true)]
async fn so_many_run_at_once_and_the_others_wait() {
    let bench = Bench::new();
    let limits = limits(|limits| limits.task_runs = 2);
    let running = Arc::new(std::sync::Mutex::new((0, 0)));
    let count = Arc::clone(&running);
    let work = move || {
        let count = Arc::clone(&count);
        async move {
            {
                let mut count = count.lock().unwrap();
                count.0 += 1;
                count.1 = count.1.max(count.0);
            }
            tokio::time::sleep(seconds(5)).await;
            count.lock().unwrap().0 -= 1;
            "done"
        }
    };
    let server =
        bench.builder().limits(limits).tool(tool("work", work).task(TaskPolicy::optional())).build().unwrap();
    let mut client = Modern::connect(&server);
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(client.start("work").await);
    }
    for id in ids {
        assert_eq!(told(&bench.ended(id).await), "done");
    }
    assert_eq!(*running.lock().unwrap(), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_hangs_has_failed_and_results_that_are_too_large_are_not_kept() {
    let bench = Bench::new();
    let server = bench
        .builder()
        .tool(tool("hangs", std::future::pending::<()>).task(TaskPolicy::optional().run_time(seconds(30))))
        .tool(tool("large", || async { "x".repeat(5 * 1024 * 1024) }).task(TaskPolicy::optional()))
        .tool(
            tool("steps", |cx: Context| async move {
                let large = cx.once("large", async { "x".repeat(300 * 1024) });
                let (large, small) = tokio::join!(large, cx.once("small", async { 1 }));
                format!("{} {}", large.unwrap_err(), small.unwrap())
            })
            .task(TaskPolicy::optional()),
        )
        .build()
        .unwrap();
    let mut client = Modern::connect(&server);
    let hangs = client.start("hangs").await;
    assert!(told(&bench.ended(hangs).await).contains("task_run_time"));
    let large = client.start("large").await;
    assert!(told(&bench.ended(large).await).contains("cannot be stored"));
    let steps = client.start("steps").await;
    let said = told(&bench.ended(steps).await);
    assert!(said.contains("keep large results elsewhere") && said.ends_with(" 1"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn so_much_live_work_waits_in_memory() {
    let bench = Bench::new();
    let limits = limits(|limits| limits.live_tasks = 1);
    let work = |cx: Context| async move { cx.elicit::<Name>("?").key("n").accepted().await.unwrap().name };
    let route = tool("work", work).task(TaskPolicy::optional().live());
    let server = bench.builder().limits(limits).tool(route).build().unwrap();
    let mut client = Modern::connect(&server);
    let first = client.start("work").await;
    bench.asked(first).await;
    let second = client.start("work").await;
    assert!(told(&bench.ended(second).await).contains("live_tasks"));
    bench.answer(first, "n", json!({"name": "one"})).await;
    assert_eq!(told(&bench.ended(first).await), "one");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_kept_as_long_as_was_said() {
    let bench = Bench::new();
    let work = |cx: Context| async move { cx.elicit::<Name>("?").key("n").accepted().await.unwrap().name };
    let route = tool("work", work).task(TaskPolicy::optional().keep(seconds(100)));
    let server = bench.builder().tool(route).build().unwrap();
    let mut client = Modern::connect(&server);
    let id = client.start("work").await;
    bench.asked(id).await;
    tokio::time::sleep(seconds(90)).await;
    assert!(bench.view(id).await.is_some());
    tokio::time::sleep(seconds(70)).await;
    assert!(bench.view(id).await.is_none(), "nobody answered");
}

#[tokio::test(start_paused = true)]
async fn a_client_has_its_results_kept_for_a_day_or_for_as_long_as_the_tool_says() {
    let month = 30 * 24 * 3600_u64;
    let bench = Bench::new();
    let policy = TaskPolicy::optional;
    let server = bench
        .builder()
        .tool(tool("short", || async { "done" }).task(policy().keep(seconds(100))))
        .tool(tool("long", || async { "done" }).task(policy().keep(seconds(7 * 24 * 3600))))
        .build()
        .unwrap();
    let mut core = Wire::connect_as(&server, Some(ada()));
    core.handshake("2025-11-25", json!({})).await;
    for (tool, asked, kept) in
        [("short", month, 24 * 3600), ("long", month, 7 * 24 * 3600), ("short", 3600, 3600)]
    {
        let mut call = core_call(tool, json!({}));
        call["params"]["task"]["ttl"] = json!(asked * 1000);
        let id = task_id(&ask(&mut core, &call).await);
        let head = bench.ended(id).await.head;
        assert_eq!(head.expires_ms - head.updated_ms, kept * 1000, "{tool}");
    }
}
