//! `toolwire completions` and `toolwire man`.

use crate::program::{run, toolwire};

#[test]
fn every_shell_gets_its_completions() {
    for (shell, sign) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef toolwire"),
        ("fish", "complete -c toolwire"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let ended = run(toolwire(&["completions", shell]));
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{shell}");
        assert!(
            ended.stdout.contains(sign) && ended.stdout.contains("no-connect"),
            "{shell}: {}",
            ended.stdout
        );
    }
    assert_eq!(run(toolwire(&["completions", "tcsh"])).status.code(), Some(2));
}

#[test]
fn the_program_and_its_commands_have_manual_pages() {
    let page = run(toolwire(&["man"]));
    assert_eq!((page.status.code(), page.stderr.as_str()), (Some(0), ""));
    assert!(
        page.stdout.contains(".TH toolwire 1") && page.stdout.contains("toolwire\\-list(1)"),
        "{}",
        page.stdout
    );
    let page = run(toolwire(&["man", "list"]));
    assert!(
        page.stdout.contains(".TH toolwire-list 1") && page.stdout.contains("no\\-connect"),
        "{}",
        page.stdout
    );
    let wrong = run(toolwire(&["man", "nothing"]));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stderr.contains("no command `nothing`"), "{}", wrong.stderr);
}
