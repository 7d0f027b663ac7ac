//! `toolwire explain`: the offline pages.

use serde_json::Value;

use crate::program::{run, toolwire};

#[test]
fn a_page_reads_well() {
    let page = run(toolwire(&["explain", "auth-needed"]));
    assert_eq!((page.status.code(), page.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("explain_auth_needed", page.stdout);
    assert!(page.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn codes_of_servers_are_found_although_they_begin_like_an_option() {
    for code in ["-32601", "32601"] {
        let page = run(toolwire(&["explain", code]));
        assert!(page.stdout.starts_with("-32601: method not found\n"), "{page:?}");
    }
    assert!(run(toolwire(&["explain", "401"])).stdout.starts_with("http-401"));
}

#[test]
fn the_index_has_every_code() {
    let index = run(toolwire(&["explain"]));
    insta::assert_snapshot!("explain_index", index.stdout);
    assert!(index.stdout.lines().all(|line| line.chars().count() <= 80));
    let json = run(toolwire(&["explain", "--json"])).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    for page in json["pages"].as_array().unwrap() {
        assert!(index.stdout.contains(page["code"].as_str().unwrap()), "{page}");
    }
}

#[test]
fn a_page_is_data_for_scripts() {
    let page = run(toolwire(&["explain", "exit-4", "--json"])).stdout;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["code"], "exit-4");
    assert_eq!(page["title"], "the server could not be reached");
    assert!(page["markdown"].as_str().unwrap().starts_with("# exit-4: "));
}

#[test]
fn a_typing_mistake_is_answered_with_what_was_meant() {
    let ended = run(toolwire(&["explain", "auth-neded"]));
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("did you mean auth-needed"), "{}", ended.stderr);
    let ended = run(toolwire(&["explain", "zzz", "--json"]));
    let error: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(error["error"]["code"], "unknown-name");
}
