use super::*;

fn hub() -> Hub {
    Hub::new(Arc::new(WaitingBytes::new(4 * 1024 * 1024)), 3)
}

fn drain(changes: &ChangeBox) -> Vec<Change> {
    let mut state = lock(&changes.state);
    std::iter::from_fn(|| state.take()).collect()
}

#[test]
fn changes_are_marks_and_not_a_story() {
    let hub = hub();
    let filter =
        SubscriptionFilter::new().tools_list_changed(true).resource_subscriptions(["file:///a".into()]);
    let changes = hub.open(filter).unwrap();
    for _ in 0..1000 {
        hub.publish(None, &Change::Tools);
        hub.publish(None, &Change::Prompts);
        hub.publish(None, &Change::Updated("file:///a/b".into()));
        hub.publish(None, &Change::Updated("file:///ab".into()));
    }
    assert_eq!(drain(&changes), [Change::Tools, Change::Updated("file:///a/b".into())]);
}

#[test]
fn a_server_that_is_not_heard_ends_listeners_until_it_is_heard_again() {
    let hub = hub();
    let next = |changes: &ChangeBox| changes.poll_change(&mut Context::from_waker(Waker::noop()));
    let lost = Poll::Ready(Change::Ended(EndReason::Lost("gone".to_owned())));
    let open = hub.open(SubscriptionFilter::new()).unwrap();
    hub.lost("gone");
    assert_eq!(next(&open), lost);
    assert_eq!(next(&hub.open(SubscriptionFilter::new()).unwrap()), lost);
    hub.found();
    assert_eq!(next(&hub.open(SubscriptionFilter::new()).unwrap()), Poll::Pending);
}

#[test]
fn too_many_updates_become_one_resync() {
    let hub = hub();
    let changes = hub.open(SubscriptionFilter::new()).unwrap();
    changes.subscribe(&1.into());
    for number in 0..=MAX_WAITING_UPDATES {
        hub.publish(Some(&1.into()), &Change::Updated(format!("file:///{number}")));
    }
    hub.publish(Some(&"1".into()), &Change::Tools);
    assert_eq!(drain(&changes), [Change::Resync], "and the tag's JSON type counts");
}

#[test]
fn long_names_of_resources_become_one_resync_and_leave_nothing_behind() {
    let hub = hub();
    let changes = hub.open(SubscriptionFilter::new()).unwrap();
    changes.subscribe(&1.into());
    for number in 0..11 {
        let uri = format!("file:///{number}/{}", "x".repeat(100_000));
        hub.publish(Some(&1.into()), &Change::Updated(uri));
        assert!(hub.waiting_bytes.used() <= 1024 * 1024, "a quarter of the limit");
    }
    assert_eq!(drain(&changes).first(), Some(&Change::Resync));
    assert_eq!(hub.waiting_bytes.used(), 0);
}

#[test]
fn a_server_cannot_agree_to_more_than_it_was_asked_for() {
    let hub = hub();
    let asked = SubscriptionFilter::new()
        .tools_list_changed(true)
        .resource_subscriptions(["file:///a".into(), "file:///b".into()]);
    let changes = hub.open(asked).unwrap();
    changes.subscribe(&1.into());
    let granted = SubscriptionFilter::new()
        .tools_list_changed(true)
        .prompts_list_changed(true)
        .resource_subscriptions(["file:///b".into(), "x".repeat(1 << 20)]);
    hub.acknowledged(&1.into(), &granted);
    let agreed = changes.poll_acknowledged(&mut Context::from_waker(Waker::noop()));
    let expected =
        SubscriptionFilter::new().tools_list_changed(true).resource_subscriptions(["file:///b".into()]);
    assert_eq!(agreed, Poll::Ready(Some(expected)));
}

#[test]
fn listeners_are_counted_and_watchers_too() {
    let hub = hub();
    let open: Vec<_> = (0..3).map(|_| hub.open(SubscriptionFilter::new()).unwrap()).collect();
    assert!(hub.open(SubscriptionFilter::new()).is_none());
    hub.remove(open.first().unwrap());
    assert!(hub.open(SubscriptionFilter::new()).is_some());
    assert!(hub.watch("a") && !hub.watch("a"));
    assert!(!hub.unwatch("a") && hub.unwatch("a") && !hub.unwatch("a"));
}
