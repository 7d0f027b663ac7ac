//! `call`: arguments, results, questions and mistakes.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::{
    person::{in_both_eras, in_folder, on_demo, on_demo_with, told},
    program::{WAITS, many_fields, run, toolwire},
};

#[test]
fn a_result_is_data_for_people_and_for_programs() {
    assert_snapshot!("add", in_both_eras(&["call", "add", "a=2", "b=3"]));
    assert_snapshot!("planets", in_both_eras(&["call", "planets", "limit=3", "moons=1"]));
    assert_snapshot!("echo", in_both_eras(&["call", "echo", "text=hello\nworld"]));
    assert_snapshot!("gallery", in_both_eras(&["call", "gallery"]));
    assert_snapshot!(
        "add_json_legacy",
        told(&on_demo(&["call", "add", "a=2", "b=3", "--json", "--era", "legacy"]))
    );
    let modern = on_demo(&["call", "add", "a=2", "b=3", "--json", "--era", "modern"]).stdout;
    let result: Value = serde_json::from_str(&modern).unwrap();
    assert_eq!(result["structuredContent"], json!({ "sum": 5 }));
}

#[test]
fn a_tool_that_fails_ends_with_5() {
    assert_snapshot!("fail", in_both_eras(&["call", "fail"]));
    let failed = on_demo(&["call", "fail", "--json"]);
    assert_eq!(failed.status.code(), Some(5));
    assert_eq!(serde_json::from_str::<Value>(&failed.stdout).unwrap()["isError"], true);
    assert_eq!(serde_json::from_str::<Value>(&failed.stderr).unwrap()["error"]["code"], "tool-error");
}

#[test]
fn arguments_are_checked_before_they_are_sent() {
    assert_snapshot!("wrong_type", in_both_eras(&["call", "add", "a=two", "b=3"]));
    assert_snapshot!("out_of_range", in_both_eras(&["call", "count", "to=101"]));
    assert_snapshot!("missing", in_both_eras(&["call", "add", "a=1"]));
    assert_snapshot!("missing_json", in_both_eras(&["call", "add", "a=1", "--json"]));
    assert_snapshot!("wrong_type_json", in_both_eras(&["call", "add", "a=two", "b=3", "--json"]));
    assert_snapshot!("sent_anyway", in_both_eras(&["call", "add", "a=two", "b=3", "--no-check"]));
    assert_snapshot!("no_argument", in_both_eras(&["call", "add", "a"]));
    for words in [&["call", "echo", "txt=a"][..], &["call", "echo", "txt=a", "--json"]] {
        let misspelt = on_demo(words);
        assert_eq!(misspelt.status.code(), Some(6), "{misspelt:?}");
        let said = "`echo` has no argument `txt`; did you mean `text`?";
        assert!(misspelt.stderr.contains(said), "{misspelt:?}");
    }
}

