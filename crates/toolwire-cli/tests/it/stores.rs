//! `toolwire store` and `toolwire serve --store`: stores by their URLs.

use std::{net::TcpListener, process::Child};

use serde_json::Value;

use crate::{
    home::Home,
    program::{Ended, finish, lines, wait_until},
};

/// A URL at which nothing listens.
fn silent(scheme: &str, path: &str) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("{scheme}://me:S3cret-Word@127.0.0.1:{port}/{path}")
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
}

/// Replaces the times in what the program printed.
fn without_times(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut kept: Vec<&str> = Vec::new();
        for word in line.split(' ') {
            let is_number = kept.last().is_some_and(|last| last.parse::<f64>().is_ok());
            if is_number && matches!(word, "µs" | "ms" | "s") {
                kept.pop();
                kept.push("[time]");
            } else {
                kept.push(word);
            }
        }
        lines.push(kept.join(" ") + "\n");
    }
    lines.concat()
}

#[test]
fn a_file_is_made_looked_at_and_swept() {
    let home = Home::new();
    let printed = |args: &[&str]| {
        let ended = home.run(args);
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
        without_times(&ended.stdout)
    };
    let url = "sqlite:tasks.db?migrate=off";
    let told = [
        printed(&["store", "migrate", url]),
        printed(&["store", "migrate", url]),
        printed(&["store", "status", url]),
        printed(&["store", "sweep", url]),
        printed(&["store", "status", "memory:"]),
    ];
    insta::assert_snapshot!("stores", told.join("---\n"));
}

#[test]
fn scripts_get_what_there_is_to_know_of_a_store() {
    let home = Home::new();
    let migrated = json(&home.run(&["store", "migrate", "sqlite:tasks.db", "--json"]));
    assert_eq!(migrated, serde_json::json!({ "url": "sqlite:tasks.db", "migrated": true }));
    let migrated = json(&home.run(&["store", "migrate", "sqlite:tasks.db", "--json"]));
    assert_eq!(migrated["migrated"], false);
    let status = json(&home.run(&["store", "status", "sqlite:tasks.db", "--json"]));
    for member in ["durable", "shared", "schemaUpToDate"] {
        assert_eq!(status[member], true, "{status}");
    }
    assert!(status["openMicroseconds"].as_u64() > Some(0), "{status}");
    let answers = &status["answers"];
    assert_eq!(answers["count"], 10, "{status}");
    assert!(answers["minMicroseconds"].as_u64() <= answers["maxMicroseconds"].as_u64(), "{status}");
    let swept = json(&home.run(&["store", "sweep", "sqlite:tasks.db", "--json"]));
    assert_eq!(swept, serde_json::json!({ "url": "sqlite:tasks.db", "removed": 0 }));
}

#[test]
fn a_file_that_is_not_there_is_not_made_by_looking_at_it() {
    let home = Home::new();
    for command in ["status", "sweep"] {
        let ended = home.run(&["store", command, "sqlite:taks.db"]);
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.stderr.contains("there is no file taks.db"), "{ended:?}");
        assert!(ended.stderr.contains("toolwire store migrate sqlite:taks.db"), "{ended:?}");
        assert!(!home.path("project/taks.db").exists());
    }
}

/// Errors of stores name this command, so it has to do what they promise.
#[test]
fn an_old_schema_names_the_command_that_mends_it() {
    let home = Home::new().with("project/tasks.db", "");
    let url = "sqlite:tasks.db?migrate=off";
    for args in [&["store", "status", url][..], &["serve", "--http", "127.0.0.1:0", "--store", url]] {
        let refused = home.run(args);
        assert_ne!(refused.status.code(), Some(0), "{refused:?}");
        assert!(refused.stderr.contains("toolwire store migrate"), "{refused:?}");
    }
    assert_eq!(home.run(&["store", "migrate", url]).status.code(), Some(0));
    assert_eq!(home.run(&["store", "status", url]).status.code(), Some(0));
}

