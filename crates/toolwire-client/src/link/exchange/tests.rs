use toolwire_protocol::Method;

use super::*;

fn progress(step: usize) -> Notification {
    Notification::new(Method::Progress, Params::of(&serde_json::json!({ "progress": step })).unwrap())
}

async fn next_step(exchange: &mut Exchange) -> String {
    match exchange.next().await {
        ExchangeEvent::Progress(notification) => notification.params.text().to_owned(),
        ExchangeEvent::Finished(reply) => format!("{:?}", reply.unwrap()),
    }
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_the_latest_is_kept() {
    let (feed, mut exchange) = Exchange::channel();
    for step in 0..MAX_WAITING_PROGRESS + 10 {
        feed.progress(progress(step));
    }
    feed.finish(Ok(Params::NONE));
    let mut seen = Vec::new();
    for _ in 0..=MAX_WAITING_PROGRESS {
        seen.push(next_step(&mut exchange).await);
    }
    assert_eq!(seen.pop().unwrap(), "{}");
    assert_eq!(seen.pop().unwrap(), format!(r#"{{"progress":{}}}"#, MAX_WAITING_PROGRESS + 9));
    assert_eq!(seen.first().unwrap(), r#"{"progress":0}"#);
}

#[tokio::test]
async fn long_progress_gives_way_to_the_latest_and_never_to_the_answer() {
    let waiting_bytes = Arc::new(WaitingBytes::new(40_000));
    let (feed, mut exchange) = Exchange::channel();
    exchange.account(Arc::clone(&waiting_bytes));
    for step in 0..50 {
        let params = serde_json::json!({ "progress": step, "message": "x".repeat(3000) });
        feed.progress(Notification::new(Method::Progress, Params::of(&params).unwrap()));
        assert!(waiting_bytes.used() <= 10_000, "a quarter of the limit");
    }
    feed.finish(Ok(Params::of(&"y".repeat(20_000)).unwrap()));
    assert!(next_step(&mut exchange).await.starts_with(r#"{"message":"x"#));
    next_step(&mut exchange).await;
    assert!(next_step(&mut exchange).await.ends_with(r#""progress":49}"#));
    assert_eq!(next_step(&mut exchange).await.len(), 20_002);
    assert_eq!(waiting_bytes.used(), 0);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_fails_its_request_and_names_the_limit() {
    let waiting_bytes = Arc::new(WaitingBytes::new(10_000));
    let large = || Params::of(&"y".repeat(6000)).unwrap();
    let (feed, mut first) = Exchange::channel();
    first.account(Arc::clone(&waiting_bytes));
    feed.finish(Ok(large()));
    let (feed, mut second) = Exchange::channel();
    second.account(Arc::clone(&waiting_bytes));
    feed.finish(Ok(large()));
    let ExchangeEvent::Finished(Err(ExchangeError::Link(error))) = second.next().await else { panic!() };
    assert_eq!((error.kind, error.delivery), (LinkErrorKind::Limit("waiting_bytes"), Delivery::Unknown));
    assert!(matches!(first.next().await, ExchangeEvent::Finished(Ok(_))), "the other one is not disturbed");
    assert_eq!(waiting_bytes.used(), 0);

    let (feed, third) = Exchange::channel();
    feed.progress(progress(1));
    feed.finish(Ok(large()));
    third.account(Arc::clone(&waiting_bytes));
    assert!(waiting_bytes.used() > 6000, "what came before is accounted for, too");
    drop(third);
    assert_eq!(waiting_bytes.used(), 0, "and nothing is left of what nobody took");
}

#[tokio::test]
async fn a_feed_that_is_dropped_fails_the_request() {
    let (feed, mut exchange) = Exchange::channel();
    drop(feed);
    let ExchangeEvent::Finished(Err(ExchangeError::Link(error))) = exchange.next().await else { panic!() };
    assert_eq!((error.kind, error.delivery), (LinkErrorKind::Closed, Delivery::Unknown));
}

#[tokio::test]
async fn a_driven_exchange_lives_and_dies_with_its_caller() {
    let held = Arc::new(());
    let clone = Arc::clone(&held);
    let mut exchange = Exchange::driven(|feed| {
        Box::pin(async move {
            feed.progress(progress(1));
            std::future::pending::<()>().await;
            drop(clone);
        })
    });
    assert_eq!(next_step(&mut exchange).await, r#"{"progress":1}"#);
    assert_eq!(Arc::strong_count(&held), 2);
    drop(exchange);
    assert_eq!(Arc::strong_count(&held), 1);
}
