//! One test for each check, and for each of its answers.

use bytes::Bytes;

use super::*;
use crate::{ErrorCode, ServerCapability};

const V: &str = "io.modelcontextprotocol/protocolVersion";
const C: &str = "io.modelcontextprotocol/clientCapabilities";

fn served() -> Served {
    let mut served = Served::new(Version::ALL);
    served.capabilities = [ServerCapability::Tools, ServerCapability::Resources].into_iter().collect();
    served.custom_methods.insert("skills/list".into());
    served
}

fn modern_only() -> Served {
    let mut only = Served::new([Version::V2026_07_28]);
    only.capabilities = served().capabilities;
    only
}

/// A request with a full modern envelope.
fn enveloped(method: &str, version: &str, rest: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{"{V}":"{version}","{C}":{{}}}}{rest}}}}}"#
    )
}

/// A request without any metadata.
fn plain(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#)
}

fn run(text: &str, http: Option<&HeaderView<'_>>, served: &Served, legacy: LegacyView) -> Verdict {
    let message = Message::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap();
    let peek = match &message {
        Message::Request(request) => Peek::of(&request.params),
        Message::Notification(note) => Peek::of(&note.params),
        Message::Response(_) => Peek::default(),
    };
    classify(&message, &peek, http, served, legacy)
}

fn on_pipe(text: &str, legacy: LegacyView) -> Verdict {
    run(text, None, &served(), legacy)
}

/// The code and HTTP status of a refusal.
fn refusal(verdict: Verdict) -> (ErrorCode, u16) {
    match verdict {
        Verdict::Reject(fault) => (fault.rpc_error().code, fault.http_status()),
        other => panic!("not refused: {other:?}"),
    }
}

fn headers<'a>(version: &'a str, method: &'a str, name: Option<&'a str>) -> HeaderView<'a> {
    HeaderView { protocol_version: Some(version), method: Some(method), name }
}

const READY: LegacyView = LegacyView::Peer { version: Version::V2025_06_18, initialized: true };
const WAITING: LegacyView = LegacyView::Peer { version: Version::V2025_06_18, initialized: false };
const MODERN: &str = "2026-07-28";

#[test]
fn a_response_needs_a_legacy_peer() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(on_pipe(text, READY), Verdict::Legacy(Version::V2025_06_18));
    assert_eq!(on_pipe(text, LegacyView::NoPeer), Verdict::Ignore);
    let http = HeaderView::default();
    let verdict = run(text, Some(&http), &served(), LegacyView::NoPeer);
    assert_eq!(refusal(verdict), (ErrorCode::INVALID_REQUEST, 400));
    let verdict = run(text, Some(&http), &served(), LegacyView::UnknownSession);
    assert_eq!(refusal(verdict).1, 404);
}

#[test]
fn initialize_starts_the_legacy_era() {
    for view in [LegacyView::NoPeer, LegacyView::UnknownSession, LegacyView::Sessionless] {
        assert_eq!(on_pipe(&plain("initialize"), view), Verdict::Initialize, "{view:?}");
    }
    let http = HeaderView { protocol_version: Some("2025-11-25"), ..HeaderView::default() };
    let verdict = run(&plain("initialize"), Some(&http), &served(), LegacyView::NoPeer);
    assert_eq!(verdict, Verdict::Initialize);
    assert_eq!(refusal(on_pipe(&plain("initialize"), READY)), (ErrorCode::INVALID_REQUEST, 200));
    let verdict = run(&plain("initialize"), None, &modern_only(), LegacyView::Off);
    assert_eq!(refusal(verdict), (ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, 400));
}

#[test]
fn requests_of_a_session() {
    let list = plain("tools/list");
    assert_eq!(on_pipe(&list, READY), Verdict::Legacy(Version::V2025_06_18));
    let http = HeaderView::default();
    assert_eq!(refusal(run(&list, Some(&http), &served(), LegacyView::UnknownSession)).1, 404);
    let other = HeaderView { protocol_version: Some("2025-03-26"), ..http };
    assert_eq!(run(&list, Some(&other), &served(), READY), Verdict::Legacy(Version::V2025_06_18));
    let unknown = HeaderView { protocol_version: Some("1.0"), ..http };
    assert_eq!(refusal(run(&list, Some(&unknown), &served(), READY)).1, 400);
}

