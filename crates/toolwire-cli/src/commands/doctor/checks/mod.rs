//! The checks: each a small function from the facts to what it finds in them.
//!
//! A check neither asks nor waits for anything, so each can be tested with made-up facts.

mod auth;
mod catalog;
mod hosts;
mod last_words;
mod poison;
mod program;
mod schema;
mod talk;
#[cfg(test)]
mod tests;
mod web;

use super::{case::Case, finding::Finding, problem::Severity};

/// A check.
type Check = fn(&Case) -> Vec<Finding>;

/// All checks, with what they are about, for those who want to know what was looked at.
const CHECKS: &[(&str, &[Check])] = &[
    ("program", &[program::there, program::path, program::ends, program::junk, program::start]),
    ("network", &[web::connection, web::status, web::path, web::proxy]),
    ("login", &[auth::stored, auth::way, auth::warnings]),
    ("protocol", &[talk::era, talk::transport, talk::lists, talk::offers]),
    ("names", &[catalog::names, catalog::duplicates]),
    ("descriptions", &[catalog::descriptions, catalog::arguments, poison::hidden, poison::orders]),
    ("schemas", &[schema::valid, schema::objects, schema::portable, schema::unusual]),
    ("annotations", &[catalog::annotations]),
    ("size", &[catalog::count, catalog::size]),
];

/// Everything that is wrong, the worst first, and causes before consequences.
pub(crate) fn all(case: &Case) -> Vec<Finding> {
    let checks = CHECKS.iter().flat_map(|(_, checks)| *checks);
    let mut findings: Vec<_> = checks.flat_map(|check| check(case)).collect();
    if !findings.iter().any(|finding| finding.severity == Severity::Error) {
        findings.extend(talk::unexplained(case));
    }
    findings.sort_by_key(|finding| (finding.severity, finding.problem));
    findings
}

/// What was looked at in this case.
pub(crate) fn areas(case: &Case) -> Vec<&'static str> {
    let looked = |area: &&str| match *area {
        "program" => case.program.is_some(),
        "network" => case.program.is_none(),
        "protocol" => true,
        "login" => case.auth.is_some(),
        _ => !case.tools().is_empty(),
    };
    CHECKS.iter().map(|(area, _)| *area).filter(looked).collect()
}
