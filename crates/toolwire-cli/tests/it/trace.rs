//! `--trace` and `toolwire trace`: what was said, shown, said again and answered again.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::program::{Ended, finish, run, toolwire};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolwire");

/// A trace that is there to be tested with.
fn recorded(name: &str) -> String {
    format!("{}/tests/it/traces/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))
}

fn trace(args: &[&str]) -> Ended {
    run(toolwire(&[&["trace"], args].concat()))
}

/// Runs to success, and gives what was printed.
fn printed(args: &[&str]) -> String {
    let ended = trace(args);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{args:?}: {}", ended.stdout);
    ended.stdout
}

/// A conversation without the times, which are different each time.
fn timeless(text: &str) -> String {
    let line = |line: &str| {
        let line = match line.split_at_checked(8) {
            Some((time, rest))
                if time.contains('.') && time.trim_start().starts_with(|c: char| c.is_ascii_digit()) =>
            {
                format!("   #.###{rest}")
            }
            _ => line.to_owned(),
        };
        match line.rsplit_once("  ") {
            Some((rest, took)) if took.ends_with(" ms") || took.ends_with(" s") => rest.to_owned(),
            _ => line,
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_legacy_conversation_is_shown_with_its_questions_inside_of_the_call() {
    insta::assert_snapshot!(printed(&["show", &recorded("legacy")]));
}

#[test]
fn a_modern_conversation_is_shown_with_its_rounds_together() {
    insta::assert_snapshot!(printed(&["show", &recorded("modern")]));
}

#[test]
fn whole_messages_are_shown_on_demand() {
    let long = printed(&["show", "--long", &recorded("modern")]);
    insta::assert_snapshot!(long.lines().take(60).collect::<Vec<_>>().join("\n"));
}

#[test]
fn scripts_get_the_conversation_as_one_document() {
    let text = printed(&["show", "--json", &recorded("legacy")]);
    assert_eq!(text.lines().count(), 1);
    let document: Value = serde_json::from_str(&text).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    let modern: Value = serde_json::from_str(&printed(&["show", "--json", &recorded("modern")])).unwrap();
    assert_eq!(modern["conversation"][2]["rounds"].as_array().unwrap().len(), 2);
}

#[test]
fn lines_that_cannot_be_read_are_told_and_the_rest_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read_to_string(recorded("modern")).unwrap();
    let mut lines: Vec<_> = whole.lines().collect();
    lines[2] = "{\"micros\":";
    let file = folder.path().join("torn.jsonl");
    let last = lines.len() - 1;
    lines[last] = &lines[last][..20];
    fs::write(&file, lines.join("\n")).unwrap();
    let path = file.to_str().unwrap();
    let ended = trace(&["show", path]);
    assert_eq!(ended.status.code(), Some(0));
    insta::assert_snapshot!(ended.stderr.replace(path, "FILE"));
    assert!(ended.stdout.contains("tools/call book"), "{}", ended.stdout);
    let json = printed(&["show", "--json", path]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["problems"][0]["line"], 3);
}

#[test]
fn other_files_are_no_traces() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "dear diary\n").unwrap();
    for path in [file.as_path(), folder.path()] {
        let ended = trace(&["show", path.to_str().unwrap()]);
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(
            ended.stderr.contains("is not a trace") && ended.stderr.contains("--trace FILE"),
            "{}",
            ended.stderr
        );
    }
    let ended = trace(&["show", "--json", folder.path().join("nothing").to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(1));
    let error: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(error["error"]["code"], "io");
}

#[test]
fn a_trace_is_replayed_against_itself_without_a_difference() {
    for name in ["modern", "legacy"] {
        let file = recorded(name);
        let text = printed(&["replay", &file, "--", PROGRAM, "trace", "serve", &file]);
        insta::assert_snapshot!(format!("replay_{name}"), text);
    }
}

#[test]
fn what_has_changed_is_shown_and_is_a_failure() {
    let args = [&recorded("modern"), "--", PROGRAM, "trace", "serve", &recorded("dearer")];
    let ended = trace(&[&["replay"][..], &args.map(|arg| arg as &str)].concat());
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!("replay_changed", ended.stdout);
    let ended = trace(&[&["replay", "--json"][..], &args.map(|arg| arg as &str)].concat());
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(1), ""));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    insta::assert_snapshot!("replay_changed_json", serde_json::to_string_pretty(&document).unwrap());
    // Unless nobody cares.
    printed(&[&["replay", "--ignore", "text"][..], &args.map(|arg| arg as &str)].concat());
}

/// Replays the trace of the demonstration server against it, and records that.
fn record(file: &Path, more: &[&str]) -> Ended {
    let (seed, file) = (recorded("demo"), file.to_str().unwrap());
    let args = ["replay", &seed, "--trace", file, "--", PROGRAM, "serve", "--stdio"];
    trace(&[&args[..4], more, &args[4..]].concat())
}

#[test]
fn any_command_can_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.jsonl");
    for _ in 0..2 {
        let ended = record(&file, &["--era", "modern"]);
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.lines().filter(|line| line.contains("toolwireTrace")).count(),
            1,
            "a new one each time"
        );
        assert!(text.contains(r#""token":"[redacted]""#), "{text}");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&file).unwrap()) & 0o777, 0o600);
    }
    let shown = timeless(&printed(&["show", file.to_str().unwrap()]));
    let shown = shown.replace(PROGRAM, "toolwire").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let (head, rest) = shown.split_once("recorded ").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    insta::assert_snapshot!("recorded_modern", format!("{head}recorded\n{rest}"));
}

#[test]
fn a_trace_that_cannot_be_written_is_told_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let diary = folder.path().join("diary.txt");
    fs::write(&diary, "dear diary\n").unwrap();
    let ended = record(&diary, &[]);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("is there already and is not a trace"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&diary).unwrap(), "dear diary\n");

    let mut places = vec![folder.path().join("nowhere/talk.jsonl"), folder.path().to_owned()];
    if cfg!(target_os = "linux") {
        places.push(PathBuf::from("/dev/full"));
    }
    for place in places {
        let ended = record(&place, &[]);
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), ""), "{place:?}: {ended:?}");
        assert!(ended.stderr.contains("cannot be written"), "{}", ended.stderr);
    }
}

#[test]
fn a_trace_answers_over_standard_input_and_output() {
    let call = |id: u32, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {"booking": "4711"}}});
    let messages =
        [call(1, "cancel"), json!({"jsonrpc": "2.0", "method": "x"}), call(2, "cansel"), json!([])];
    let mut child = toolwire(&["trace", "serve", &recorded("modern")]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    let mut answers: Vec<_> = ended.stdout.lines().collect();
    answers.sort_unstable();
    insta::assert_snapshot!(answers.join("\n"));
}
