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
    for args in [&["--help"][..], &["demo", "--help"], &["demo", "-h"]] {
        let help = run(toolwire(args));
        assert_eq!((help.status.code(), help.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(help.stdout.lines().all(|line| line.chars().count() <= 100), "{}", help.stdout);
    }
    let help = run(toolwire(&["demo", "-h"])).stdout;
    assert!(help.contains("--once") && help.contains("--stdio"), "{help}");
}
