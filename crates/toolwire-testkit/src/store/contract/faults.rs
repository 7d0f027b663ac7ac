//! Rules about what goes wrong.

use std::time::Duration;

use toolwire_store::{Advance, Finish, NewTask, OpenQuestion, Outcome, Store, StoreError, TaskNote, limits};

use super::{
    Backend, Cut,
    kit::{
        Case, LONG, all_at_once, answer, claim, clients, create, done, is_lost, json, note, parked, record,
        renew, step, write,
    },
    within,
};

/// Every call ends within its timeout (5 s) with `Unavailable`; repeating one whose outcome is unknown does no harm.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_22_every_call_ends_and_can_be_repeated(backend: &dyn Backend) {
    let store = backend.connect().await;
    let case = Case::new();
    let task = case.leased(LONG);
    for _ in 0..2 {
        create(&store, task.clone()).await;
    }
    let lease = create(&store, task.clone()).await.1.expect("the same lease");
    for _ in 0..2 {
        write(&store, &lease, 1, record("a")).await;
        assert!(renew(&store, &lease, LONG).await);
    }
    for _ in 0..2 {
        write(&store, &lease, 2, Advance::Park(parked(&["k"]))).await;
    }
    for _ in 0..2 {
        store.tasks().answer(&case.owner, &lease.id, vec![answer("k")]).await.expect("an answer");
    }
    let run = claim(&store, &case.claim(1, LONG)).await.pop().expect("it is ready");
    assert_eq!(run.journal.len(), 2, "one entry and one answer");
    for _ in 0..2 {
        store.tasks().cancel(&case.owner, &lease.id, note("why")).await.expect("a cancel");
    }
    assert!(is_lost(&store, &run.lease, 1, done()).await);
    assert_eq!(store.tasks().list(&case.owner, None, 10).await.expect("a list").len(), 1);
    for cut in [Cut::Closed, Cut::Silent] {
        if backend.cut_off(cut).await {
            ends_in_time(&store, &case, &task).await;
            backend.heal().await;
            comes_back(backend, &store, &case).await;
        }
    }
}

async fn ends_in_time(store: &Store, case: &Case, task: &NewTask) {
    let lease = task.lease.map(|lease| toolwire_store::Lease { id: task.id, fence: 1, token: lease.token });
    let lease = lease.expect("a lease");
    let claim = case.claim(1, LONG);
    let calls = async {
        tokio::join!(
            store.tasks().create(case.task()),
            store.tasks().view(&case.owner, &task.id),
            store.tasks().claim(&claim),
            store.tasks().advance(&lease, 9, record("x")),
            store.tasks().answer(&case.owner, &task.id, vec![answer("k")]),
        )
    };
    let ended = within(Duration::from_secs(6), calls).await;
    let (created, viewed, claimed, written, answered) = ended.expect("every call ends within 5 s");
    let errors = [created.err(), viewed.err(), claimed.err(), written.err(), answered.err()];
    for error in errors {
        assert!(error.as_ref().is_some_and(StoreError::is_unavailable), "{error:?}");
    }
}

/// A store that comes back works again without a restart of its users.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_23_a_store_that_comes_back_works_again(backend: &dyn Backend) {
    let store = backend.connect().await;
    let case = Case::new();
    let id = case.asking(&store, &["k"]).await;
    if backend.cut_off(Cut::Closed).await {
        assert!(store.tasks().view(&case.owner, &id).await.is_err());
        backend.heal().await;
    }
    comes_back(backend, &store, &case).await;
    assert_eq!(case.view(&store, &id).await.open.len(), 1, "what was acknowledged is there");
    if backend.restart().await {
        let store = backend.connect().await;
        assert_eq!(case.view(&store, &id).await.open.len(), 1, "also after a restart");
        store.tasks().answer(&case.owner, &id, vec![answer("k")]).await.expect("an answer");
        let run = claim(&store, &case.claim(1, LONG)).await.pop().expect("it is ready");
        write(&store, &run.lease, 1, done()).await;
    }
}

/// Waits until the same client works again, which has to happen within some seconds.
async fn comes_back(backend: &dyn Backend, store: &Store, case: &Case) {
    const TRIES: u32 = 20;
    for tried in 1.. {
        match store.tasks().create(case.task()).await {
            Ok(_) => break,
            // They are counted because a busy machine may do nothing for some seconds.
            Err(error) if error.is_unavailable() && tried < TRIES => {
                backend.pass(Duration::from_millis(500)).await;
            }
            Err(error) => panic!("it does not come back: {error}"),
        }
    }
}