#[test]
fn before_initialized_only_ping_is_answered() {
    assert_eq!(refusal(on_pipe(&plain("tools/list"), WAITING)).0, ErrorCode::INVALID_REQUEST);
    assert_eq!(on_pipe(&plain("ping"), WAITING), Verdict::Legacy(Version::V2025_06_18));
}

#[test]
fn no_claim_and_no_peer() {
    let http = HeaderView::default();
    let verdict = run(&plain("tools/list"), Some(&http), &served(), LegacyView::NoPeer);
    assert_eq!(refusal(verdict), (ErrorCode::INVALID_REQUEST, 400));
    let verdict = run(&plain("tools/list"), Some(&http), &served(), LegacyView::Sessionless);
    assert_eq!(verdict, Verdict::Legacy(Version::V2025_03_26));
    let header = HeaderView { protocol_version: Some("2025-11-25"), ..http };
    let verdict = run(&plain("tools/list"), Some(&header), &served(), LegacyView::Sessionless);
    assert_eq!(verdict, Verdict::Legacy(Version::V2025_11_25));
    assert_eq!(on_pipe(&plain("ping"), LegacyView::NoPeer), Verdict::Ping);
    let Verdict::Reject(fault) = on_pipe(&plain("tools/list"), LegacyView::NoPeer) else { panic!() };
    let error = fault.rpc_error();
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(error.message.contains(V) && error.message.contains(C), "{error}");
}

#[test]
fn an_incomplete_envelope() {
    let http = headers(MODERN, "tools/list", None);
    for text in [
        plain("tools/list"),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"{C}":{{}}}}}}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"{V}":"{MODERN}"}}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"{V}":1,"{C}":{{}}}}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"{V}":"{MODERN}","{C}":[]}}}}}}"#
        ),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":3}}"#.to_owned(),
    ] {
        let verdict = run(&text, Some(&http), &served(), LegacyView::NoPeer);
        assert_eq!(refusal(verdict), (ErrorCode::INVALID_PARAMS, 400), "{text}");
    }
    // A version of the wrong type claims the modern era on a pipe as well.
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"{V}":1,"{C}":{{}}}}}}}}"#
    );
    assert_eq!(refusal(on_pipe(&text, READY)).0, ErrorCode::INVALID_PARAMS);
}

#[test]
fn a_modern_header_over_a_bare_initialize_contradicts_itself() {
    let http = headers(MODERN, "initialize", None);
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let verdict = run(text, Some(&http), &served(), LegacyView::NoPeer);
    assert_eq!(refusal(verdict), (ErrorCode::HEADER_MISMATCH, 400));
}

#[test]
fn the_version_header_must_match_and_outranks_the_served_version() {
    let list = enveloped("tools/list", MODERN, "");
    let none = HeaderView { method: Some("tools/list"), ..HeaderView::default() };
    assert_eq!(
        refusal(run(&list, Some(&none), &served(), LegacyView::NoPeer)),
        (ErrorCode::HEADER_MISMATCH, 400)
    );
    let unknown = enveloped("tools/list", "v999.0.0", "");
    let http = headers(MODERN, "tools/list", None);
    assert_eq!(
        refusal(run(&unknown, Some(&http), &served(), LegacyView::NoPeer)).0,
        ErrorCode::HEADER_MISMATCH
    );
}

#[test]
fn an_unserved_version_names_the_served_ones() {
    let http = headers("v999.0.0", "tools/list", None);
    let text = enveloped("tools/list", "v999.0.0", "");
    let Verdict::Reject(fault) = run(&text, Some(&http), &served(), LegacyView::NoPeer) else { panic!() };
    assert_eq!(fault.http_status(), 400);
    let error = fault.rpc_error();
    assert_eq!(error.code, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION);
    let data: serde_json::Value = error.data.unwrap().decode().unwrap();
    assert_eq!(data["requested"], "v999.0.0");
    assert_eq!(data["supported"][0], MODERN);
    assert_eq!(data["supported"].as_array().unwrap().len(), 5);
    // A legacy version in an envelope is told of the modern ones only.
    let Verdict::Reject(fault) = on_pipe(&enveloped("tools/list", "2025-11-25", ""), LegacyView::NoPeer)
    else {
        panic!()
    };
    let data: serde_json::Value = fault.rpc_error().data.unwrap().decode().unwrap();
    assert_eq!(data["supported"], serde_json::json!([MODERN]));
    // Without an envelope, a header that names nothing known is told the same.
    let http = headers("v999.0.0", "tools/list", None);
    let verdict = run(&plain("tools/list"), Some(&http), &served(), LegacyView::NoPeer);
    assert_eq!(refusal(verdict), (ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, 400));
}

