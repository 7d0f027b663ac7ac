//! Checks about the conversation: eras, transports, lists.

use toolwire::protocol::Feature;

use super::super::{
    case::{Case, Listed},
    finding::Finding,
    problem::{Problem, Severity},
};
use crate::{failure::Code, terminal::seconds};

/// What is said when there is no conversation and no check knows why.
pub(super) fn unexplained(case: &Case) -> Option<Finding> {
    let silence = case.talk.as_ref().err()?;
    let problem = match silence.code {
        Code::SpawnFailed => Problem::SpawnFailed,
        Code::Timeout => return Some(timeout(case)),
        Code::AuthNeeded => Problem::AuthNeeded,
        Code::Forbidden => Problem::Forbidden,
        Code::NotMcp => Problem::NotMcp,
        Code::NoCommonVersion => Problem::NoCommonVersion,
        Code::Unreachable => Problem::Unreachable,
        Code::ConnectionClosed => Problem::ConnectionClosed,
        Code::InvalidAnswer => Problem::InvalidAnswer,
        Code::RpcError => Problem::RpcError,
        Code::ConfigBroken => Problem::ConfigBroken,
        _ => Problem::Other,
    };
    let summary = match problem {
        Problem::RpcError => "the server refuses the first message",
        Problem::InvalidAnswer => "the answer to the first message is not valid",
        _ => "no conversation came about",
    };
    let finding = Finding::new(problem, summary).evidence(silence.text.lines());
    Some(match problem {
        Problem::NoCommonVersion => finding.fix("leave --era out, or update the older of the two"),
        Problem::ConfigBroken => finding.fix("mend the file of the configuration"),
        Problem::RpcError | Problem::InvalidAnswer => {
            finding.fix("is it an MCP server at all? then report it")
        }
        _ => finding,
    })
}

fn timeout(case: &Case) -> Finding {
    let summary = format!("there was no answer within {}", seconds(case.patience));
    let finding = Finding::new(Problem::Timeout, summary);
    let finding = match case.child.stderr.as_slice() {
        [] => finding.evidence(["it wrote nothing to standard error"]),
        lines => finding.evidence(lines.iter().rev().take(4).rev()),
    };
    if let Some(lost) = &case.child.lost {
        return finding.evidence([lost]).fix("each message is one line of JSON on standard output");
    }
    finding
        .fix(
            "does it speak MCP over standard input and output? some servers need an argument such as --stdio",
        )
        .fix("a first start may download a package: --timeout 120")
}

/// Who can talk to the server.
pub(super) fn era(case: &Case) -> Vec<Finding> {
    let Some(talk) = case.talk() else { return Vec::new() };
    let mut findings = Vec::new();
    if case.child.starts > 1 {
        findings.push(
            Finding::new(Problem::DiesOnDiscover, "the server ends when it is asked for its versions")
                .evidence(["it had to be started a second time, to begin with `initialize`"])
                .fix("answer unknown methods with error -32601 and go on"),
        );
    }
    if !talk.version.has(Feature::Handshake) {
        if let Some(refusal) = &talk.legacy_refusal {
            let summary = "only clients of 2026-07-28 can use it";
            let finding = Finding::new(Problem::ModernOnly, summary).evidence(refusal.lines());
            findings.push(finding.fix("turn the older versions on: most hosts begin with `initialize`"));
        }
        return findings;
    }
    let summary = format!("the server speaks {}, not 2026-07-28; every host can use it", talk.version);
    let mut finding = Finding::new(Problem::LegacyOnly, summary);
    if talk.silent_on_discover {
        let text = "it leaves server/discover unanswered, so newer clients wait before they go on";
        finding = finding.evidence([text]).fix("answer unknown methods with error -32601");
    }
    if !talk.version.has(Feature::StructuredContent) {
        let text = format!("{} has no structured results, and cannot ask the user", talk.version);
        finding = finding.evidence([text]);
    }
    findings.push(finding);
    findings
}

/// The transport is one that newer hosts have.
pub(super) fn transport(case: &Case) -> Vec<Finding> {
    let Some(talk) = case.talk().filter(|talk| talk.sse) else { return Vec::new() };
    if let Some(url) = &talk.newer {
        let summary =
            "this address has HTTP+SSE, which newer hosts no longer support, and the server has more";
        let finding = Finding::new(Problem::SseOnly, summary).severity(Severity::Note);
        return vec![finding.evidence([format!("{url} answers, too")]).fix(format!("use {url}"))];
    }
    let summary = "the server has only HTTP+SSE, which newer hosts no longer support";
    vec![
        Finding::new(Problem::SseOnly, summary)
            .fix("is there Streamable HTTP at another path, such as /mcp?"),
    ]
}

/// What is advertised can be listed.
pub(super) fn lists(case: &Case) -> Vec<Finding> {
    let Some(talk) = case.talk() else { return Vec::new() };
    [
        list("tools", &talk.tools),
        list("resources", &talk.resources),
        list("templates", &talk.templates),
        list("prompts", &talk.prompts),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn list<T>(what: &str, listed: &Listed<T>) -> Option<Finding> {
    let Listed::Failed { why, endless } = listed else { return None };
    let finding = if *endless {
        Finding::new(Problem::ListEndless, format!("the list of {what} has no end"))
            .fix("leave nextCursor out of the last page")
    } else {
        Finding::new(Problem::ListFailed, format!("the server says that it has {what}, and cannot list them"))
            .fix(format!("toolwire {what} … shows the error; in your own server, see its log"))
    };
    Some(finding.evidence(why.lines()))
}

/// The server offers something.
pub(super) fn offers(case: &Case) -> Vec<Finding> {
    let Some(talk) = case.talk() else { return Vec::new() };
    let empty = talk.tools.is_empty()
        && talk.resources.is_empty()
        && talk.templates.is_empty()
        && talk.prompts.is_empty();
    if !empty {
        return Vec::new();
    }
    let summary = "the server offers neither tools nor resources nor prompts";
    let finding = Finding::new(Problem::NothingOffered, summary).severity(Severity::Warning);
    vec![finding.fix("does it need an argument, a variable or a login? see its documentation")]
}