#[test]
fn a_store_that_cannot_be_reached_is_named_without_its_password() {
    let home = Home::new();
    for url in
        [silent("redis", "0"), silent("postgres", "reports?sslmode=disable"), silent("postgresql", "reports")]
    {
        let serve = ["serve", "--http", "127.0.0.1:0", "--store", &url];
        for args in
            [&["store", "status", &url][..], &["store", "migrate", &url], &["store", "sweep", &url], &serve]
        {
            for json in [&[][..], &["--json"]] {
                let ended = home.run(&[args, json].concat());
                assert_eq!(
                    (ended.status.code(), ended.stdout.as_str()),
                    (Some(4), ""),
                    "{args:?}: {ended:?}"
                );
                let scheme = url.split(':').next().unwrap();
                assert!(ended.stderr.contains("store-unreachable"), "{ended:?}");
                assert!(ended.stderr.contains(&format!("{scheme}://127.0.0.1:")), "{ended:?}");
                assert!(!ended.stderr.contains("S3cret") && !ended.stderr.contains("me:"), "{ended:?}");
            }
        }
    }
}

#[test]
fn a_url_that_is_none_of_a_store_is_refused_as_typed_wrongly() {
    let home = Home::new();
    for (url, said) in [
        ("mysql://me:secret@host/x", "unknown store scheme `mysql`; supported: memory:, sqlite:, redis:"),
        ("tasks.db", "missing store scheme; supported: memory:, sqlite:"),
        ("sqlite:", "names no file"),
        ("sqlite:a.db?sync=never", "sync=never"),
    ] {
        for args in [&["store", "status", url][..], &["store", "migrate", url], &["serve", "--store", url]] {
            let ended = home.run(args);
            assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
            assert!(ended.stderr.contains(said) && !ended.stderr.contains("secret"), "{ended:?}");
        }
    }
}

/// Starts the demonstration server with a store, and returns it with its URL.
fn serving(home: &Home, store: &str) -> (Child, String) {
    let args = ["serve", "--json", "--http", "127.0.0.1:0", "--store", store];
    let mut child = home.toolwire(&args).spawn().unwrap();
    let line = lines(child.stdout.take().unwrap()).next().unwrap();
    let place: Value = serde_json::from_str(&line).unwrap();
    (child, place["url"].as_str().unwrap().to_owned())
}

#[cfg(unix)]
fn end(child: Child) {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let ended = finish(child);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn people_are_told_where_tasks_are_kept_and_for_how_long() {
    let home = Home::new();
    for (store, said) in [
        ("sqlite:tasks.db", "Tasks are kept in sqlite:tasks.db; they outlive the server"),
        ("memory:", "Tasks are kept in memory:; they end with the server"),
    ] {
        let mut child = home.toolwire(&["serve", "--http", "127.0.0.1:0", "--store", store]).spawn().unwrap();
        let mut told = lines(child.stderr.take().unwrap());
        assert_eq!(told.next().as_deref(), Some(said));
        assert!(told.next().unwrap().starts_with("Serving at http://127.0.0.1:"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_task_outlives_the_server_that_has_a_store() {
    let home = Home::new();
    let (first, url) = serving(&home, "sqlite:tasks.db");
    let begun = home.run(&["call", &url, "deploy", "version=1.2", "--detach", "--json"]);
    assert_eq!(begun.status.code(), Some(0), "{begun:?}");
    let id = json(&begun)["task"]["taskId"].as_str().unwrap().to_owned();
    wait_until("the task asks its question", || {
        home.run(&["tasks", "show", &id, &url, "--json"]).stdout.contains("input_required")
    });
    end(first);
    let (second, url) = serving(&home, "sqlite:tasks.db");
    let answered = home.run(&["tasks", "answer", &id, "live", "live=true", "--server", &url]);
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    let ended = home.run(&["tasks", "wait", &id, &url]);
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), "1.2 is live\n"), "{ended:?}");
    end(second);
}
