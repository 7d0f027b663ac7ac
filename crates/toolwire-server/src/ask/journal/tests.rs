use super::*;

fn result() -> RawJson {
    RawJson::parse("7").unwrap()
}

/// Comes by a step: its result, if it has one.
fn step(journal: &mut Journal, name: &str) -> Result<Option<RawJson>, AskError> {
    known(journal.step(name))
}

fn at_most_once(journal: &mut Journal, name: &str) -> Result<Option<RawJson>, AskError> {
    known(journal.step_at_most_once(name))
}

fn known(found: Result<Found, AskError>) -> Result<Option<RawJson>, AskError> {
    found.map(|found| match found {
        Found::Known(result) | Found::Unwritten(Unwritten { result, .. }) => Some(result),
        Found::Nothing => None,
    })
}

fn run(journal: &mut Journal, name: &str) {
    assert_eq!(step(journal, name), Ok(None));
    journal.record(name, result());
    journal.step_ended(name, None);
}

/// A result whose write never ends.
fn unwritten() -> Unwritten {
    Unwritten { result: result(), written: Box::pin(std::future::pending()) }
}

#[test]
fn a_name_stands_for_one_step_of_a_run() {
    let twice = Err(AskError::StepNamedTwice("a".to_owned()));
    let mut journal = Journal::default();
    assert_eq!(step(&mut journal, "a"), Ok(None));
    assert_eq!(step(&mut journal, "a"), twice, "while it runs");
    journal.step_ended("a", None);
    run(&mut journal, "a");
    assert_eq!(step(&mut journal, "a"), twice, "when it has given its result");
    assert_eq!(step(&mut journal, "b"), Ok(None));

    let (_, left) = journal.suspend();
    let mut again = Journal::default();
    again.load(Some(left), None);
    assert_eq!(step(&mut again, "a"), Ok(Some(result())), "in another run it is found");
    assert_eq!(step(&mut again, "a"), twice, "once");
    assert_eq!(step(&mut again, "b"), Ok(None), "it was never recorded");
}

#[test]
fn a_handler_that_a_layer_calls_again_finds_its_steps() {
    let mut journal = Journal::default();
    run(&mut journal, "a");
    assert_eq!(step(&mut journal, "b"), Ok(None));
    journal.called_again();
    assert_eq!(step(&mut journal, "a"), Ok(Some(result())));
    assert!(step(&mut journal, "b").is_err(), "it still runs");
    assert_eq!(journal.footprint().steps.len(), 2);
}

#[test]
fn a_rerun_starts_with_the_steps_of_the_one_before() {
    let mut journal = Journal::default();
    run(&mut journal, "a");
    journal.set_user(Some(result()));
    journal.rerun();
    assert_eq!((journal.round(), journal.user()), (2, Some(result())));
    assert_eq!(step(&mut journal, "a"), Ok(Some(result())));
    journal.rerun();
    assert_eq!((journal.round(), journal.user()), (3, None));
}

#[test]
fn what_may_run_at_most_once_has_begun_for_the_whole_run() {
    let interrupted = Err(AskError::Interrupted("pay".to_owned()));
    let mut journal = Journal::default();
    assert_eq!(at_most_once(&mut journal, "pay"), Ok(None));
    journal.step_ended("pay", None);
    assert_eq!(at_most_once(&mut journal, "pay"), Ok(None), "it was dropped before it began");
    journal.begin("pay");
    assert_eq!(
        at_most_once(&mut journal, "pay"),
        Err(AskError::StepNamedTwice("pay".to_owned())),
        "while it runs"
    );
    journal.called_again();
    assert!(at_most_once(&mut journal, "pay").is_err());
    journal.step_ended("pay", None);
    assert_eq!(at_most_once(&mut journal, "pay"), interrupted);
    journal.called_again();
    assert_eq!(at_most_once(&mut journal, "pay"), interrupted, "also when a layer calls the handler again");
    assert_eq!(at_most_once(&mut journal.as_before(), "pay"), interrupted, "also in a replay");
    journal.rerun();
    assert_eq!(at_most_once(&mut journal, "pay"), interrupted, "also in another round");
    assert_eq!(journal.so_far().1, ["pay"]);
    journal.record("pay", result());
    journal.called_again();
    assert_eq!(at_most_once(&mut journal, "pay"), Ok(Some(result())), "its result is known");
}

#[test]
fn a_result_that_is_being_written_is_left_to_the_next_step_of_its_name() {
    let mut journal = Journal::default();
    for _ in 0..2 {
        assert_eq!(at_most_once(&mut journal, "a").map(drop), Ok(()));
        journal.begin("a");
        journal.step_ended("a", Some(unwritten()));
        assert_eq!(step(&mut journal, "a"), Ok(Some(result())));
        assert_eq!(
            step(&mut journal, "a"),
            Err(AskError::StepNamedTwice("a".to_owned())),
            "it counts as running"
        );
        journal.step_ended("a", Some(unwritten()));
        journal.called_again();
    }
    let (_, left) = journal.suspend();
    assert_eq!(left.steps.get("a"), Some(&result()), "a round takes it along");
}

#[test]
fn a_question_that_is_put_replaces_one_with_its_key() {
    let mut journal = Journal::default();
    journal.put("a".to_owned(), InputRequest::ListRoots(None), "d".to_owned());
    journal.put("a".to_owned(), InputRequest::ListRoots(None), "e".to_owned());
    let asked = journal.waits().questions;
    assert_eq!(asked.iter().map(|asked| asked.digest.as_str()).collect::<Vec<_>>(), ["e"]);
}
