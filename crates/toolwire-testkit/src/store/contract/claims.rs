//! Rules about who works on a task, and when.

use std::{collections::HashSet, time::Duration};

use toolwire_store::{Advance, Claim, KeyId, Lease, Store, TaskId, TaskNote};

use super::{
    Backend,
    kit::{
        Case, LATE, LONG, SHORT, TooLate, all_at_once, claim, clients, create, done, in_time, is_lost, ms,
        now, parked, record, renew, sweep, token, write,
    },
};

/// A claim gives a task to one node; among concurrent claimers nothing is doubled and nothing is left.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_04_a_task_is_given_to_one_node(backend: &dyn Backend) {
    let clients = clients(backend).await;
    let case = Case::new();
    let mut made = HashSet::new();
    for _ in 0..100 {
        made.insert(create(&clients[0], case.task()).await.0.head.id);
    }
    let claimed = all_at_once(&clients, |store, number| {
        let case = case.clone();
        async move {
            let (mut mine, mut nothing) = (Vec::new(), 0);
            // Somebody else may be holding what is left while this one looks, so one look is not enough.
            while nothing < 3 {
                let got = claim(&store, &case.claim(1 + number, LONG)).await;
                assert!(got.len() <= 1 + number, "no more than was asked for");
                nothing = if got.is_empty() { nothing + 1 } else { 0 };
                mine.extend(got.into_iter().map(|claimed| claimed.lease.id));
                assert!(mine.len() <= 100, "some were given to one node again and again");
            }
            mine
        }
    });
    let claimed: Vec<TaskId> = claimed.await.into_iter().flatten().collect();
    let distinct: HashSet<TaskId> = claimed.iter().copied().collect();
    assert_eq!(claimed.len(), distinct.len(), "some were given to two");
    assert_eq!(distinct, made, "some were left");
    assert!(claim(&clients[0], &case.claim(0, LONG)).await.is_empty());
}

/// A claim takes only served pairs whose format and key it names, the longest due first; none is passed over for ever.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_05_a_claim_takes_what_it_can_read_the_longest_due_first(backend: &dyn Backend) {
    let store = backend.connect().await;
    let case = Case::new();
    let (key, other_key) = (KeyId::from_bytes([1; 4]), KeyId::from_bytes([2; 4]));
    let mut unreadable = Vec::new();
    for number in 0..12 {
        let mut task = case.task();
        match number % 4 {
            0 => task.request.tool.push('x'),
            1 => task.request.revision = 2,
            2 => task.format = 3,
            _ => task.key = Some(other_key),
        }
        unreadable.push(task.id);
        create(&store, task).await;
    }
    backend.pass(Duration::from_millis(5)).await;
    let mut readable = Vec::new();
    for number in 0..6 {
        let mut task = case.task();
        (task.format, task.key) = (1 + number % 2, (number % 3 == 0).then_some(key));
        readable.push(task.id);
        create(&store, task).await;
        backend.pass(Duration::from_millis(5)).await;
    }
    let able = |max| {
        let mut claim = case.claim(max, LONG);
        (claim.format, claim.keys) = (2, vec![key]);
        claim
    };
    let ids = async |wanted: Claim| -> Vec<TaskId> {
        claim(&store, &wanted).await.into_iter().map(|claimed| claimed.lease.id).collect()
    };
    assert_eq!(ids(able(1)).await, readable[..1], "the others do not stand in its way");
    assert_eq!(ids(able(3)).await, readable[1..4], "the longest due first");
    assert_eq!(ids(able(9)).await, readable[4..]);
    assert!(ids(able(9)).await.is_empty());
    let mut nobody = able(9);
    nobody.serves.clear();
    assert!(ids(nobody).await.is_empty());
    let mut all = able(20);
    all.serves = vec![(case.tool.clone(), 1), (case.tool.clone(), 2), (format!("{}x", case.tool), 1)];
    (all.format, all.keys) = (3, vec![other_key]);
    let mut rest = ids(all).await;
    rest.sort_unstable();
    unreadable.sort_unstable();
    assert_eq!(rest, unreadable);
}