#[test]
fn the_method_and_name_headers_must_agree() {
    let call = enveloped("tools/call", MODERN, r#","name":"add""#);
    for (http, good) in [
        (headers(MODERN, "tools/call", Some("add")), true),
        (headers(MODERN, "tools/call", Some("  add ")), true),
        (headers(MODERN, "tools/call", Some("=?base64?YWRk?=")), true),
        (headers(MODERN, "tools/call", Some("sub")), false),
        (headers(MODERN, "tools/call", Some("=?base64?YWR?=")), false),
        (headers(MODERN, "tools/call", None), false),
        (headers(MODERN, "tools/list", Some("add")), false),
        (headers(MODERN, "TOOLS/CALL", Some("add")), false),
        (HeaderView { protocol_version: Some(MODERN), method: None, name: Some("add") }, false),
    ] {
        let verdict = run(&call, Some(&http), &served(), LegacyView::NoPeer);
        if good {
            assert_eq!(verdict, Verdict::Modern(Version::V2026_07_28), "{http:?}");
        } else {
            assert_eq!(refusal(verdict), (ErrorCode::HEADER_MISMATCH, 400), "{http:?}");
        }
    }
}

#[test]
fn methods_of_the_wrong_era_or_not_advertised() {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "unknown/method",
        "prompts/list",
        "notifications/progress",
        "roots/list",
    ] {
        let verdict = on_pipe(&enveloped(method, MODERN, ""), LegacyView::NoPeer);
        assert_eq!(refusal(verdict), (ErrorCode::METHOD_NOT_FOUND, 404), "{method}");
    }
    for method in
        ["server/discover", "subscriptions/listen", "prompts/list", "resources/subscribe", "no/such"]
    {
        assert_eq!(refusal(on_pipe(&plain(method), READY)), (ErrorCode::METHOD_NOT_FOUND, 200), "{method}");
    }
    assert_eq!(
        on_pipe(&enveloped("skills/list", MODERN, ""), LegacyView::NoPeer),
        Verdict::Modern(Version::LATEST)
    );
}

#[test]
fn modern_requests_are_served_beside_a_legacy_peer() {
    for view in [READY, WAITING, LegacyView::NoPeer, LegacyView::Off] {
        let verdict = on_pipe(&enveloped("tools/list", MODERN, ""), view);
        assert_eq!(verdict, Verdict::Modern(Version::V2026_07_28), "{view:?}");
    }
}

#[test]
fn notifications_skip_the_checks_of_headers() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(on_pipe(text, LegacyView::NoPeer), Verdict::Either);
    let bare = HeaderView { protocol_version: Some(MODERN), ..HeaderView::default() };
    assert_eq!(run(text, Some(&bare), &served(), LegacyView::NoPeer), Verdict::Modern(Version::LATEST));
    let wrong = headers(MODERN, "tools/list", None);
    assert_eq!(refusal(run(text, Some(&wrong), &served(), LegacyView::NoPeer)).0, ErrorCode::HEADER_MISMATCH);
    let http = HeaderView::default();
    assert_eq!(run(text, Some(&http), &served(), READY), Verdict::Legacy(Version::V2025_06_18));
    assert_eq!(refusal(run(text, Some(&http), &served(), LegacyView::NoPeer)).1, 400);
    assert_eq!(refusal(run(text, Some(&http), &served(), LegacyView::UnknownSession)).1, 404);
}

#[test]
fn negotiation_takes_the_asked_version_or_our_newest_legacy_one() {
    let served = served();
    for (asked, answer) in [
        ("2024-11-05", Version::V2024_11_05),
        ("2025-06-18", Version::V2025_06_18),
        ("2026-07-28", Version::V2025_11_25),
        ("1999-01-01", Version::V2025_11_25),
    ] {
        assert_eq!(served.negotiate(asked), Some(answer), "{asked}");
    }
    assert_eq!(modern_only().negotiate("2025-06-18"), None);
}

