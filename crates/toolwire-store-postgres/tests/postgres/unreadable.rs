//! Values that Postgres or this version cannot read, and what is not read at all.

use toolwire_store::{Advance, OpenQuestion, SessionKey, StoreError, TaskNote, Topic, Wake};

use super::Postgres;
use super::kit::{
    OWNER, answer, begin, claimed, id, json, new_task, outcome, park, ready_task, record, write,
};

const NUL: &str = r#""a\u0000b""#;

#[tokio::test]
async fn a_nul_in_a_question_or_a_note_disturbs_nothing() {
    let postgres = Postgres::new().await;
    let store = postgres.direct().await;
    let healthy = begin(&store, 1).await;
    let lease = begin(&store, 2).await;
    let key = "k\0ey";
    let mut asked = park(&[]);
    asked.open = vec![OpenQuestion { key: key.into(), question: json(NUL) }];
    asked.entries = vec![json(NUL)];
    asked.note = Some(TaskNote::message(json(NUL)));
    write(&store, &lease, 1, Advance::Park(asked.clone())).await;
    let revs = store.tasks().revs(&[healthy.id, lease.id, id(3)]).await.unwrap();
    let view = store.tasks().view(&OWNER, &lease.id).await.unwrap().unwrap();
    assert_eq!(revs, [Some(1), Some(view.head.rev), None]);
    assert_eq!((view.open, view.head.note), (asked.open, asked.note.unwrap()));
    assert_eq!(store.tasks().list(&OWNER, None, 10).await.unwrap().len(), 2);
    assert!(store.tasks().answer(&OWNER, &lease.id, vec![answer(key)]).await.unwrap().unwrap().ready);
    let run = claimed(&store, 1).await.pop().unwrap();
    assert_eq!(run.journal, [json(NUL), answer(key).entry]);
    write(&store, &run.lease, 1, Advance::Note(TaskNote::message(json(NUL)))).await;
    assert_eq!(store.tasks().revs(&[lease.id]).await.unwrap(), [Some(view.head.rev + 2)]);
    assert!(
        !store
            .tasks()
            .cancel(&OWNER, &lease.id, TaskNote::message(json(NUL)))
            .await
            .unwrap()
            .unwrap()
            .was_terminal
    );
}

#[tokio::test]
async fn a_value_that_postgres_cannot_take_does_not_make_the_store_unavailable() {
    let store = Postgres::new().await.direct().await;
    let mut task = ready_task(1);
    task.request.tool = "a\0b".into();
    let error = store.tasks().create(task).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
}

