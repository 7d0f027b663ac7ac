//! The rule about questions and answers.

use std::time::Duration;

use toolwire_protocol::wire::TaskStatus;
use toolwire_store::{Advance, Answered, Store, TaskId};

use super::{
    Backend,
    kit::{
        Case, LATE, LONG, SHORT, all_at_once, answer, answer_entry, claim, clients, is_lost, parked,
        question, record, step, write,
    },
};

/// `answer` takes open keys only, each once, also among concurrent answers and while a run is under way; the last open
/// key of a parked task makes it ready exactly once; `Park` never opens an answered key.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_10_each_open_key_is_answered_once(backend: &dyn Backend) {
    let clients = clients(backend).await;
    one_by_one(backend, &clients[0]).await;
    for _ in 0..10 {
        at_once(&clients).await;
    }
    while_a_run_is_under_way(backend, &clients[0]).await;
    when_the_run_has_missed_them(&clients[0]).await;
    while_it_is_held(&clients[0]).await;
    while_a_run_is_held_again(&clients[0]).await;
}

async fn give(store: &Store, case: &Case, id: &TaskId, keys: &[&str]) -> Answered {
    let answers = keys.iter().map(|key| answer(key)).collect();
    store.tasks().answer(&case.owner, id, answers).await.expect("an answer").expect("the task is there")
}

async fn one_by_one(backend: &dyn Backend, store: &Store) {
    let case = Case::new();
    let id = case.asking(store, &["name", "depth"]).await;
    let before = case.view(store, &id).await;
    let nothing = give(store, &case, &id, &["other"]).await;
    assert_eq!((nothing.taken.len(), nothing.left.len(), nothing.ready), (0, 2, false));
    assert_eq!(case.view(store, &id).await.head.rev, before.head.rev, "nothing has changed");
    let first = give(store, &case, &id, &["depth", "depth", "other"]).await;
    assert_eq!(
        (first.taken, first.left, first.ready),
        (vec!["depth".to_owned()], vec!["name".to_owned()], false)
    );
    let view = case.view(store, &id).await;
    assert_eq!((view.head.status, view.open), (TaskStatus::InputRequired, vec![question("name")]));
    assert!(view.head.rev > before.head.rev && view.head.updated_ms >= before.head.updated_ms);
    assert!(claim(store, &case.claim(9, LONG)).await.is_empty(), "a part is not enough");
    assert!(give(store, &case, &id, &["depth"]).await.taken.is_empty(), "once");
    let last = give(store, &case, &id, &["depth", "name"]).await;
    assert_eq!((last.taken, last.left, last.ready), (vec!["name".to_owned()], Vec::new(), true));
    let view = case.view(store, &id).await;
    assert_eq!((view.head.status, view.open.len()), (TaskStatus::Working, 0));
    let run = case.claim_within(backend, store, LATE, LONG).await;
    assert_eq!(run.journal, [answer_entry("depth"), answer_entry("name")]);
    assert!(claim(store, &case.claim(9, LONG)).await.is_empty(), "it was ready once");
}

async fn at_once(clients: &[Store]) {
    let case = Case::new();
    let id = case.asking(&clients[0], &["a", "b"]).await;
    let answered = all_at_once(clients, |store, number| {
        let case = case.clone();
        async move {
            let first = give(&store, &case, &id, &[["a", "b"][number % 2]]).await;
            let second = give(&store, &case, &id, &["a", "b"]).await;
            (first.taken.len() + second.taken.len(), usize::from(first.ready) + usize::from(second.ready))
        }
    });
    let answered = answered.await;
    assert_eq!(answered.iter().map(|(taken, _)| taken).sum::<usize>(), 2, "each key once");
    assert_eq!(answered.iter().map(|(_, ready)| ready).sum::<usize>(), 1, "ready once");
    let runs = all_at_once(clients, |store, _| {
        let case = case.clone();
        async move { claim(&store, &case.claim(9, LONG)).await }
    });
    let runs: Vec<_> = runs.await.into_iter().flatten().collect();
    assert_eq!(runs.len(), 1, "claimed once");
    assert_eq!(runs[0].journal.len(), 2, "{:?}", runs[0].journal);
}

/// A timer fires beside an open question: the claim closes no key.
async fn while_a_run_is_under_way(backend: &dyn Backend, store: &Store) {
    let case = Case::new();
    let lease = case.begin(store, LONG).await;
    let mut park = parked(&["name", "old", "later"]);
    (park.entries, park.wake) = (vec![step("asked")], Some(SHORT));
    write(store, &lease, 1, Advance::Park(park)).await;
    let run = case.claim_within(backend, store, SHORT + LATE, LONG).await;
    assert_eq!(run.head.status, TaskStatus::InputRequired, "also while it runs");
    let taken = give(store, &case, &lease.id, &["name"]).await;
    assert_eq!((taken.taken.len(), taken.left.len(), taken.ready), (1, 2, false));
    write(store, &run.lease, 1, record("by the run")).await;
    let mut again = parked(&["name", "later", "new"]);
    again.entries = vec![step("asked again")];
    write(store, &run.lease, 2, Advance::Park(again)).await;
    let view = case.view(store, &lease.id).await;
    assert_eq!(view.open, [question("later"), question("new")], "one is answered, one is no longer asked");
    assert!(give(store, &case, &lease.id, &["old", "name"]).await.taken.is_empty());
    assert!(give(store, &case, &lease.id, &["later", "new"]).await.ready);
    let last = case.claim_within(backend, store, LATE, LONG).await;
    let expected = [
        step("asked"),
        answer_entry("name"),
        step("by the run"),
        step("asked again"),
        answer_entry("later"),
        answer_entry("new"),
    ];
    assert_eq!(last.journal, expected, "in the order in which they were accepted");
}

