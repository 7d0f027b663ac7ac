//! The program in a terminal, operated by keyboard.
//!
//! Before each key, a test waits for the text on the screen that a person would wait for.

#![cfg(unix)]

mod issuer;
mod screen;

use screen::{Key, Screen};

/// Both eras: in one the question is asked while the call is open, in the other between two calls.
const ERAS: [&str; 2] = ["modern", "legacy"];

#[test]
fn a_form_is_filled_in_by_keyboard() {
    for era in ERAS {
        let screen = Screen::on_demo(&["call", "order", "--era", era]);
        screen.wait_for("What kind of tea would you like?");

        screen.wait_for("? Name");
        screen.write("A").press(Key::Enter);
        screen.wait_for("at least 2 characters are needed");
        screen.write("da").press(Key::Enter);

        screen.wait_for("? E-mail");
        screen.write("nobody").press(Key::Enter);
        screen.wait_for("an e-mail address looks like this");
        screen.write("@example.com").press(Key::Enter);

        // The default is in the middle, and the arrow goes on from there.
        screen.wait_for("? Size");
        screen.press(Key::Down).press(Key::Enter);
        screen.wait_for("> Size Large, for a long night (large)");

        // A number that is too large is refused, and mended.
        screen.wait_for("? Cups (1)");
        screen.write("99").press(Key::Enter);
        screen.wait_for("it must be at most 12");
        screen.press(Key::Backspace).press(Key::Backspace).write("2").press(Key::Enter);

        // Several are marked with the space bar; three would be too many.
        screen.wait_for("? Extras");
        screen
            .press(Key::Space)
            .press(Key::Down)
            .press(Key::Space)
            .press(Key::Down)
            .press(Key::Space)
            .press(Key::Enter);
        screen.wait_for("choose at most 2");
        screen.press(Key::Space).press(Key::Enter);

        screen.wait_for("? To go");
        screen.press(Key::Up).press(Key::Enter);

        screen.wait_for("? Send this answer?");
        screen.press(Key::Enter);
        screen.wait_for("2 × large tea for Ada, milk, sugar, to go; receipt to nobody@example.com");
        screen.wait_for("exit=0");
    }
}

#[test]
fn a_form_can_be_left_and_declined() {
    let screen = Screen::on_demo(&["call", "order"]);
    screen.wait_for("? Name");
    screen.press(Key::Escape);
    screen.wait_for("? Leave the form?");
    screen.press(Key::Down).press(Key::Enter);
    screen.wait_for("no tea today");
    screen.wait_for("exit=0");
}

#[test]
fn ctrl_c_in_a_question_ends_the_call_and_leaves_the_terminal_as_it_was() {
    for era in ERAS {
        let screen = Screen::on_demo(&["call", "order", "--era", era]);
        screen.wait_for("? Name");
        screen.press(Key::CtrlC);
        screen.wait_for("exit=130");
        screen.wait_for("terminal=normal");
    }
}

#[test]
fn a_server_that_dies_during_a_question_leaves_the_terminal_as_it_was() {
    let screen = Screen::on_demo(&["call", "order", "--era", "legacy"]);
    screen.wait_for("? Name");
    screen.kill_server();
    screen.wait_for("exit=4");
    screen.wait_for("terminal=normal");
}

#[test]
fn ctrl_c_in_a_slow_call_cancels_it_on_the_server() {
    for era in ERAS {
        let screen = Screen::on_demo(&["call", "wait", "seconds=600", "-v", "--era", era]);
        screen.wait_for("waiting for 600 s");
        screen.wait_for("s left");
        screen.press(Key::CtrlC);
        screen.wait_for("server: wait: cancelled");
        screen.wait_for("exit=130");
    }
}

#[test]
fn a_page_is_shown_with_its_host_before_anything_is_opened() {
    let screen = Screen::on_demo(&["call", "visit"]);
    screen.wait_for("https://example.com/welcome?from=toolwire-demo");
    screen.wait_for("host: example.com");
    screen.wait_for("? Visit this page?");
    screen.press(Key::Down).press(Key::Enter);
    screen.wait_for("thank you for visiting");
    screen.wait_for("exit=0");
}

