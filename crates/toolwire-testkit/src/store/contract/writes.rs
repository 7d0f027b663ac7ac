//! Rules about what runs write.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use toolwire_protocol::wire::TaskStatus;
use toolwire_store::{Advance, Finish, Lease, OpenQuestion, Outcome, StoreError, TaskNote, limits};

use super::{
    Backend,
    kit::{
        Case, LATE, LONG, all_at_once, answer, claim, clients, create, done, json, note, parked, question,
        record, step, write,
    },
};

/// `advance` is all or nothing: entries, status, questions and lease together; the same `n` of a lease again changes
/// nothing and is `Ok`, also after `Park` and `Finish`.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_08_a_write_is_all_or_nothing_and_can_be_repeated(backend: &dyn Backend) {
    let (store, other) = (backend.connect().await, backend.connect().await);
    let case = Case::new();
    let lease = case.begin(&store, LONG).await;
    for n in [1, 1, 2, 2, 2] {
        let rev = write(&store, &lease, n, Advance::Record(vec![step("a"), step("b")])).await;
        assert_eq!(rev, case.view(&other, &lease.id).await.head.rev);
    }
    for n in [0, 1] {
        let lower = store.tasks().advance(&lease, n, record("lower")).await;
        assert!(matches!(lower, Err(StoreError::Conflict)), "{n}: {lower:?}");
    }
    let noted = write(&store, &lease, 3, Advance::Note(note("half"))).await;
    assert_eq!(noted, write(&store, &lease, 3, Advance::Note(note("half"))).await, "changed once");
    let view = case.view(&store, &lease.id).await;
    assert_eq!((view.head.rev, view.head.note), (noted, note("half")));

    // One part of it is refused, so all of it is.
    let mut park = parked(&["name"]);
    park.entries = vec![step("c")];
    let large = json(&format!("{:?}", "x".repeat(limits::ENTRY_BYTES)));
    park.open.push(OpenQuestion { key: "large".into(), question: large });
    let refused = store.tasks().advance(&lease, 4, Advance::Park(park.clone())).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    let view = case.view(&other, &lease.id).await;
    assert_eq!((view.head.rev, view.head.status, view.open.len()), (noted, TaskStatus::Working, 0));

    park.open.pop();
    park.note = Some(note("waits"));
    for _ in 0..2 {
        write(&store, &lease, 4, Advance::Park(park.clone())).await;
        let view = case.view(&other, &lease.id).await;
        assert_eq!(view.head.status, TaskStatus::InputRequired);
        assert_eq!((view.open, view.head.note), (vec![question("name")], note("waits")));
    }
    let after = store.tasks().advance(&lease, 5, record("after the park")).await;
    assert!(matches!(after, Err(StoreError::Lost)), "the lease went with the park: {after:?}");
    other.tasks().answer(&case.owner, &lease.id, vec![answer("name")]).await.expect("an answer");
    write(&store, &lease, 4, Advance::Park(park)).await;
    assert_eq!(case.view(&store, &lease.id).await.head.status, TaskStatus::Working, "not parked again");

    let next = case.claim_within(backend, &other, LATE, LONG).await;
    assert_eq!(next.journal.len(), 6, "a, b, a, b, c and the answer: {:?}", next.journal);
    let mut finish = Finish::new(Outcome::Error(json(r#"{"code":-32603}"#)));
    finish.note = Some(note("failed"));
    for _ in 0..2 {
        write(&store, &next.lease, 1, Advance::Finish(finish.clone())).await;
    }
    let view = case.view(&store, &lease.id).await;
    assert_eq!(
        (view.head.status, view.head.note, view.outcome),
        (TaskStatus::Failed, note("failed"), Some(finish.outcome))
    );
}

/// Entries come back complete, in order, byte for byte. A claim's journal has every entry that was ever accepted under
/// an older fence.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_09_a_claim_has_every_entry_that_was_ever_accepted(backend: &dyn Backend) {
    let clients = clients(backend).await;
    let case = Case::new();
    bytes_are_kept(&case, &clients[0]).await;
    let mut turns = 0;
    while turns < backend.turns() {
        turns += race(&case, &clients).await;
    }
}

async fn bytes_are_kept(case: &Case, store: &toolwire_store::Store) {
    let odd = [
        r#"{"k": "step",  "v":1.50e+3}"#,
        r#"{"k":"step","v":"\u0000\ud83d\ude00 ü 漢 \\ ' \" % ; -- $1 :x {0}"}"#,
        "[ ]",
        "null",
        "12345678901234567890.12345678901234567890",
        r#""""#,
    ];
    let odd = odd.map(json);
    let mut task = case.task();
    task.journal = odd[..2].to_vec();
    task.request.params = odd[1].clone();
    "a\u{0}b'\"\\".clone_into(&mut task.request.call);
    task.request.progress = Some("p".into());
    let request = task.request.clone();
    create(store, task).await;
    let first = claim(store, &case.claim(1, LONG)).await.pop().expect("it is ready");
    assert_eq!(first.request, request, "the request comes back as it was");
    write(store, &first.lease, 1, Advance::Record(odd[2..].to_vec())).await;
    write(store, &first.lease, 2, Advance::Release).await;
    let second = claim(store, &case.claim(1, LONG)).await.pop().expect("it is ready");
    assert_eq!(second.journal, odd);
    let finish = Finish::new(Outcome::Result(odd[1].clone()));
    write(store, &second.lease, 1, Advance::Finish(finish)).await;
    assert_eq!(case.view(store, &first.lease.id).await.outcome, Some(Outcome::Result(odd[1].clone())));
}

/// All clients claim one task, with leases that are over at once, and write to it as long as they believe that it is theirs. Gives
/// how many tried.
async fn race(case: &Case, clients: &[toolwire_store::Store]) -> usize {
    const EACH: usize = 60;
    let case = Case { tool: format!("{}-race", Case::new().tool), ..case.clone() };
    create(&clients[0], case.task()).await;
    let accepted: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let claims = all_at_once(clients, |store, number| {
        let (case, accepted) = (case.clone(), accepted.clone());
        async move {
            let (mut seen, mut mine) = (Vec::new(), None::<(Lease, u64)>);
            for turn in 0..EACH {
                if turn % 3 == number % 3 || mine.is_none() {
                    let claimed = claim(&store, &case.claim(1, Duration::ZERO)).await.pop();
                    if let Some(claimed) = claimed {
                        let journal: Vec<String> =
                            claimed.journal.iter().map(|entry| entry.text().to_owned()).collect();
                        seen.push((claimed.lease.fence, journal));
                        mine = Some((claimed.lease, 0));
                    }
                }
                let Some((lease, n)) = &mut mine else { continue };
                *n += 1;
                let entry = step(&format!("{number} {turn}"));
                match store.tasks().advance(lease, *n, Advance::Record(vec![entry.clone()])).await {
                    Ok(_) => {
                        let mut accepted = accepted.lock().unwrap_or_else(PoisonError::into_inner);
                        accepted.push((lease.fence, entry.text().to_owned()));
                    }
                    Err(StoreError::Lost) => mine = None,
                    Err(error) => panic!("{error}"),
                }
            }
            seen
        }
    });
    let claims: Vec<(u64, Vec<String>)> = claims.await.into_iter().flatten().collect();
    let accepted = accepted.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(!accepted.is_empty() && claims.len() > 1);
    let fences: HashSet<u64> = claims.iter().map(|(fence, _)| *fence).collect();
    assert_eq!(fences.len(), claims.len(), "a fence was given twice");
    for (fence, journal) in &claims {
        let known: HashSet<&String> = journal.iter().collect();
        assert_eq!(known.len(), journal.len(), "an entry is there twice");
        let missing = accepted.iter().find(|(older, entry)| older < fence && !known.contains(entry));
        assert!(missing.is_none(), "the claim with fence {fence} has not what was accepted: {missing:?}");
        let foreign = journal
            .iter()
            .find(|entry| accepted.iter().any(|(accepted, text)| text == *entry && accepted >= fence));
        assert!(foreign.is_none(), "{foreign:?} was written before it was allowed");
    }
    EACH * clients.len()
}

/// A terminal status never changes.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_11_an_end_never_changes(backend: &dyn Backend) {
    let clients = clients(backend).await;
    let store = &clients[0];
    let case = Case::new();
    for turn in 0..20 {
        let lease = case.begin(store, LONG).await;
        // Half of the clients end it, half of them cancel it.
        let ends = all_at_once(&clients, |store, number| {
            let case = case.clone();
            async move {
                if number % 2 == turn % 2 {
                    store.tasks().advance(&lease, 1, done()).await.is_ok()
                } else {
                    let cancelled = store.tasks().cancel(&case.owner, &lease.id, note("why")).await;
                    !cancelled.expect("a cancel").expect("it is there").was_terminal
                }
            }
        });
        let ends = ends.await;
        let ended = case.view(store, &lease.id).await;
        let (finished, cancelled): (Vec<_>, Vec<_>) =
            ends.iter().enumerate().partition(|(number, _)| number % 2 == turn % 2);
        let finished = finished.iter().any(|(_, done)| **done);
        let cancelled = cancelled.iter().filter(|(_, done)| **done).count();
        assert_eq!(
            (finished, cancelled),
            if cancelled == 0 { (true, 0) } else { (false, 1) },
            "one end only"
        );
        let expected = if finished { TaskStatus::Completed } else { TaskStatus::Cancelled };
        assert_eq!((ended.head.status, ended.outcome.is_some()), (expected, finished));

        let again = store.tasks().cancel(&case.owner, &lease.id, TaskNote::default()).await;
        let again = again.expect("a cancel").expect("it is there");
        assert!(again.was_terminal);
        assert_eq!(again.now.head.status, expected);
        let answered = store.tasks().answer(&case.owner, &lease.id, vec![answer("k")]).await;
        assert!(answered.expect("an answer").expect("it is there").taken.is_empty());
        for step in [record("x"), Advance::Park(parked(&["k"])), Advance::Release, done()] {
            assert!(store.tasks().advance(&lease, 2, step).await.is_err());
        }
        assert!(claim(store, &case.claim(9, LONG)).await.is_empty());
        let after = case.view(store, &lease.id).await;
        assert_eq!((after.head.rev, after.head.status, after.open), (ended.head.rev, expected, Vec::new()));
    }
}