fn text(bytes: usize) -> toolwire_protocol::RawJson {
    json(&format!("{:?}", "x".repeat(bytes - 2)))
}

/// Limits are enforced with `TooLarge` before anything is written.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_24_what_is_too_large_is_refused_before_anything_is_written(backend: &dyn Backend) {
    let store = backend.connect().await;
    let case = Case::new();
    let mut large = case.task();
    large.request.params = text(limits::REQUEST_BYTES + 1);
    assert!(matches!(store.tasks().create(large).await, Err(StoreError::TooLarge { .. })));
    let mut long = case.task();
    long.journal = vec![step("a"); limits::JOURNAL_ENTRIES + 1];
    assert!(matches!(store.tasks().create(long).await, Err(StoreError::TooLarge { .. })));
    assert!(store.tasks().list(&case.owner, None, 10).await.expect("a list").is_empty());

    let lease = case.begin(&store, LONG).await;
    write(&store, &lease, 1, Advance::Record(vec![text(limits::ENTRY_BYTES); 3])).await;
    let before = case.view(&store, &lease.id).await.head.rev;
    let ask = |question| {
        let mut park = parked(&[]);
        park.open = vec![OpenQuestion { key: "k".into(), question }];
        park
    };
    let mut talks = parked(&[]);
    talks.note = Some(TaskNote::message(text(limits::NOTE_BYTES + 1)));
    let many: Vec<String> = (0..=limits::OPEN_QUESTIONS).map(|number| number.to_string()).collect();
    let many = parked(&many.iter().map(String::as_str).collect::<Vec<_>>());
    let steps = [
        Advance::Record(vec![step("a"), text(limits::ENTRY_BYTES + 1)]),
        Advance::Record(vec![text(limits::ENTRY_BYTES), step("no room for this one")]),
        Advance::Record(vec![step("a"); limits::JOURNAL_ENTRIES - 2]),
        Advance::Park(ask(text(limits::ENTRY_BYTES + 1))),
        Advance::Park(many),
        Advance::Park(talks),
        Advance::Note(TaskNote::message(text(limits::NOTE_BYTES + 1))),
        Advance::Finish(Finish::new(Outcome::Result(text(limits::OUTCOME_BYTES + 1)))),
    ];
    for step in steps {
        let refused = store.tasks().advance(&lease, 2, step).await;
        assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    }
    write(&store, &lease, 2, Advance::Park(ask(text(limits::ENTRY_BYTES)))).await;
    let mut too_long = answer("k");
    too_long.entry = text(limits::ENTRY_BYTES + 1);
    let refused = store.tasks().answer(&case.owner, &lease.id, vec![too_long]).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    let view = case.view(&store, &lease.id).await;
    assert_eq!((view.head.rev, view.open.len()), (before + 1, 1), "only the park was written");
    let mut just = answer("k");
    just.entry = text(limits::ENTRY_BYTES);
    store.tasks().answer(&case.owner, &lease.id, vec![just]).await.expect("an answer").expect("it is there");
    let run = claim(&store, &case.claim(1, LONG)).await.pop().expect("it is ready");
    assert_eq!(run.journal.len(), 4);
    let largest = Outcome::Result(text(limits::OUTCOME_BYTES));
    write(&store, &run.lease, 1, Advance::Finish(Finish::new(largest.clone()))).await;
    assert!(case.view(&store, &lease.id).await.outcome == Some(largest), "the largest is kept");
}

/// A node of the last minor version works on the new schema. Nodes that start at the same time do not get into each other's way.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_25_a_store_is_opened_by_several_at_once_and_by_older_nodes(backend: &dyn Backend) {
    let mut stores = clients(backend).await;
    stores.extend(backend.connect_older().await);
    let case = Case::new();
    let made = all_at_once(&stores, |store, _| {
        let case = case.clone();
        async move { create(&store, case.task()).await.0.head.id }
    });
    let made = made.await;
    for store in &stores {
        for id in &made {
            assert_eq!(case.view(store, id).await.head.id, *id);
        }
    }
    for store in &stores {
        let run = claim(store, &case.claim(1, LONG)).await.pop().expect("one for each");
        write(store, &run.lease, 1, done()).await;
    }
}
