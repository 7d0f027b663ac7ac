//! Checks about logins, for servers that want one.

use std::time::SystemTime;

use toolwire::auth::client::{AuthError, AuthErrorKind, Notice, Step, store::StoreErrorKind};

use super::super::{
    case::{Auth, Case},
    finding::Finding,
    problem::Problem,
};
use crate::auth::{self, Stored};

/// The stored login is good enough.
pub(super) fn stored(case: &Case) -> Vec<Finding> {
    let Some(known) = &case.auth else { return Vec::new() };
    let again = format!("toolwire login {}", known.typed);
    match &known.stored {
        Stored::Nothing => Vec::new(),
        Stored::Refused(StoreErrorKind::Exposed, why) => {
            let text = "the stored login is not used, because others could have read it";
            let finding = Finding::new(Problem::CredentialsExposed, text).evidence([why]);
            let logout = format!("else: toolwire logout {}, after that, and log in again", known.typed);
            vec![finding.fix("if nobody else had it, run the chmod that is named above").fix(logout)]
        }
        Stored::Refused(_, why) => {
            let text = "the stored login cannot be used";
            vec![Finding::new(Problem::LoginRefused, text).evidence([why]).fix(again)]
        }
        Stored::Login(login) => {
            let over = login.expires.is_some_and(|expires| expires <= SystemTime::now());
            let facts = [
                format!("issuer: {}", login.issuer),
                format!("scopes: {}", login.granted),
                format!("renewable: {}", if login.renewable { "yes" } else { "no" }),
            ];
            vec![refused(known, login.renewable, over, again).evidence(facts)]
        }
    }
}

/// Why a login that is there is not good enough.
fn refused(known: &Auth, renewable: bool, over: bool, again: String) -> Finding {
    match &known.failed {
        Some(error) if matches!(error.kind, AuthErrorKind::ScopesNeeded { .. }) => {
            let finding =
                Finding::new(Problem::ScopeMissing, "the stored login lacks scopes that the server wants");
            with_advice(finding.evidence([error.to_string()]), error, &known.typed)
        }
        Some(error) if error.step == Step::Renewal => {
            let problem = auth::problem(error).unwrap_or(Problem::LoginRefused);
            let text = "the stored login could not be renewed";
            with_advice(Finding::new(problem, text).evidence([error.to_string()]), error, &known.typed)
        }
        error if known.was_renewable && !renewable => {
            let finding = Finding::new(Problem::LoginRefused, "the issuer refused to renew the stored login");
            finding.evidence(error.iter().map(ToString::to_string)).fix(again)
        }
        error if over => {
            let finding =
                Finding::new(Problem::LoginExpired, "the stored login is over, and cannot be renewed");
            finding.evidence(error.iter().map(ToString::to_string)).fix(again)
        }
        error => {
            let finding = Finding::new(Problem::LoginRefused, "the server refuses the stored login");
            finding.evidence(error.iter().map(ToString::to_string)).fix(again)
        }
    }
}

fn with_advice(finding: Finding, error: &AuthError, server: &str) -> Finding {
    match auth::advice(error, server) {
        Some(advice) => finding.fix(advice),
        None => finding.fix(format!("toolwire login {server}")),
    }
}

/// A new login is possible.
pub(super) fn way(case: &Case) -> Vec<Finding> {
    let Some(known) = &case.auth else { return Vec::new() };
    let Some(walk) = &known.walk else { return Vec::new() };
    let Err(error) = &walk.outcome else { return Vec::new() };
    let Some(problem) = auth::problem(error) else { return Vec::new() };
    // A server that wants a key of its own kind has nothing to say about issuers.
    if problem == Problem::ResourceMetadataMissing && !walk.challenged {
        return Vec::new();
    }
    let finding = Finding::new(problem, summary(problem)).evidence([error.to_string()]);
    vec![with_advice(finding, error, &known.typed)]
}

const fn summary(problem: Problem) -> &'static str {
    match problem {
        Problem::ResourceMetadataMissing => "the server does not say where to log in",
        Problem::ResourceMismatch => "the server's metadata are those of another server",
        Problem::IssuerMismatch => "the issuer's metadata are those of another issuer",
        Problem::IssuerMetadataMissing => "the issuer does not say where its endpoints are",
        Problem::PkceMissing => "the issuer does not say that it protects codes with PKCE",
        Problem::RegistrationImpossible => "the issuer knows no client of ours, and registers none",
        Problem::MetadataRefused => {
            "the metadata on the way to a login are not valid, or lead where they must not"
        }
        _ => "the way to a login is blocked",
    }
}

/// What is accepted on the way to a login, though it should not be so.
pub(super) fn warnings(case: &Case) -> Vec<Finding> {
    let Some((known, walk)) = case.auth.as_ref().and_then(|known| Some((known, known.walk.as_ref()?))) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if walk.unreadable > 0 {
        let text = "a part of the server's challenge cannot be read";
        let finding = Finding::new(Problem::ChallengeUnreadable, text);
        let fix =
            "mend the server's WWW-Authenticate: SCHEME name=\"value\", name=\"value\" (RFC 9110, 11.6.1)";
        findings
            .push(finding.fix(fix).fix(format!("until then: toolwire login {} --issuer URL", known.typed)));
    }
    for hop in &walk.hops {
        let line = || {
            let request = hop.request.clone().unwrap_or_default();
            format!("{request} {}", hop.detail).trim_start().to_owned()
        };
        if hop.notice == Some(Notice::IssuerSlash) {
            let text = "the issuer is spelled with a final slash more, or less, than its metadata have";
            let finding = Finding::new(Problem::IssuerSlash, text).evidence([line()]);
            findings.push(
                finding
                    .fix("spell it alike in the metadata of the server and of the issuer; others refuse it"),
            );
        }
        if hop.notice == Some(Notice::ClockWrong) {
            let finding =
                Finding::new(Problem::ClockWrong, "the clocks of this machine and of the issuer differ");
            findings
                .push(finding.evidence([line()]).fix("set the clock of this machine, or that of the issuer"));
        }
    }
    findings
}