#[test]
fn the_origin_of_an_error_decides_its_status() {
    for (version, code, status) in [
        (Version::V2026_07_28, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, 400),
        (Version::V2025_11_25, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, 200),
        (Version::V2026_07_28, ErrorCode::HEADER_MISMATCH, 200),
        (Version::V2026_07_28, ErrorCode::INVALID_PARAMS, 200),
        (Version::V2026_07_28, ErrorCode::METHOD_NOT_FOUND, 200),
        (Version::V2025_11_25, ErrorCode::INTERNAL_ERROR, 200),
    ] {
        assert_eq!(handler_error_status(version, code), status, "{code} {version}");
    }
    let fault =
        Fault::MissingClientCapability { required: crate::RawJson::parse(r#"{"sampling":{}}"#).unwrap() };
    assert_eq!(fault.http_status(), 400);
    let data: serde_json::Value = fault.rpc_error().data.unwrap().decode().unwrap();
    assert!(data["requiredCapabilities"]["sampling"].is_object());
    assert_eq!(Fault::InvalidParams("x".into()).http_status(), 200);
}

#[test]
fn without_the_legacy_era_a_bare_request_is_told_what_is_served() {
    let http = HeaderView::default();
    let verdict = run(&plain("tools/list"), Some(&http), &modern_only(), LegacyView::Off);
    assert_eq!(refusal(verdict), (ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, 400));
    // On a pipe the envelope is all that can be missing.
    let verdict = run(&plain("tools/list"), None, &modern_only(), LegacyView::Off);
    assert_eq!(refusal(verdict).0, ErrorCode::INVALID_PARAMS);
}

#[test]
fn only_the_version_claims_the_modern_era() {
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"{C}":[]}}}}}}"#);
    assert_eq!(on_pipe(&text, READY), Verdict::Legacy(Version::V2025_06_18));
}

#[test]
fn a_faulty_envelope_is_told_apart_from_faulty_parameters() {
    let call = enveloped("tools/call", MODERN, r#","name":7"#);
    assert_eq!(on_pipe(&call, LegacyView::NoPeer), Verdict::Modern(Version::LATEST));
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":3}}"#;
    let http = headers(MODERN, "tools/list", None);
    let Verdict::Reject(fault) = run(text, Some(&http), &served(), LegacyView::NoPeer) else { panic!() };
    assert!(matches!(fault, Fault::InvalidMeta(_)), "{fault:?}");
}

#[test]
fn a_modern_version_that_is_not_served_is_told_of_the_legacy_ones() {
    let mut legacy_only = Served::new([Version::V2025_06_18]);
    legacy_only.capabilities = served().capabilities;
    let text = enveloped("tools/list", MODERN, "");
    let Verdict::Reject(fault) = run(&text, None, &legacy_only, LegacyView::NoPeer) else { panic!() };
    let data: serde_json::Value = fault.rpc_error().data.unwrap().decode().unwrap();
    assert_eq!(data["supported"], serde_json::json!(["2025-06-18"]));
    // A legacy version that is not served is refused where no session says what was agreed on.
    let http = HeaderView { protocol_version: Some("2025-11-25"), ..HeaderView::default() };
    let verdict = run(&plain("tools/list"), Some(&http), &legacy_only, LegacyView::Sessionless);
    assert_eq!(refusal(verdict), (ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, 400));
}

#[test]
fn a_notification_of_a_session_must_name_a_known_version_too() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let unknown = HeaderView { protocol_version: Some("1.0"), ..HeaderView::default() };
    let verdict = run(text, Some(&unknown), &served(), READY);
    assert_eq!(refusal(verdict), (ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, 400));
}

#[test]
fn a_capability_is_added_and_removed_alone() {
    let all = [ServerCapability::Tools, ServerCapability::Resources, ServerCapability::Prompts];
    let mut set: CapabilitySet = all.into_iter().collect();
    // Twice is once.
    set.set(ServerCapability::Tools, true);
    assert!(all.into_iter().all(|capability| set.has(capability)));
    set.set(ServerCapability::Resources, false);
    set.set(ServerCapability::Resources, false);
    assert_eq!(all.map(|capability| set.has(capability)), [true, false, true]);
    assert!(!set.has(ServerCapability::Logging));
}
