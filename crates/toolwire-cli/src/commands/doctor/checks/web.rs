//! Checks about HTTP, for servers that could not be reached.

use toolwire::http::client::fetch::CertificateFault;

use crate::auth::Stored;

use super::super::{
    case::Case,
    finding::Finding,
    problem::{Problem, Severity},
    web::{Answer, Fault, Look, Web, plain_on_tls},
};

fn nothing(case: &Case) -> Option<(&Web, &Fault)> {
    case.web.as_ref().and_then(|web| match &web.here {
        Look::Nothing(fault) => Some((web, fault)),
        Look::Answer(_) => None,
    })
}

fn answer(case: &Case) -> Option<(&Web, &Answer)> {
    case.web.as_ref().and_then(|web| match &web.here {
        Look::Answer(answer) => Some((web, answer)),
        Look::Nothing(_) => None,
    })
}

/// A connection can be made.
pub(super) fn connection(case: &Case) -> Vec<Finding> {
    let address = &case.address;
    if let Some((web, answer)) = answer(case).filter(|(_, answer)| plain_on_tls(answer)) {
        return vec![other_scheme(web, answer.lines())];
    }
    let Some((web, fault)) = nothing(case) else { return Vec::new() };
    let finding = match fault {
        Fault::Dns(why) => Finding::new(Problem::DnsFailed, format!("the host of {address} is not known"))
            .evidence([why])
            .fix("check the name for typing mistakes; some names are known only inside a VPN"),
        Fault::Refused(why) => {
            Finding::new(Problem::ConnectionRefused, format!("nobody listens at {address}"))
                .evidence([why])
                .fix("start the server, and check the port")
        }
        Fault::Timeout => Finding::new(Problem::Timeout, format!("{address} does not answer"))
            .evidence(["the connection was tried, and nothing came back in time"])
            .fix("is the server running? a firewall that drops packets looks the same"),
        Fault::Certificate(fault, why) => {
            Finding::new(Problem::TlsCertificate, format!("the certificate of {address} is not trusted"))
                .evidence([why])
                .fix(certificate_fix(*fault))
        }
        Fault::Garbled(why) | Fault::NoAgreement(why) => other_scheme(web, vec![why.clone()]),
        Fault::Other(why) => Finding::new(Problem::Unreachable, format!("{address} cannot be reached"))
            .evidence([why])
            .fix("check host and port, and whether the server runs"),
    };
    vec![match &case.proxy {
        Some(_) => finding.fix("or is it the proxy that cannot be reached?"),
        None => finding,
    }]
}

fn other_scheme(web: &Web, evidence: Vec<String>) -> Finding {
    match &web.elsewhere {
        Some(url) => Finding::new(Problem::TlsMismatch, "the URL begins with the wrong scheme")
            .evidence(evidence)
            .evidence([format!("{url} answers")])
            .fix(format!("use {url}")),
        None => Finding::new(Problem::NotMcp, "what answers there does not speak HTTP")
            .evidence(evidence)
            .fix("check the port: another program listens there"),
    }
}

const fn certificate_fix(fault: CertificateFault) -> &'static str {
    match fault {
        CertificateFault::Expired => "renew the certificate; or is the clock of this machine wrong?",
        CertificateFault::OtherName => "use the name that the certificate is made for",
        _ => "it is self-signed or of an unknown authority: add that to those which this system trusts",
    }
}

/// The status is one of success.
pub(super) fn status(case: &Case) -> Vec<Finding> {
    let Some((_, answer)) = answer(case).filter(|(_, answer)| !plain_on_tls(answer)) else {
        return Vec::new();
    };
    let host = answer.body.to_ascii_lowercase();
    let about_host = ["host", "origin", "dns rebinding"].iter().any(|word| host.contains(word));
    let finding = match answer.status {
        401 if case.address.has_credentials() => {
            Finding::new(Problem::AuthNeeded, "the server refuses the token that was sent")
                .fix("is it expired, or for another server? the challenge above may say what it wants")
        }
        // What is wrong with the stored login is told instead.
        401 if case.auth.as_ref().is_some_and(|auth| auth.stored != Stored::Nothing) => return Vec::new(),
        401 => {
            let finding = Finding::new(Problem::AuthNeeded, "the server requires authentication");
            let finding = match case.auth.as_ref().and_then(|auth| Some(&auth.walk.as_ref()?.outcome)) {
                Some(Ok(_)) => finding.fix(format!("toolwire login {}", case.name)),
                // It says where to log in, and nobody answers there now.
                Some(Err(error)) if error.is_temporary() => finding
                    .evidence([error.to_string()])
                    .fix(format!("toolwire login {}, when that can be asked again", case.name)),
                _ => finding,
            };
            finding.fix(format!("toolwire doctor {} --bearer-env MY_TOKEN", case.name))
        }
        421 => host_refused(),
        403 if about_host && !answer.is_page() => host_refused(),
        403 => Finding::new(Problem::Forbidden, "the server does not allow it")
            .fix("does the token have the scopes that are needed?"),
        429 => Finding::new(Problem::RateLimited, "the server has had enough requests")
            .fix("wait as long as Retry-After says, or a minute"),
        500.. => Finding::new(Problem::ServerFailing, "the server answers with a fault of its own")
            .fix("try again later; if it is your server, read its log"),
        300..=399 => match &answer.location {
            Some(location) => Finding::new(Problem::Redirected, "the server sends us elsewhere")
                .fix(format!("if you trust it, use {location}")),
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    vec![finding.evidence(answer.lines())]
}

fn host_refused() -> Finding {
    Finding::new(Problem::HostRefused, "the server does not serve requests for this host or origin")
        .fix("add the name in the URL to the server's allowed hosts")
}

/// The path is that of a server.
pub(super) fn path(case: &Case) -> Vec<Finding> {
    let Some((web, answer)) = answer(case).filter(|(_, answer)| !plain_on_tls(answer)) else {
        return Vec::new();
    };
    if answer.status >= 500 || matches!(answer.status, 300..=399 | 401 | 403 | 421 | 429) {
        return Vec::new();
    }
    if let Some(url) = &web.elsewhere {
        let finding = Finding::new(Problem::WrongPath, format!("the server is at {url}"));
        return vec![finding.evidence(answer.lines()).fix(format!("toolwire doctor {url}"))];
    }
    let finding = match answer.status {
        _ if answer.is_page() => Finding::new(Problem::WebPage, "a web page answers, not a server")
            .fix("look for the server's URL in its documentation; /mcp, /sse and / are not it"),
        404 => Finding::new(Problem::WrongPath, "there is nothing at this path")
            .fix("look for the server's URL in its documentation; /mcp, /sse and / are not it"),
        405 | 406 | 415 => Finding::new(Problem::MethodRefused, "the address does not take such requests")
            .fix("look for the server's URL in its documentation"),
        _ if answer.body.contains("\"jsonrpc\"") => return Vec::new(),
        _ => Finding::new(Problem::NotMcp, "something answers there, but not an MCP server")
            .fix("look for the server's URL in its documentation"),
    };
    vec![finding.evidence(answer.lines())]
}

/// Whether a proxy is in between, which only matters much when something does not work.
pub(super) fn proxy(case: &Case) -> Vec<Finding> {
    let Some(proxy) = &case.proxy else { return Vec::new() };
    let severity = if case.talk.is_err() { Severity::Warning } else { Severity::Note };
    let finding = Finding::new(Problem::ProxyInUse, "requests go through a proxy").severity(severity);
    vec![finding.evidence([proxy]).fix("without it: NO_PROXY=HOST toolwire doctor …")]
}