#[test]
fn arguments_come_from_words_json_files_and_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arguments.json");
    std::fs::write(&file, r#"{"a":2,"b":3}"#).unwrap();
    let from_file = format!("@{}", file.display());
    let sum = "sum  5\n";
    assert_eq!(on_demo(&["call", "add", "--args", r#"{"a":2,"b":3}"#]).stdout, sum);
    assert_eq!(on_demo(&["call", "add", "--args", &from_file]).stdout, sum);
    assert_eq!(on_demo_with(&["call", "add", "--args", "-"], r#"{"a":2,"b":3}"#).stdout, sum);
    assert_eq!(on_demo(&["call", "add", "--args", r#"{"a":2}"#, "b:=3"]).stdout, sum);
    assert_eq!(on_demo_with(&["call", "echo", "text=-"], "from a pipe").stdout, "from a pipe\n");
    assert_eq!(on_demo(&["call", "echo", &format!("text={from_file}")]).stdout, "{\"a\":2,\"b\":3}\n");
    assert_eq!(on_demo(&["call", "echo", "text=@@home"]).stdout, "@home\n");
}

#[test]
fn a_wrong_name_is_answered_with_close_ones() {
    assert_snapshot!("close_name", in_both_eras(&["call", "ad"]));
    assert_snapshot!("strange_name", in_both_eras(&["call", "zzz"]));
    assert_snapshot!("no_name", told(&on_demo(&["call"])));
}

#[test]
fn logs_are_beside_the_result() {
    assert_snapshot!("count", in_both_eras(&["call", "count", "to=2"]));
    let logged = on_demo(&["call", "count", "to=1", "--json"]);
    let first: Value = serde_json::from_str(logged.stderr.lines().next().unwrap()).unwrap();
    assert_eq!(first["log"]["data"], "counting to 1");
}

#[test]
fn a_configured_server_and_its_tool_may_be_one_word() {
    let home = tempfile::tempdir().unwrap();
    let server = json!({ "command": env!("CARGO_BIN_EXE_toolwire"), "args": ["demo", "--stdio"] });
    let config = json!({ "mcpServers": { "demo": server } });
    std::fs::create_dir(home.path().join("toolwire")).unwrap();
    std::fs::write(home.path().join("toolwire/servers.json"), config.to_string()).unwrap();
    for words in [
        &["call", "demo", "add", "a=2", "b=3"][..],
        &["call", "demo.add", "a=2", "b=3"],
        &["call", "demo/add", "a=2", "b=3"],
    ] {
        let ended = in_folder(home.path(), words, "");
        assert_eq!(ended.stdout, "sum  5\n", "{ended:?}");
    }
    assert_eq!(in_folder(home.path(), &["prompt", "demo.greet", "name=Ada"], "").status.code(), Some(0));
}

#[test]
fn bytes_are_saved_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gallery");
    let shown = on_demo(&["call", "gallery", "-o", path.to_str().unwrap()]);
    assert_snapshot!("saved", told(&shown).replace(path.to_str().unwrap(), "[folder]"));
    let picture = std::fs::read(path.join("image-1.png")).unwrap();
    assert_eq!(picture.get(1..4), Some(&b"PNG"[..]));
    assert!(std::fs::read(path.join("audio-2.wav")).unwrap().starts_with(b"RIFF"));
    assert_snapshot!("nothing_to_save", told(&on_demo(&["call", "echo", "text=x", "-o", "never-written"])));
}

#[test]
fn without_a_terminal_questions_are_declined_or_answered_in_advance() {
    assert_snapshot!("declined", in_both_eras(&["call", "order"]));
    assert_snapshot!("declined_json", on_demo(&["call", "order", "--json"]).stderr);
    assert_snapshot!("page_declined", in_both_eras(&["call", "visit", "--yes"]));
    let words =
        ["call", "order", "--answer", "name=Ada", "--answer", "extras=milk", "--answer", "extras=lemon"];
    assert_snapshot!("answered", in_both_eras(&words));
    assert_snapshot!(
        "answered_by_json",
        in_both_eras(&["call", "order", "--answers", r#"{"name":"Ada","cups":2}"#])
    );
    assert_snapshot!("not_enough_answers", in_both_eras(&["call", "order", "--yes"]));
    let misspelt = ["call", "order", "--answer", "name=Ada", "--answer", "cusp=2"];
    assert_snapshot!("unused_answer", in_both_eras(&misspelt));
    let warned = on_demo(&[&misspelt[..], &["--json"]].concat()).stderr;
    assert_eq!(warned, "{\"unused\":{\"answers\":[\"cusp\"]}}\n");
    assert_snapshot!("unfit_answer", in_both_eras(&["call", "order", "--answer", "name=A"]));
}

#[test]
fn the_client_shares_its_folders_and_has_no_model_of_its_own() {
    assert_eq!(on_demo(&["call", "show_roots"]).stdout, "this client shares no folders\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for era in ["modern", "legacy"] {
        let server = ["--", env!("CARGO_BIN_EXE_toolwire"), "demo", "--stdio"];
        let words = ["call", "show_roots", "--root", path, "--era", era];
        let mut command = toolwire(&[&words[..], &server].concat());
        // This server asks for its folders only in the call. That it asks before is waited for in vain.
        command.env("HOME", path).env_remove(WAITS.0);
        let shared = run(command);
        assert_eq!(shared.stdout, format!("file://{path}\n"), "{shared:?}");
    }
    assert_snapshot!(
        "no_model_modern",
        told(&on_demo(&["call", "ask_model", "question=hi", "--era", "modern"]))
    );
    assert_snapshot!(
        "no_model_legacy",
        told(&on_demo(&["call", "ask_model", "question=hi", "--era", "legacy"]))
    );
}

/// A server that breaks its promises, and wants a page to be visited.
#[cfg(unix)]
const BROKEN: &str = r#"
while read -r line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*)
      answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *'"tools/list"'*)
      schema='{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
      answer '"result":{"tools":[{"name":"liar","inputSchema":{"type":"object"},"outputSchema":'"$schema"'},
        {"name":"silent","inputSchema":{"type":"object"},"outputSchema":'"$schema"'},
        {"name":"twice","inputSchema":{"type":"object"}},
        {"name":"page","inputSchema":{"type":"object"}}]}' | tr -d '\n'
      echo ;;
    *'"name":"liar"'*) answer '"result":{"content":[],"structuredContent":{"n":"one"}}' ;;
    *'"name":"silent"'*) answer '"result":{"content":[{"type":"text","text":"nothing \u001b[31mred"}]}' ;;
    *'"name":"twice"'*)
      answer '"result":{"content":[{"type":"text","text":"once"}],"structuredContent":{"content":"once"}}' ;;
    *'"name":"page"'*)
      answer '"error":{"code":-32042,"message":"log in","data":{"elicitations":[
        {"mode":"url","message":"log in","url":"https://example.com/login","elicitationId":"1"}]}}' | tr -d '\n'
      echo ;;
  esac
