//! Calls that go on as tasks: followed, left, found again, answered and ended.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    home::Home,
    program::{Ended, finish, many_fields, wait_until},
    serve::listening,
};

/// A server with tasks in both eras, which writes down what it is asked. `slow` never ends, `ask` has a question, `wide`
/// one with more fields than can be checked, which are in a file, and `gone` is forgotten at once.
const SERVER: &str = r#"
case "$2" in
  modern) ttl=ttlMs poll=pollIntervalMs ;;
  *) ttl=ttl poll=pollInterval ;;
esac
while read -r line; do
  echo "$line" >> "$1"
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\),"method.*/\1/')
  task=$(echo "$line" | sed 's/.*"taskId":"\([a-z]*\)".*/\1/')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  state() {
    printf '"resultType":"%s","taskId":"%s","status":"%s","statusMessage":"half way","createdAt":"2026-11-16T20:00:00Z","lastUpdatedAt":"2026-11-16T20:00:00Z","%s":60000,"%s":10' "$1" "$2" "$3" "$ttl" "$poll"
  }
  done='{"content":[{"type":"text","text":"the report"}]}'
  name=$(echo "$line" | sed 's/.*"params":{"name":"\([a-z]*\)".*/\1/')
  case "$line" in
    *'"server/discover"'*)
      case "$2" in
        modern) answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}' ;;
        *) answer '"error":{"code":-32601,"message":"what?"}' ;;
      esac ;;
    *'"initialize"'*)
      answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *'"tools/list"'*)
      tool() { printf '{"name":"%s","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}' "$1"; }
      answer '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":['"$(tool report),$(tool slow),$(tool ask),$(tool wide),$(tool gone)"']}' ;;
    *'"tools/call"'*)
      case "$2" in
        modern) answer '"result":{'"$(state task "$name" working)"'}' ;;
        *) answer '"result":{"task":{'"$(state task "$name" working)"'}}' ;;
      esac ;;
    *'"subscriptions/listen"'*) answer '"error":{"code":-32601,"message":"what?"}' ;;
    *'"tasks/list"'*) answer '"result":{"tasks":[{'"$(state complete slow working)"'}]}' ;;
    *'"tasks/cancel"'*) answer '"result":{'"$(state complete "$task" cancelled)"'}' ;;
    *'"tasks/update"'*) answer '"result":{"resultType":"complete"}' ;;
    *'"tasks/result"'*)
      case "$task" in
        report) answer '"result":'"$done" ;;
        ask) printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"How deep?","requestedSchema":{"type":"object","properties":{"levels":{"type":"integer"}},"required":["levels"]},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"ask"}}}}\n' ;;
        gone) answer '"error":{"code":-32602,"message":"no such task"}' ;;
      esac ;;
    *'"tasks/get"'*)
      case "$task" in
        report) answer '"result":{'"$(state complete report completed)"',"result":'"$done"'}' ;;
        gone) answer '"error":{"code":-32602,"message":"no such task"}' ;;
        ask)
          schema='{"type":"object","properties":{"levels":{"type":"integer","minimum":1}},"required":["levels"]}'
          answer '"result":{'"$(state complete ask input_required)"',"inputRequests":{"depth":{"method":"elicitation/create","params":{"message":"How deep?","requestedSchema":'"$schema"'}}}}' ;;
        wide)
          fields=$(cat "$3")
          answer '"result":{'"$(state complete wide input_required)"',"inputRequests":{"depth":{"method":"elicitation/create","params":{"message":"How wide?","requestedSchema":{"type":"object","properties":{'"$fields"'}}}}}}' ;;
        *) answer '"result":{'"$(state complete "$task" working)"'}' ;;
      esac ;;
  esac
done"#;

const ERAS: [&str; 2] = ["modern", "legacy"];

/// A home in which the server is configured as `reports`.
fn home(era: &str) -> Home {
    let home = Home::new();
    let [log, fields] = ["log", "fields"].map(|name| home.path(name).display().to_string());
    let server = json!({ "command": "sh", "args": ["-c", SERVER, "sh", log, era, fields] });
    home.with("fields", &many_fields())
        .with(".config/toolwire/servers.json", &json!({ "mcpServers": { "reports": server } }).to_string())
}

/// How often the server was asked for this.
fn asked(home: &Home, method: &str) -> usize {
    home.read("log").lines().filter(|line| line.contains(&format!("\"{method}\""))).count()
}

