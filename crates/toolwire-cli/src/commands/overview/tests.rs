//! How the overview puts together and shows what was found.

use std::path::PathBuf;

use toolwire::{Era, Version};

use super::{
    row::{Row, rows},
    show,
    visit::{Outcome, Reached, Visited},
};
use crate::{
    config::{Configured, Host, Places, Scope},
    failure::{Code, Failure},
    target::{Address, Command},
};

fn configured(host: Host, name: &str, program: &str) -> Configured {
    let command = Command { program: program.to_owned(), ..Command::default() };
    Configured {
        name: name.to_owned(),
        host,
        file: PathBuf::from(format!("/{host}.json")),
        scope: if host == Host::Project { Scope::Project } else { Scope::User },
        address: Ok(Address::Command(command)),
        disabled: false,
        pending: None,
        uses_folder: false,
    }
}

fn reached(tools: usize, tokens: usize) -> Outcome {
    let version = Version::V2026_07_28;
    Outcome::Works(Reached { era: Era::Modern, version, server: None, tools, tokens })
}

fn visited(row: Row, outcome: Outcome) -> Visited {
    Visited { row, outcome }
}

fn plain(visited: &[Visited]) -> String {
    anstream::adapter::strip_str(&show::page(visited, &Places::here())).to_string()
}

#[test]
fn the_same_server_in_several_hosts_is_one_row() {
    let disabled = Configured { disabled: true, ..configured(Host::Codex, "db", "x") };
    let rows = rows(
        vec![
            configured(Host::Cursor, "db", "x"),
            configured(Host::Zed, "db", "y"),
            disabled,
            configured(Host::Gemini, "other", "x"),
        ],
        true,
    );
    let seen: Vec<_> = rows.iter().map(|row| (row.word.as_str(), row.origins.len(), row.disabled)).collect();
    assert_eq!(seen, [("db", 2, false), ("zed:db", 1, false), ("other", 1, false)]);
    let some = super::row::rows(vec![configured(Host::Zed, "db", "y")], false);
    assert_eq!(some[0].word, "zed:db", "another host may have one that goes before it");
}

#[test]
fn a_server_can_write_nothing_but_text_into_the_table() {
    let mut rows = rows(
        vec![
            configured(Host::Project, "evil\u{1b}[2J\nname\tx", "x"),
            configured(Host::Project, &"long".repeat(50), "x"),
        ],
        true,
    );
    let long = rows.pop().unwrap();
    let failure = Failure::new(Code::Unreachable, format!("no\u{1b}]0;x\u{7}\n{}\n", "word ".repeat(300)));
    let page =
        plain(&[visited(rows.pop().unwrap(), Outcome::Failed(failure)), visited(long, reached(1, 18_150))]);
    assert!(!page.contains('\u{1b}') && !page.contains('\u{7}'), "{page}");
    assert!(page.lines().all(|line| crate::terminal::width(line) <= 88), "{page}");
    assert!(page.contains("18.2k") && page.contains('…'), "{page}");
    assert!(page.lines().count() < 20, "{page}");
}

#[test]
fn the_sum_counts_in_words() {
    let row = || rows(vec![configured(Host::Cursor, "a", "x")], true).pop().unwrap();
    let last = |visited: &[Visited]| plain(visited).lines().last().unwrap().to_owned();
    assert_eq!(last(&[visited(row(), Outcome::NotTried)]), "1 server");
    assert_eq!(last(&[visited(row(), reached(3, 412))]), "1 server: 1 works · 3 tools, about 412 tokens");
    let auth = Outcome::Failed(Failure::new(Code::AuthNeeded, "401"));
    let all = [
        visited(row(), reached(3, 999_951)),
        visited(row(), reached(0, 0)),
        visited(row(), auth),
        visited(row(), Outcome::Off),
    ];
    assert_eq!(last(&all), "4 servers: 2 work, 1 needs auth, 1 is off · 3 tools, about 1.0M tokens");
}