done"#;

/// A server with schemas that cannot be compiled, or only in part, and with a form that has too many fields, those of the
/// file that is its argument.
#[cfg(unix)]
const UNCHECKABLE: &str = r#"
while read -r line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  wrong='{"type":"object","properties":{"n":{"type":"int"}}}'
  case "$line" in
    *'"initialize"'*)
      answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *'"tools/list"'*)
      tool() { printf '{"name":"%s","inputSchema":%s}' "$1" "$2"; }
      out='{"name":"out","inputSchema":{"type":"object"},"outputSchema":'"$wrong"'}'
      far='{"type":"object","properties":{"n":{"$ref":"https://example.com/s"}}}'
      answer '"result":{"tools":['"$(tool wrong "$wrong"),$(tool far "$far"),$(tool form '{"type":"object"}'),$out"']}' ;;
    *'"name":"form"'*)
      fields=$(cat "$1")
      printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{%s}}}}\n' "$fields"
      read -r reply
      answer '"result":{"content":[{"type":"text","text":"done"}]}' ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":1}}' ;;
  esac
done"#;

#[cfg(unix)]
#[test]
fn what_is_not_checked_is_told() {
    let home = tempfile::tempdir().unwrap();
    let fields = home.path().join("fields");
    std::fs::write(&fields, many_fields()).unwrap();
    let call = |words: &[&str]| {
        let server = ["--era", "legacy", "--", "sh", "-c", UNCHECKABLE, "sh", fields.to_str().unwrap()];
        in_folder(home.path(), &[&["call"], words, &server[..]].concat(), "")
    };
    for (words, what, extent) in [
        (&["wrong", "n=1"][..], "the arguments", "not checked"),
        (&["far", "n=1"], "the arguments", "checked only in part"),
        (&["out"], "the result", "not checked"),
        (&["form", "--answer", "f1=x"], "the answers", "not checked"),
    ] {
        let told = call(words);
        assert_eq!(told.status.code(), Some(0), "{told:?}");
        assert!(told.stderr.contains(&format!("warning: {what}: {extent}: ")), "{words:?}: {told:?}");
        let told = call(&[words, &["--json"]].concat());
        let line: Value = serde_json::from_str(told.stderr.lines().next().unwrap()).unwrap();
        assert_eq!(
            (&line["unchecked"]["what"], &line["unchecked"]["extent"]),
            (&json!(what), &json!(extent))
        );
    }
}

#[cfg(unix)]
#[test]
fn a_server_that_breaks_its_promise_is_told_of_after_its_words() {
    let home = tempfile::tempdir().unwrap();
    let call = |tool: &str| {
        let words = ["call", tool, "--era", "legacy", "--", "sh", "-c", BROKEN];
        told(&in_folder(home.path(), &words, ""))
    };
    assert_snapshot!("broken_promise", call("liar"));
    assert_snapshot!("no_structured_content", call("silent"));
    assert_snapshot!("page_first", call("page"));
    assert_eq!(call("twice"), "once\n--- exit 0");
}
