//! Help, versions and command lines that make no sense.

use crate::program::{run, toolwire};

#[test]
fn nonsense_is_refused_with_2_and_a_usage_line() {
    for args in [&["demo", "--once", "--stdio"][..], &["demo", "--twice"], &["dmeo"]] {
        let ended = run(toolwire(args));
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{args:?}");
        assert!(ended.stderr.contains("Usage: toolwire"), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_typing_mistake_is_answered_with_what_was_meant() {
    let ended = run(toolwire(&["dmeo"]));
    assert!(ended.stderr.contains("'demo'"), "{}", ended.stderr);
}

#[test]
fn help_and_version_are_data() {
    let version = run(toolwire(&["--version"]));
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(version.stdout, concat!("toolwire ", env!("CARGO_PKG_VERSION"), "\n"));
    let help = run(toolwire(&["demo", "-h"])).stdout;
    assert!(help.contains("--once") && help.contains("--stdio"), "{help}");
}

/// Every command, as it is typed.
const COMMANDS: [&str; 29] = [
    "list",
    "tools",
    "resources",
    "templates",
    "prompts",
    "call",
    "read",
    "prompt",
    "complete",
    "watch",
    "probe",
    "doctor",
    "explain",
    "bench",
    "trace",
    "trace show",
    "trace replay",
    "trace serve",
    "serve",
    "store",
    "store status",
    "store migrate",
    "store sweep",
    "new",
    "add",
    "remove",
    "demo",
    "completions",
    "man",
];

#[test]
fn the_help_of_every_command_fits_and_has_an_example() {
    for command in COMMANDS.into_iter().chain([""]) {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = run(toolwire(&args));
        assert_eq!((help.status.code(), help.stderr.as_str()), (Some(0), ""), "{command}");
        let wide: Vec<&str> = help.stdout.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(wide.is_empty(), "{command}: {wide:#?}");
        // The last lines show how it is done.
        let example = help.stdout.rsplit("\n\n").next().unwrap().contains("toolwire ");
        assert!(example, "{command}: {}", help.stdout);
    }
}

#[test]
fn scripts_are_told_what_is_wrong_with_a_command_line_in_one_line() {
    for (args, said) in [
        (&["new", "--json"][..], "the following required arguments were not provided: <NAME>"),
        (&["trace", "--json"], "requires a subcommand"),
        (&["tools", "--json", "--era", "x", "--", "true"], "invalid value 'x' for '--era <ERA>'"),
        (&["demo", "--json"], "has no JSON"),
    ] {
        let ended = run(toolwire(args));
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(2), ""), "{args:?}");
        let error: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn options_that_mean_nothing_to_a_server_are_refused() {
    for args in [
        &["tools", "--header", "A: b", "--", "true"][..],
        &["tools", "--bearer-env", "HOME", "unix:/nowhere"],
        &["tools", "--env", "A=b", "http://127.0.0.1:1/mcp"],
    ] {
        let ended = run(toolwire(args));
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(" hint: "), "{}", ended.stderr);
    }
}

#[test]
fn an_argument_that_is_written_as_an_option_is_answered_with_how_it_is_written() {
    let ended = run(toolwire(&["call", "add", "--a", "2", "--", "x"]));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("has no dashes: a=VALUE"), "{ended:?}");
    assert!(!ended.stderr.contains("-- --a"), "{ended:?}");
    let ended = run(toolwire(&["tools", "--tiemout", "2", "--", "x"]));
    assert!(ended.stderr.contains("'--timeout'"), "{ended:?}");
}

#[test]
fn a_whole_command_line_in_the_place_of_a_program_is_taken_apart() {
    let config = r#"{"mcpServers": {"a": {"command": "npx -y some-server", "args": ["x"]}}}"#;
    let home = crate::home::Home::new().with(".cursor/mcp.json", config);
    for words in [&["tools", "a"][..], &["doctor", "a"]] {
        let ended = home.run(words);
        let told = ended.stdout.clone() + &ended.stderr;
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            told.contains(r#""command": "npx", "args": ["-y","some-server","x"]"#),
            "{words:?}: {ended:?}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_word_is_told_and_not_something_else() {
    let told = |args: &[&str]| {
        let ended = run(toolwire(args));
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {ended:?}");
        ended.stderr
    };
    let time = told(&["tools", "--timeout", "-1", "--", "x"]);
    assert!(time.contains("not a number of seconds above 0"), "{time}");
    let option = told(&["tools", "--foo", "--", "x"]);
    assert!(!option.contains("--root"), "{option}");
    let option = told(&["tools", "--timout", "5", "--", "x"]);
    assert!(option.contains("--timeout"), "{option}");
    let json = told(&["dmeo", "--json"]);
    assert!(json.contains("did you mean demo?"), "{json}");
    let scheme = told(&["tools", "ftp://x"]);
    assert!(scheme.contains("ftp:// is not a kind of address"), "{scheme}");
    let long = told(&["tools", &"x".repeat(120_000)]);
    assert!(long.len() < 1000, "{} bytes", long.len());
}
