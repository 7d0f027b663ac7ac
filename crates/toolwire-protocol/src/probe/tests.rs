use super::*;

const MODERN: Version = Version::V2026_07_28;
const LEGACY: Version = Version::V2025_11_25;
const BOTH: [ProbeLink; 2] = [ProbeLink::Duplex, ProbeLink::Http];

fn discover(link: ProbeLink, answer: &ProbeAnswer) -> ProbeVerdict {
    Probe { link, offered: &Version::ALL, sent: MODERN }.on_discover(answer)
}

fn initialize(link: ProbeLink, answer: &ProbeAnswer) -> ProbeVerdict {
    Probe { link, offered: &Version::ALL, sent: MODERN }.on_failed_initialize(answer)
}

fn versions(supported: &[&str]) -> Vec<String> {
    supported.iter().map(|&text| text.to_owned()).collect()
}

fn discovered(supported: &[&str]) -> ProbeAnswer {
    ProbeAnswer::Discovered(versions(supported))
}

fn failure(code: i64, supported: &[&str]) -> ProbeError {
    ProbeError { code: ErrorCode(code), supported: versions(supported) }
}

/// The error on its own and under the given HTTP status.
fn both_ways(status: u16, error: &ProbeError) -> [ProbeAnswer; 2] {
    [ProbeAnswer::Error(error.clone()), ProbeAnswer::Status(status, Some(error.clone()))]
}

#[test]
fn a_discover_result_chooses_the_newest_common_version() {
    for link in BOTH {
        assert_eq!(discover(link, &discovered(&["2026-07-28"])), ProbeVerdict::Modern(MODERN));
        assert_eq!(discover(link, &discovered(&["2025-11-25", "2026-07-28"])), ProbeVerdict::Modern(MODERN));
        assert_eq!(discover(link, &discovered(&["2031-01-01", "2026-07-28"])), ProbeVerdict::Modern(MODERN));
    }
}

#[test]
fn a_discover_result_with_legacy_versions_only_asks_for_initialize() {
    let answer = discovered(&["2025-03-26", "2025-06-18"]);
    for link in BOTH {
        assert_eq!(discover(link, &answer), ProbeVerdict::Initialize(Version::V2025_06_18));
    }
}

#[test]
fn a_discover_result_without_a_common_version_is_the_end() {
    for link in BOTH {
        assert_eq!(discover(link, &discovered(&["2031-01-01"])), ProbeVerdict::NoCommonVersion);
        assert_eq!(discover(link, &discovered(&[])), ProbeVerdict::NoCommonVersion);
    }
}

#[test]
fn a_result_of_another_shape_is_legacy() {
    for link in BOTH {
        assert_eq!(discover(link, &ProbeAnswer::OtherResult), ProbeVerdict::Initialize(LEGACY));
    }
}

#[test]
fn a_header_or_capability_error_is_modern_and_can_be_corrected() {
    for code in [-32020, -32021] {
        for answer in both_ways(400, &failure(code, &[])) {
            for link in BOTH {
                assert_eq!(discover(link, &answer), ProbeVerdict::RetryModern(MODERN), "{answer:?}");
            }
        }
    }
}

#[test]
fn an_unsupported_version_is_retried_with_one_that_is_supported() {
    for answer in both_ways(400, &failure(-32022, &["2025-06-18", "2025-11-25"])) {
        for link in BOTH {
            assert_eq!(discover(link, &answer), ProbeVerdict::Initialize(LEGACY), "{answer:?}");
        }
    }
    // There is one modern version today, so that a probe of an older one stands in for a newer one.
    let probe = Probe { link: ProbeLink::Http, offered: &Version::ALL, sent: LEGACY };
    let answer = ProbeAnswer::Error(failure(-32022, &["2026-07-28", "2025-11-25"]));
    assert_eq!(probe.on_discover(&answer), ProbeVerdict::RetryModern(MODERN));
}

#[test]
fn an_unsupported_version_never_falls_back_blindly() {
    for supported in [&[][..], &["2031-01-01"]] {
        for answer in both_ways(400, &failure(-32022, supported)) {
            for link in BOTH {
                assert_eq!(discover(link, &answer), ProbeVerdict::NoCommonVersion, "{answer:?}");
            }
        }
    }
}

#[test]
fn a_version_that_is_refused_and_yet_the_only_one_listed_is_tried_again() {
    for answer in both_ways(400, &failure(-32022, &["2026-07-28", "2031-01-01"])) {
        for link in BOTH {
            assert_eq!(discover(link, &answer), ProbeVerdict::RetryModern(MODERN), "{answer:?}");
        }
    }
}

#[test]
fn any_other_error_is_legacy_whatever_its_code() {
    for code in [-32700, -32600, -32601, -32602, -32603, -32000, -32002, -1, 0, 7] {
        for link in BOTH {
            let answer = ProbeAnswer::Error(failure(code, &[]));
            assert_eq!(discover(link, &answer), ProbeVerdict::Initialize(LEGACY), "{code}");
        }
    }
}

