//! `tools`, `resources`, `templates` and `prompts`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{
    home::Home,
    person::{in_both_eras, on_demo, told},
};

#[test]
fn tools_read_like_a_header_file() {
    assert_snapshot!(in_both_eras(&["tools"]));
}

#[test]
fn long_lists_say_everything() {
    // Only one version says of a tool whether it may be called as a task.
    let [modern, legacy] = ["modern", "legacy"].map(|era| told(&on_demo(&["tools", "--long", "--era", era])));
    assert_eq!(legacy.replace("  execution {\"taskSupport\":\"optional\"}\n", ""), modern);
    assert_eq!(legacy.matches("taskSupport").count(), 2);
    assert_snapshot!("tools_long", modern);
    assert_snapshot!("resources_long", in_both_eras(&["resources", "--long"]));
    assert_snapshot!("prompts_long", in_both_eras(&["prompts", "-l"]));
}

#[test]
fn resources_templates_and_prompts_are_listed_alike() {
    assert_snapshot!("resources", in_both_eras(&["resources"]));
    assert_snapshot!("templates", in_both_eras(&["templates"]));
    assert_snapshot!("prompts", in_both_eras(&["prompts"]));
}

#[test]
fn a_pattern_finds_names_and_descriptions() {
    assert_snapshot!("one_name", in_both_eras(&["tools", "add"]));
    assert_snapshot!("some_words", in_both_eras(&["tools", "NOTE"]));
    assert_snapshot!("nothing_found", in_both_eras(&["tools", "xyz"]));
    assert_snapshot!("two_patterns", in_both_eras(&["tools", "a", "b"]));
}

#[test]
fn json_is_what_the_server_sent() {
    assert_snapshot!("tools_json", in_both_eras(&["tools", "add", "--json"]));
    assert_snapshot!("resources_json", in_both_eras(&["resources", "--json"]));
    assert_snapshot!("templates_json", in_both_eras(&["templates", "--json"]));
    assert_snapshot!("prompts_json", in_both_eras(&["prompts", "--json"]));
    let all: Value = serde_json::from_str(&on_demo(&["tools", "--json"]).stdout).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 14);
}

#[test]
fn lists_fit_into_80_columns() {
    for list in ["tools", "resources", "templates", "prompts"] {
        let shown = on_demo(&[list]).stdout;
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
}

/// A server that has its tool only for clients that can be asked.
#[cfg(unix)]
const ASKING: &str = r#"
while read -r line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"server/discover"'*) answer '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*)
      case "$line" in *'"elicitation"'*'"sampling"'*) tools='{"name":"ask","inputSchema":{"type":"object"}}' ;; esac
      answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":['"$tools"']}' ;;
  esac
done"#;

#[cfg(unix)]
#[test]
fn every_command_that_lists_tools_declares_what_calls_can_be_asked() {
    let server = json!({ "mcpServers": { "asking": { "command": "sh", "args": ["-c", ASKING] } } });
    let home = Home::new().with(".config/toolwire/servers.json", &server.to_string());
    assert_eq!(home.run(&["tools", "asking"]).stdout, "ask()\n");
    let listed: Value = serde_json::from_str(&home.run(&["list", "--json"]).stdout).unwrap();
    assert_eq!(listed["servers"][0]["tools"], 1, "{listed}");
    let healthy = home.run(&["doctor", "asking"]).stdout;
    assert!(healthy.contains("description-missing"), "{healthy}");
}