#[test]
fn a_person_answers_for_the_model_or_refuses() {
    for era in ERAS {
        let screen = Screen::on_demo(&["call", "ask_model", "'question=Why is tea green?'", "--era", era]);
        screen.wait_for("Answer in one short sentence.");
        screen.wait_for("Why is tea green?");
        screen.wait_for("? Answer for the model?");
        screen.press(Key::Enter);
        screen.wait_for("? assistant");
        screen.write("It is not.").press(Key::Enter);
        screen.wait_for("the model says: It is not.");
        screen.wait_for("exit=0");
    }
    let screen = Screen::on_demo(&["call", "ask_model", "question=x", "--era", "legacy"]);
    screen.wait_for("? Answer for the model?");
    screen.press(Key::Down).press(Key::Enter);
    screen.wait_for("the user refused the sampling request");
    screen.wait_for("exit=5");
}

#[test]
fn arguments_that_are_missing_are_asked_for() {
    let screen = Screen::on_demo(&["call", "add", "a=1"]);
    screen.wait_for("? b");
    screen.write("x").press(Key::Enter);
    screen.wait_for("that is not a number");
    screen.press(Key::Backspace).write("4").press(Key::Enter);
    screen.wait_for("sum  5");

    let screen = Screen::on_demo(&["prompt", "greet"]);
    screen.wait_for("? name");
    screen.write("Grace").press(Key::Enter);
    screen.wait_for("Please greet Grace warmly.");
    screen.wait_for("exit=0");
}

#[test]
fn bytes_are_not_written_to_a_terminal() {
    let screen = Screen::on_demo(&["read", "demo://logo"]);
    screen.wait_for("image/png, 374 B (-o FILE saves it)");
    screen.wait_for("exit=0");
}

#[test]
fn a_file_of_the_project_is_asked_about_once_and_shown_before() {
    let screen = Screen::in_project(&["toolwire tools guest", "toolwire list --timeout 5"]);
    screen.wait_for("~/.mcp.json is a file of this project");
    screen.wait_for("starts touch started '${TOKEN:-none}'");
    screen.wait_for("reads from your environment: TOKEN");
    screen.wait_for("? Do you trust this file?");
    assert!(!screen.has_started());
    screen.press(Key::Down).press(Key::Enter);
    screen.wait_for("exit=4");
    // The second command does not ask any more.
    screen.wait_for("1 server: 1 fails");
    screen.wait_for("terminal=normal");
    assert!(screen.has_started());
}

#[test]
fn a_file_that_is_refused_is_neither_used_nor_asked_about_again() {
    let screen = Screen::in_project(&["toolwire", "toolwire tools guest"]);
    screen.wait_for("? Do you trust this file?");
    screen.press(Key::Up).press(Key::Enter);
    screen.wait_for("1 server: 1 is not trusted");
    screen.wait_for("which you do not trust");
    screen.wait_for("exit=3");
    assert!(!screen.has_started());

    let screen = Screen::in_project(&["toolwire doctor"]);
    screen.wait_for("? Do you trust this file?");
    screen.press(Key::CtrlC);
    screen.wait_for("exit=130");
    screen.wait_for("terminal=normal");
    assert!(!screen.has_started());
}

#[test]
fn without_a_screen_the_way_is_asked_for_and_a_code_for_the_page_of_another_site_needs_a_yes() {
    for (yes, end) in [(false, "exit=3"), (true, "was not confirmed in time")] {
        let screen = Screen::logging_in(&issuer::start());
        screen.wait_for("? How do you want to log in?");
        screen.press(Key::Down).press(Key::Enter);
        screen.wait_for("the page to confirm at is on login.example");
        screen.wait_for("? Go on?");
        screen.write(if yes { "y" } else { "" }).press(Key::Enter);
        screen.wait_for(end);
        screen.wait_for("terminal=normal");
        assert_eq!(screen.shows("code: ABCD"), yes, "the code is shown after the answer alone");
    }
}
