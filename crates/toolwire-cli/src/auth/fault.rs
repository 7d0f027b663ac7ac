//! What the errors of a login are to people and scripts, each with the option that helps.

use std::path::Path;

use toolwire::auth::client::{AuthError, AuthErrorKind as Kind, Step, scopes::Scopes, store::StoreErrorKind};

use super::Site;
use crate::{
    commands::doctor::Problem,
    failure::{Code, Failure},
    target::shell_word,
    terminal::printable,
};

/// What is wrong, if it is something that has a name of its own.
pub(crate) fn problem(error: &AuthError) -> Option<Problem> {
    Some(match &error.kind {
        Kind::NoResourceMetadata | Kind::NoIssuers => Problem::ResourceMetadataMissing,
        Kind::ResourceMismatch => Problem::ResourceMismatch,
        Kind::IssuerMismatch | Kind::IssuerChanged => Problem::IssuerMismatch,
        Kind::NoMetadata => Problem::IssuerMetadataMissing,
        Kind::PkceUnsupported => Problem::PkceMissing,
        Kind::RegistrationImpossible | Kind::RegistrationRefused { .. } => Problem::RegistrationImpossible,
        Kind::MetadataRefused => Problem::MetadataRefused,
        Kind::ResourceRejected => Problem::ResourceRefused,
        Kind::AuthorizationRefused { error } if error == "invalid_target" => Problem::ResourceRefused,
        Kind::ScopesNeeded { .. } | Kind::StepUpFutile | Kind::StepUpLimit => Problem::ScopeMissing,
        Kind::NotStored(StoreErrorKind::Exposed) => Problem::CredentialsExposed,
        Kind::Declined
        | Kind::AuthorizationRefused { .. }
        | Kind::StateMismatch
        | Kind::ResponseInvalid
        | Kind::DeviceExpired
        | Kind::DeviceUnsupported
        | Kind::GrantRejected
        | Kind::ClientRejected
        | Kind::ScopeRejected
        | Kind::TokenRefused { .. }
        | Kind::TokenInvalid
        | Kind::WrongTokenType
        | Kind::TokenRejected => Problem::LoginRefused,
        _ => return None,
    })
}

/// What to type about it.
pub(crate) fn advice(error: &AuthError, server: &str) -> Option<String> {
    let login = |more: &str| Some(format!("toolwire login {server} {more}").trim_end().to_owned());
    match &error.kind {
        Kind::NoResourceMetadata | Kind::NoIssuers => {
            login("--issuer URL, if you know who gives out its tokens; --early for servers of 2025-03-26")
        }
        Kind::ResourceMismatch => login("--resource URI, if it is the same server by another name"),
        Kind::IssuerMismatch | Kind::NoMetadata => login("--issuer URL, exactly as the issuer spells itself"),
        Kind::IssuerChanged => login("--client ID --issuer URL, if the new issuer is right"),
        Kind::PkceUnsupported => login("--issuer URL --assume-pkce, if you know that it does PKCE"),
        Kind::RegistrationImpossible | Kind::RegistrationRefused { .. } => login(
            "--client ID, after you have registered a client there (--secret-env VAR --issuer URL if it has a secret)",
        ),
        Kind::MetadataRefused => login("--trust-origin ORIGIN, if that origin is trusted"),
        Kind::ResourceRejected => {
            login("--issuer URL --omit-resource, or --resource URI as the issuer knows it")
        }
        Kind::AuthorizationRefused { error } if error == "invalid_target" => {
            login("--issuer URL --omit-resource, or --resource URI as the issuer knows it")
        }
        Kind::ScopesNeeded { scopes } => login(&options(scopes)),
        Kind::NotStored(StoreErrorKind::Exposed) => None,
        Kind::LoopbackBusy | Kind::Declined => login("--paste, or --device"),
        Kind::DeviceUnsupported => login("--paste"),
        Kind::ClientRejected => login("--fresh, which registers anew"),
        Kind::LoginNeeded | Kind::TokenRejected => login(""),
        _ if error.step == Step::Renewal && error.needs_login() => login(""),
        _ => None,
    }
}

/// Scopes as options.
fn options(scopes: &Scopes) -> String {
    let options = scopes.iter().map(|scope| format!("--scope {}", shell_word(scope)));
    options.collect::<Vec<_>>().join(" ")
}

/// A login, or what is like one, that failed.
pub(crate) fn failure(error: &AuthError, site: &Site) -> Failure {
    let code = match (&error.kind, problem(error)) {
        (_, Some(problem)) => problem.code(),
        (Kind::Unavailable, _) => Code::Unreachable,
        (Kind::Misconfigured, _) => Code::Usage,
        (Kind::LoginNeeded, _) => Code::AuthNeeded,
        (Kind::NotStored(_) | Kind::LoopbackBusy, _) => Code::Io,
        _ => Code::Other,
    };
    let failure = Failure::new(code, printable(&error.to_string()));
    match advice(error, &site.typed) {
        Some(advice) => failure.hint(advice),
        None => failure,
    }
}

/// A stored login that is not used, or cannot be.
pub(crate) fn unstored(kind: StoreErrorKind, why: &str, path: &Path) -> Failure {
    match kind {
        StoreErrorKind::Exposed => {
            let failure =
                Failure::new(Code::CredentialsExposed, format!("the stored login is not used: {why}"));
            let path = shell_word(&path.display().to_string());
            failure.hint(format!("if nobody else had it: chmod 600 {path}; else log out and in again"))
        }
        _ => Failure::new(Code::Io, format!("the stored login cannot be used: {why}")),
    }
}
