use toml::{Table, Value};

use super::{COMMANDS, check, document_faults};
use crate::steps::Selection;
use crate::workspace::root;

#[test]
fn the_documents_of_this_project_are_checked() {
    assert_eq!(check(&root()), Ok(vec![]));
}

#[test]
fn every_command_names_a_step_that_exists() {
    for (command, step) in COMMANDS {
        let steps = Selection::Only(vec![(*step).to_owned()]).steps();
        assert!(steps.is_ok(), "`{command}` points to `{step}`");
    }
}

#[test]
fn cargo_run_runs_the_program() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap().parse::<Table>().unwrap();
    let members = &read("Cargo.toml")["workspace"]["default-members"];
    assert_eq!(members, &Value::from(vec!["crates/toolwire-cli"]));
    let package = &read("crates/toolwire-cli/Cargo.toml")["package"];
    assert_eq!(package["default-run"].as_str(), Some("toolwire"));
}

#[test]
fn rust_must_be_compiled() {
    let text = "```rust\nfn main() {}\n```\n\n```rust,no_run\nloop {}\n```\n";
    assert_eq!(document_faults(text, true), Vec::<String>::new());
    let reason = "no crate includes this document, so its Rust is not compiled";
    assert_eq!(document_faults(text, false), [format!(":1: {reason}"), format!(":5: {reason}")]);
    let skipped = "text\n```rust,ignore\nnonsense\n```\n```rust, no_test\n```";
    let expected =
        [":2: a Rust block must not be marked `ignore`", ":5: a Rust block must not be marked `no_test`"];
    assert_eq!(document_faults(skipped, true), expected);
}

#[test]
fn commands_must_be_known() {
    let good = "```sh\n# first\ncargo run -- demo   # the tour\n\ncargo xtask test --only lint\n```\n\
                ```console\n$ cargo run -- demo --once\nany output\n```\n";
    assert_eq!(document_faults(good, false), Vec::<String>::new());
    let bad = "```sh\ncargo run -- demo --twice\n```\n```console\n$ make\n```\n\
               ```sh\ncargo xtask tset\ncargo xtask test --only nothing\n```\n";
    let faults = document_faults(bad, false);
    assert_eq!(faults.len(), 4, "{faults:?}");
    assert!(faults[0].starts_with(":1: no step runs `cargo run -- demo --twice`"), "{faults:?}");
    assert!(faults[1].starts_with(":4: no step runs `make`"), "{faults:?}");
    assert!(faults[2].contains("unknown command `tset`"), "{faults:?}");
    assert!(faults[3].contains("no step `nothing`"), "{faults:?}");
}

#[test]
fn every_block_has_a_known_language() {
    let text = "```text\na picture\n```\n````toml\n```\n````\n";
    assert_eq!(document_faults(text, false), Vec::<String>::new());
    let faults = document_faults("```\nwhat?\n```\n```cobol\n```\n", false);
    let expected = [
        ":1: a block needs a language; plain text is `text`",
        ":4: no rule says how a block of `cobol` is checked",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn inline_code_is_no_block() {
    assert_eq!(
        document_faults("Use ```code``` in a sentence, or `cargo whatever`.\n```x```\n", false),
        Vec::<String>::new()
    );
}