fn json_of(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn a_call_that_goes_on_as_a_task_gives_its_result() {
    for era in ERAS {
        let home = home(era);
        let ended = home.run(&["call", "reports", "report"]);
        assert_eq!(
            (ended.stdout.as_str(), ended.status.code()),
            ("the report\n", Some(0)),
            "{era}: {ended:?}"
        );
        assert_eq!(json_of(&home.run(&["tasks", "--json"])), json!({ "tasks": [] }), "{era}: it is over");
    }
}

#[test]
fn a_task_that_is_left_to_itself_is_found_again() {
    for era in ERAS {
        let home = home(era);
        let ended = home.run(&["call", "reports", "report", "--detach"]);
        let ticket = json_of(&ended);
        assert_eq!((&ticket["id"], &ticket["tool"]), (&json!("report"), &json!("report")), "{era}");
        assert!(ended.stderr.contains("toolwire tasks wait report"), "{ended:?}");
        let listed = json_of(&home.run(&["tasks", "--json"]));
        assert_eq!(listed["tasks"][0]["server"], "reports", "{listed}");
        let shown = home.run(&["tasks"]).stdout;
        assert!(shown.starts_with("ID") && shown.contains("report  reports  report"), "{shown}");
        let shown = home.run(&["tasks", "show", "rep"]);
        assert!(shown.stdout.contains("completed") && shown.stdout.contains("half way"), "{era}: {shown:?}");
        // The beginning of its id is enough.
        let waited = home.run(&["tasks", "wait", "rep"]);
        assert_eq!(
            (waited.stdout.as_str(), waited.status.code()),
            ("the report\n", Some(0)),
            "{era}: {waited:?}"
        );
        assert_eq!(json_of(&home.run(&["tasks", "--json"])), json!({ "tasks": [] }));
        // A task that is over is not known any more, but a server that is named may know its ticket.
        let waited = home.run(&["tasks", "wait", &ticket.to_string(), "reports"]);
        assert_eq!(waited.stdout, "the report\n", "{waited:?}");
        for id in ["report".to_owned(), ticket.to_string()] {
            let unknown = home.run(&["tasks", "wait", &id]);
            assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
            assert!(unknown.stderr.contains("no unfinished task `report` is known here"), "{unknown:?}");
        }
    }
}

#[test]
fn a_server_lists_its_tasks_or_those_that_were_begun_here_are_looked_at() {
    for era in ERAS {
        let home = home(era);
        home.run(&["call", "reports", "slow", "--detach"]);
        let listed = json_of(&home.run(&["tasks", "reports", "--json"]));
        let task = &listed["tasks"][0];
        assert_eq!(
            (&task["taskId"], &task["status"], &task["tool"]),
            (&json!("slow"), &json!("working"), &json!("slow"))
        );
        assert!(home.run(&["tasks", "reports"]).stdout.contains("half way"));
        assert_eq!(asked(&home, "tasks/list"), if era == "legacy" { 2 } else { 0 });
    }
}

#[cfg(unix)]
#[test]
fn who_leaves_a_task_does_not_end_it_and_is_told_how_to_go_on() {
    for era in ERAS {
        let home = home(era);
        let child = home.toolwire(&["call", "reports", "slow"]).spawn().unwrap();
        let waits = if era == "legacy" { "tasks/result" } else { "tasks/get" };
        wait_until("the task is begun", || home.path("log").exists() && asked(&home, waits) > 0);
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let ended = finish(child);
        assert_eq!(ended.status.code(), Some(130), "{ended:?}");
        assert!(ended.stderr.contains("toolwire tasks wait slow"), "{ended:?}");
        assert!(ended.stderr.contains("toolwire tasks cancel slow"), "{ended:?}");
        assert_eq!(asked(&home, "tasks/cancel"), 0);
        let cancelled = home.run(&["tasks", "cancel", "slow"]);
        assert_eq!(cancelled.stdout, "the server was asked to end slow\n", "{cancelled:?}");
        assert_eq!(asked(&home, "tasks/cancel"), 1);
        assert_eq!(json_of(&home.run(&["tasks", "--json"])), json!({ "tasks": [] }));
    }
}

#[test]
fn questions_of_a_task_are_answered_by_their_keys() {
    let home = home("modern");
    home.run(&["call", "reports", "ask", "--detach"]);
    let shown = home.run(&["tasks", "show", "ask"]).stdout;
    assert!(shown.contains("waits for answers") && shown.contains("depth: How deep?"), "{shown}");
    let json = json_of(&home.run(&["tasks", "show", "ask", "--json"]));
    assert_eq!(json["questions"]["depth"]["method"], "elicitation/create");
    for (words, code) in [
        (&["levels=0"][..], "invalid-arguments"),
        (&["levels=x"], "invalid-arguments"),
        (&[], "invalid-arguments"),
    ] {
        let refused = home.run(&[&["tasks", "answer", "ask", "depth"], words].concat());
        assert!(refused.stderr.contains(code), "{refused:?}");
    }
    let refused = home.run(&["tasks", "answer", "ask", "height", "levels=2"]);
    assert!(refused.stderr.contains("it asks `depth`"), "{refused:?}");
    assert_eq!(asked(&home, "tasks/update"), 0);
    assert_eq!(home.run(&["tasks", "answer", "ask", "depth", "levels=2"]).stdout, "answered `depth`\n");
    assert!(
        home.read("log").contains(r#""inputResponses":{"depth":{"action":"accept","content":{"levels":2}}}"#)
    );
    assert_eq!(home.run(&["tasks", "answer", "ask", "depth", "--decline"]).status.code(), Some(0));
    assert!(home.read("log").contains(r#""inputResponses":{"depth":{"action":"decline"}}"#));
}

#[test]
fn a_ticket_is_enough_for_a_task_that_was_begun_here() {
    for era in ERAS {
        let home = home(era);
        let ticket = home.run(&["call", "reports", "slow", "--detach"]).stdout;
        let cancelled = home.run(&["tasks", "cancel", ticket.trim()]);
        assert_eq!(cancelled.stdout, "the server was asked to end slow\n", "{era}: {cancelled:?}");
    }
}

#[test]
fn a_question_of_a_task_that_nobody_can_answer_leaves_it_waiting() {
    for era in ERAS {
        let home = home(era);
        home.run(&["call", "reports", "ask", "--detach"]);
        for (words, go_on) in [
            (&["ask"][..], "toolwire tasks wait ask --answer levels=…"),
            (
                &["ask", "--json"],
                "toolwire tasks wait ask --answer levels=…; end it: toolwire tasks cancel ask",
            ),
            (&["ask", "--yes"], "toolwire tasks wait ask --answer levels=…"),
            (&["ask", "reports"], "toolwire tasks wait ask reports --answer levels=…"),
        ] {
            let left = home.run(&[&["tasks", "wait"], words].concat());
            assert_eq!(left.status.code(), Some(7), "{era}: {left:?}");
            assert!(left.stderr.contains("input-required"), "{era}: {left:?}");
            assert!(left.stderr.contains(go_on), "{era}: {left:?}");
            assert!(left.stderr.contains("goes on if the server keeps tasks in a store"), "{era}: {left:?}");
        }
        assert!(!home.read("log").contains(r#""action""#), "{era}: it was answered");
        assert_eq!((asked(&home, "tasks/update"), asked(&home, "tasks/cancel")), (0, 0), "{era}");
        assert_eq!(json_of(&home.run(&["tasks", "--json"]))["tasks"][0]["taskId"], "ask", "{era}");
    }
}

#[test]
fn a_call_leaves_a_task_only_at_a_server_that_outlives_it() {
    let demo = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
    let (mut child, url) = listening();
    let ended = ERAS.map(|era| {
        let home = Home::new();
        let words = ["deploy", "version=1.2", "--era", era];
        let started = home.run(&[&["call"], &words[..], &demo].concat());
        let remote = home.run(&[&["call", &url], &words[..]].concat());
        (era, started, remote, home.run(&["tasks"]))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    for (era, started, remote, listed) in ended {
        assert_eq!(started.stdout, "1.2 is built and waits\n", "{era}: {started:?}");
        assert!(started.stderr.contains("it is declined"), "{era}: {started:?}");
        assert_eq!((started.status.code(), remote.status.code()), (Some(0), Some(7)), "{era}: {remote:?}");
        assert!(remote.stderr.contains("it is left waiting\n"), "{era}: {remote:?}");
        assert_eq!(listed.stdout.matches("deploy").count(), 1, "{era}: {listed:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_checked_is_sent_and_told_of() {
    let home = home("modern");
    home.run(&["call", "reports", "wide", "--detach"]);
    let answered = home.run(&["tasks", "answer", "wide", "depth", "f1=x"]);
    assert_eq!(answered.stdout, "answered `depth`\n", "{answered:?}");
    assert!(answered.stderr.contains("warning: the answer: not checked: "), "{answered:?}");
}

#[test]
fn a_task_that_the_server_has_forgotten_is_forgotten_here() {
    for era in ERAS {
        let home = home(era);
        let gone = home.run(&["call", "reports", "gone"]);
        assert_eq!(gone.status.code(), Some(1), "{gone:?}");
        assert!(gone.stderr.contains("error[task-expired]"), "{gone:?}");
        assert_eq!(json_of(&home.run(&["tasks", "--json"])), json!({ "tasks": [] }));
    }
}

#[test]
fn the_demonstration_server_has_tasks_in_both_eras() {
    for era in ERAS {
        let home = Home::new();
        let demo = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
        let report = home.run(&[&["call", "report", "year=2026", "--era", era], &demo[..]].concat());
        assert_eq!(report.stdout, "the report of 2026: a good year\n", "{report:?}");
        let words = ["call", "deploy", "version=1.2", "--answer", "live=true", "--era", era];
        let deployed = home.run(&[&words[..], &demo].concat());
        assert_eq!(deployed.stdout, "1.2 is live\n", "{era}: {deployed:?}");
    }
}