/// All that a run waits for was answered before it parked.
async fn when_the_run_has_missed_them(store: &Store) {
    let case = Case::new();
    let id = case.asking(store, &["name"]).await;
    assert!(give(store, &case, &id, &["name"]).await.ready);
    for wake in [None, Some(LONG)] {
        let run = claim(store, &case.claim(1, LONG)).await.pop().expect("it is ready");
        let mut park = parked(&["name"]);
        park.wake = wake;
        write(store, &run.lease, 1, Advance::Park(park)).await;
        assert_eq!(
            case.view(store, &id).await.head.status,
            TaskStatus::Working,
            "an answered key stays closed"
        );
    }
    let run = claim(store, &case.claim(1, LONG)).await.pop().expect("it is ready at once");
    write(store, &run.lease, 1, Advance::Park(parked(&[]))).await;
    let run = claim(store, &case.claim(1, LONG)).await.pop().expect("there was nothing to wait for");
    // With a timer alone it waits for that.
    let mut park = parked(&[]);
    park.wake = Some(LONG);
    write(store, &run.lease, 1, Advance::Park(park)).await;
    assert!(claim(store, &case.claim(1, LONG)).await.is_empty());
}

async fn while_it_is_held(store: &Store) {
    let case = Case::new();
    let lease = case.begin(store, LONG).await;
    let mut park = parked(&["name", "depth"]);
    (park.entries, park.hold) = (vec![step("asked")], true);
    write(store, &lease, 1, Advance::Park(park.clone())).await;
    assert_eq!(case.view(store, &lease.id).await.head.status, TaskStatus::InputRequired);
    let answers = async || store.tasks().answers(&lease).await.expect("answers");
    assert!(answers().await.is_empty());
    give(store, &case, &lease.id, &["depth"]).await;
    assert_eq!(answers().await, [answer_entry("depth")]);
    write(store, &lease, 2, record("goes on")).await;
    let last = give(store, &case, &lease.id, &["name"]).await;
    assert!(!last.ready, "the one who holds it goes on");
    for _ in 0..2 {
        assert_eq!(answers().await, [answer_entry("depth"), answer_entry("name")]);
    }
    assert!(claim(store, &case.claim(9, LONG)).await.is_empty());
    assert_eq!(case.view(store, &lease.id).await.head.status, TaskStatus::Working);
    park.open = vec![question("next")];
    write(store, &lease, 3, Advance::Park(park)).await;
    store.tasks().renew(&[lease], Duration::ZERO).await.expect("a renewal");
    let taken = claim(store, &case.claim(1, LONG)).await.pop().expect("a held lease ends like any other");
    assert!(store.tasks().answers(&lease).await.is_err());
    let of_the_new_lease = store.tasks().answers(&taken.lease).await.expect("answers");
    assert!(
        of_the_new_lease.is_empty(),
        "the older ones are in the journal of the claim: {of_the_new_lease:?}"
    );
    assert!(is_lost(store, &lease, 4, record("late")).await);
    assert_eq!(taken.journal.len(), 5);
}

/// A question that stays is answered while the run is being held for another one.
async fn while_a_run_is_held_again(store: &Store) {
    let case = Case::new();
    let lease = case.begin(store, LONG).await;
    let held = |keys: &[&str]| {
        let mut park = parked(keys);
        park.hold = true;
        Advance::Park(park)
    };
    write(store, &lease, 1, held(&["a", "b"])).await;
    give(store, &case, &lease.id, &["a"]).await;
    give(store, &case, &lease.id, &["b"]).await;
    write(store, &lease, 2, held(&["b", "c"])).await;
    assert_eq!(case.view(store, &lease.id).await.open, [question("c")], "an answered key stays closed");
    let answers = store.tasks().answers(&lease).await.expect("answers");
    assert!(answers.contains(&answer_entry("b")), "the run would wait for it for ever: {answers:?}");
    give(store, &case, &lease.id, &["c"]).await;
    let answers = store.tasks().answers(&lease).await.expect("answers");
    assert_eq!(answers.last(), Some(&answer_entry("c")), "in order: {answers:?}");
    assert!(answers.contains(&answer_entry("b")), "asking again gives them again: {answers:?}");
}