#[test]
fn a_client_error_without_a_modern_body_is_legacy() {
    for status in [400, 404, 405, 406, 410, 415, 422] {
        for error in [None, Some(failure(-32601, &[])), Some(failure(-32602, &[]))] {
            let answer = ProbeAnswer::Status(status, error);
            assert_eq!(discover(ProbeLink::Http, &answer), ProbeVerdict::Initialize(LEGACY), "{answer:?}");
        }
    }
}

#[test]
fn a_success_without_a_message_is_legacy() {
    for status in [200, 202, 204] {
        let answer = ProbeAnswer::Status(status, None);
        assert_eq!(discover(ProbeLink::Http, &answer), ProbeVerdict::Initialize(LEGACY), "{status}");
    }
}

#[test]
fn credentials_overload_redirects_and_faults_are_not_evidence() {
    for status in [0, 301, 307, 401, 403, 407, 408, 425, 429, 500, 501, 502, 503, 504, 999] {
        for error in [None, Some(failure(-32603, &[]))] {
            let answer = ProbeAnswer::Status(status, error);
            assert_eq!(discover(ProbeLink::Http, &answer), ProbeVerdict::NotEvidence, "{answer:?}");
        }
    }
}

#[test]
fn silence_is_legacy_on_a_pipe_only() {
    assert_eq!(discover(ProbeLink::Duplex, &ProbeAnswer::Timeout), ProbeVerdict::Initialize(LEGACY));
    assert_eq!(discover(ProbeLink::Http, &ProbeAnswer::Timeout), ProbeVerdict::NotEvidence);
}

#[test]
fn a_process_that_exits_is_started_again() {
    assert_eq!(
        discover(ProbeLink::Duplex, &ProbeAnswer::Closed),
        ProbeVerdict::RestartThenInitialize(LEGACY)
    );
    assert_eq!(discover(ProbeLink::Http, &ProbeAnswer::Closed), ProbeVerdict::NotEvidence);
}

#[test]
fn a_peer_out_of_reach_is_not_evidence() {
    for link in BOTH {
        assert_eq!(discover(link, &ProbeAnswer::Unreachable), ProbeVerdict::NotEvidence);
    }
}

#[test]
fn only_versions_on_offer_are_chosen() {
    let newest_first = [Version::V2025_06_18, Version::V2024_11_05];
    let probe = Probe { link: ProbeLink::Duplex, offered: &newest_first, sent: MODERN };
    assert_eq!(probe.on_discover(&ProbeAnswer::Timeout), ProbeVerdict::Initialize(Version::V2025_06_18));
    assert_eq!(probe.on_discover(&discovered(&["2026-07-28"])), ProbeVerdict::NoCommonVersion);

    let probe = Probe { link: ProbeLink::Duplex, offered: &[MODERN], sent: MODERN };
    for answer in [ProbeAnswer::Timeout, ProbeAnswer::Closed, ProbeAnswer::Error(failure(-32601, &[]))] {
        assert_eq!(probe.on_discover(&answer), ProbeVerdict::NoCommonVersion, "{answer:?}");
    }
}

#[test]
fn an_initialize_that_is_not_known_either_leaves_the_first_transport() {
    for status in [400, 404, 405] {
        let answer = ProbeAnswer::Status(status, None);
        assert_eq!(initialize(ProbeLink::Http, &answer), ProbeVerdict::TryHttpSse, "{status}");
        assert_eq!(initialize(ProbeLink::Duplex, &answer), ProbeVerdict::NotEvidence, "{status}");
    }
}

#[test]
fn any_other_failed_initialize_is_surfaced() {
    let error = failure(-32602, &[]);
    for answer in [
        ProbeAnswer::Error(error.clone()),
        ProbeAnswer::Status(401, None),
        ProbeAnswer::Status(500, Some(error)),
        ProbeAnswer::OtherResult,
        ProbeAnswer::Timeout,
        ProbeAnswer::Unreachable,
    ] {
        for link in BOTH {
            assert_eq!(initialize(link, &answer), ProbeVerdict::NotEvidence, "{answer:?}");
        }
    }
}

#[test]
fn a_process_that_dies_of_initialize_may_have_been_upset_by_the_probe() {
    let closed = ProbeAnswer::Closed;
    let again = ProbeVerdict::RestartThenInitialize(Version::LATEST_LEGACY);
    assert_eq!(initialize(ProbeLink::Duplex, &closed), again);
    assert_eq!(initialize(ProbeLink::Http, &closed), ProbeVerdict::NotEvidence);
}

#[test]
fn an_initialize_refused_by_a_modern_server_goes_back_to_modern() {
    for answer in both_ways(400, &failure(-32022, &["2026-07-28"])) {
        for link in BOTH {
            assert_eq!(initialize(link, &answer), ProbeVerdict::RetryModern(MODERN), "{answer:?}");
        }
    }
}

#[test]
fn the_supported_versions_are_read_from_an_error() {
    let error = RpcError::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, "no");
    assert_eq!(ProbeError::from(&error), failure(-32022, &[]));
    let error = error.with_data(&serde_json::json!({ "supported": ["2026-07-28"], "requested": "x" }));
    assert_eq!(ProbeError::from(&error), failure(-32022, &["2026-07-28"]));
    let error = error.with_data(&serde_json::json!({ "supported": [1] }));
    assert_eq!(ProbeError::from(&error), failure(-32022, &[]));
}