/// Every claim raises the fence; a write with an older one, or another token, is `Lost` and changes nothing. So it is
/// after cancel, end and expiry.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_06_a_write_with_an_older_fence_or_another_token_is_lost(backend: &dyn Backend) {
    let store = backend.connect().await;
    let case = Case::new();
    let first = case.begin(&store, SHORT).await;
    write(&store, &first, 1, record("of the first")).await;
    let second = case.claim_within(backend, &store, SHORT + LATE, LONG).await;
    assert!(second.lease.fence > first.fence && second.lease.token != first.token);
    let before = case.view(&store, &first.id).await;
    let forged = [
        first,
        Lease { fence: second.lease.fence, ..first },
        Lease { fence: first.fence, ..second.lease },
        Lease { fence: second.lease.fence + 1, ..second.lease },
        Lease { token: token(), ..second.lease },
    ];
    for lease in &forged {
        for step in [
            record("x"),
            Advance::Note(TaskNote::default()),
            Advance::Park(parked(&["k"])),
            done(),
            Advance::Release,
        ] {
            assert!(is_lost(&store, lease, 7, step).await);
        }
        assert!(!renew(&store, lease, LONG).await);
        assert!(store.tasks().answers(lease).await.is_err());
    }
    let after = case.view(&store, &first.id).await;
    assert_eq!(
        (after.head.rev, &after.open, after.head.status),
        (before.head.rev, &before.open, before.head.status)
    );
    write(&store, &second.lease, 1, Advance::Release).await;
    assert!(is_lost(&store, &second.lease, 2, record("after the release")).await);
    let third = case.claim_within(backend, &store, LATE, LONG).await;
    assert_eq!(third.journal.len(), 1, "nothing was written with the wrong lease");
    assert!(third.lease.fence > second.lease.fence);
    assert!(is_lost(&store, &second.lease, 1, Advance::Release).await);

    store.tasks().cancel(&case.owner, &first.id, TaskNote::default()).await.expect("a cancel");
    assert!(is_lost(&store, &third.lease, 1, done()).await, "it was cancelled");
    assert!(!renew(&store, &third.lease, LONG).await);
    let ended = case.begin(&store, LONG).await;
    write(&store, &ended, 1, done()).await;
    assert!(is_lost(&store, &ended, 2, record("late")).await, "it has ended");
    let mut task = case.leased(LONG);
    (task.keep, task.ttl) = (Duration::from_millis(50), Duration::from_millis(100));
    let expired = create(&store, task).await.1.expect("a lease");
    backend.pass(Duration::from_millis(150)).await;
    sweep(&store).await;
    assert!(is_lost(&store, &expired, 1, record("late")).await, "it has expired");
    assert!(!renew(&store, &expired, LONG).await);
}

/// A lease renewed in time is never given away; one that is not can be claimed within lease + 1 s, later attempts after their
/// pause.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_07_a_lease_that_is_renewed_is_never_given_away(backend: &dyn Backend) {
    let store = backend.connect().await;
    in_time(async |short| is_renewed(backend, &store, short).await).await;
}

async fn is_renewed(backend: &dyn Backend, store: &Store, short: Duration) -> Result<(), TooLate> {
    let case = Case::new();
    let lease = case.begin(store, short * 4).await;
    for _ in 0..8 {
        backend.pass(short / 2).await;
        let until = now(store).await + ms(short * 4);
        assert!(renew(store, &lease, short * 4).await, "it was renewed in time");
        case.claims_nothing_before(store, until).await?;
    }
    let second = case.claim_within(backend, store, short * 4 + LATE, short).await;
    assert_eq!(second.attempt, 2);
    // The third waits half a lease longer.
    let due = second.now_ms + ms(short) + ms(short / 2);
    backend.pass(short + short / 4).await;
    case.claims_nothing_before(store, due).await?;
    let third = case.claim_within(backend, store, short + LATE, short).await;
    assert_eq!(third.attempt, 3);
    // With progress there is nothing to wait for.
    write(store, &third.lease, 1, record("progress")).await;
    let fourth = case.claim_within(backend, store, short + LATE, LONG).await;
    assert_eq!(fourth.attempt, 1, "it counts from the last entry on");
    assert!(fourth.lease.fence > third.lease.fence);
    // Giving back is no attempt, and waits for nothing.
    write(store, &fourth.lease, 1, Advance::Release).await;
    let fifth = claim(store, &case.claim(1, short)).await.pop().expect("it is ready at once");
    assert_eq!(fifth.attempt, 1);
    // A lease that is over holds as long as nobody else has come.
    backend.pass(short + Duration::from_millis(20)).await;
    assert!(renew(store, &fifth.lease, LONG).await);
    write(store, &fifth.lease, 1, record("more")).await;
    Ok(())
}

/// A park with `wake` can be claimed at its time ± 1 s, also after the store was restarted.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_12_a_timer_is_due_at_its_time(backend: &dyn Backend) {
    for restart in [false, true] {
        in_time(async |short| is_due(backend, restart, short).await).await;
    }
}

async fn is_due(backend: &dyn Backend, restart: bool, short: Duration) -> Result<(), TooLate> {
    let mut store = backend.connect().await;
    let case = Case::new();
    let lease = case.begin(&store, LONG).await;
    let mut park = parked(&[]);
    park.wake = Some(short * 2);
    let due = now(&store).await + ms(short * 2);
    write(&store, &lease, 1, Advance::Park(park)).await;
    case.claims_nothing_before(&store, due).await?;
    backend.pass(short).await;
    case.claims_nothing_before(&store, due).await?;
    if restart && backend.restart().await {
        store = backend.connect().await;
        case.claims_nothing_before(&store, due).await?;
    }
    let woken = case.claim_within(backend, &store, short + LATE, LONG).await;
    assert_eq!((woken.lease.id, woken.attempt), (lease.id, 1));
    write(&store, &woken.lease, 1, done()).await;
    Ok(())
}