#[tokio::test]
async fn a_task_that_cannot_be_read_takes_no_other_one_with_it() {
    let postgres = Postgres::new().await;
    let store = postgres.direct().await;
    let raw = postgres.raw().await;
    for number in 1..=3 {
        let lease = begin(&store, number).await;
        write(&store, &lease, 1, record("1")).await;
        write(&store, &lease, 2, Advance::Release).await;
    }
    // The first two are due for longer. One has a journal that cannot be read, the other was written by a newer version.
    raw.execute("UPDATE task SET due_ms = 1 WHERE id = $1", &[&id(1).as_bytes().as_slice()]).await.unwrap();
    raw.execute(
        "UPDATE journal SET entry = '{\"a\":1,\"a\":2}' WHERE task = $1",
        &[&id(1).as_bytes().as_slice()],
    )
    .await
    .unwrap();
    raw.execute("UPDATE task SET due_ms = 2, phase = 'new' WHERE id = $1", &[&id(2).as_bytes().as_slice()])
        .await
        .unwrap();
    let fences = async || -> Vec<(i64, i64)> {
        let rows = raw.query("SELECT fence, attempt FROM task ORDER BY id", &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let before = fences().await;
    let run = claimed(&store, 1).await.pop().expect("they do not stand in its way");
    assert_eq!(run.lease.id, id(3));
    assert!(claimed(&store, 9).await.is_empty(), "they rest");
    assert_eq!(fences().await[..2], before[..2], "without a lease and without an attempt");
    let listed = store.tasks().list(&OWNER, None, 2).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|head| head.id).collect();
    assert_eq!(listed, [id(3), id(1)], "a page is full although one is left out");
    assert!(matches!(store.tasks().view(&OWNER, &id(2)).await, Err(StoreError::Corrupt(_))));
    assert!(store.tasks().cancel(&OWNER, &id(1), TaskNote::default()).await.unwrap().is_some());
    raw.batch_execute("UPDATE task SET until_ms = 1").await.unwrap();
    assert_eq!(store.tasks().sweep(10).await.unwrap(), 3);
}

#[tokio::test]
async fn the_request_is_read_by_claims_alone() {
    let postgres = Postgres::new().await;
    let store = postgres.direct().await;
    let session = SessionKey::from_bytes([5; 32]);
    let mut task = new_task(1);
    task.request.session = Some(session);
    let lease = store.tasks().create(task).await.unwrap().lease.unwrap();
    let raw = postgres.raw().await;
    raw.batch_execute("UPDATE task SET request = 'not read'").await.unwrap();
    let view = store.tasks().view(&OWNER, &lease.id).await.unwrap().unwrap();
    assert_eq!((view.head.tool.as_str(), view.head.session), ("report", Some(session)));
    let listed = store.tasks().list(&OWNER, None, 10).await.unwrap().pop().unwrap();
    assert_eq!((listed.tool.as_str(), listed.session), ("report", Some(session)));
    assert!(store.tasks().renew(&[lease], super::kit::LEASE).await.unwrap().lost.is_empty());
    write(&store, &lease, 1, Advance::Park(park(&["k"]))).await;
    assert!(store.tasks().answer(&OWNER, &lease.id, vec![answer("k")]).await.unwrap().unwrap().ready);
    let mut wakes = store.bus().listen();
    raw.batch_execute("UPDATE task SET until_ms = 1").await.unwrap();
    assert_eq!(store.tasks().sweep(10).await.unwrap(), 1);
    let expected = Wake::Topic(Topic::Task { id: lease.id, session: Some(session) });
    let told = async { while wakes.next().await.unwrap() != expected {} };
    tokio::time::timeout(super::kit::PATIENCE, told).await.expect("the session is told");
}

#[tokio::test]
async fn a_task_that_has_ended_keeps_neither_its_request_nor_its_journal() {
    let postgres = Postgres::new().await;
    let store = postgres.direct().await;
    let raw = postgres.raw().await;
    for number in 1..=2 {
        let lease = begin(&store, number).await;
        write(&store, &lease, 1, record("\"step\"")).await;
        if number == 1 {
            for _ in 0..2 {
                write(&store, &lease, 2, outcome()).await;
            }
        } else {
            store.tasks().cancel(&OWNER, &lease.id, TaskNote::default()).await.unwrap();
        }
        let view = store.tasks().view(&OWNER, &lease.id).await.unwrap().unwrap();
        assert_eq!((view.head.tool.as_str(), view.outcome.is_some()), ("report", number == 1));
    }
    let kept = "SELECT (SELECT count(*) FROM task WHERE request IS NOT NULL), (SELECT count(*) FROM journal)";
    let row = raw.query_one(kept, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 0));
}

#[tokio::test]
async fn a_run_is_given_all_answers_since_its_claim() {
    let store = Postgres::new().await.direct().await;
    let lease = begin(&store, 1).await;
    let hold = |keys: &[&str]| {
        let mut park = park(keys);
        park.hold = true;
        Advance::Park(park)
    };
    let answers = async |lease| store.tasks().answers(lease).await.unwrap();
    let give =
        async |key: &str| store.tasks().answer(&OWNER, &lease.id, vec![answer(key)]).await.unwrap().unwrap();
    assert!(answers(&lease).await.is_empty());
    write(&store, &lease, 1, hold(&["a", "b"])).await;
    assert_eq!(give("b").await.taken, ["b"]);
    // It was written before the run could know of the answer.
    write(&store, &lease, 2, hold(&["b", "c"])).await;
    assert_eq!(answers(&lease).await, [answer("b").entry]);
    give("c").await;
    assert_eq!(answers(&lease).await, [answer("b").entry, answer("c").entry]);
    write(&store, &lease, 3, record("1")).await;
    write(&store, &lease, 4, Advance::Release).await;
    let run = claimed(&store, 1).await.pop().unwrap();
    assert_eq!(run.journal.len(), 3, "the next run has them in its journal");
    assert!(answers(&run.lease).await.is_empty());
    write(&store, &run.lease, 1, hold(&["d"])).await;
    give("d").await;
    assert_eq!(answers(&run.lease).await, [answer("d").entry]);
    assert!(matches!(store.tasks().answers(&lease).await, Err(StoreError::Lost)));
}
