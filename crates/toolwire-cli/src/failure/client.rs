//! What the errors of the client are to people and scripts.

use std::error::Error as _;

use serde_json::json;
use toolwire::{
    ErrorCode, RpcError,
    auth::client::AuthError,
    client::{Error, ErrorKind},
    transport::child::SpawnError,
    wire::UrlElicitationRequiredData,
};

use super::{Code, Failure};
use crate::terminal::printable;

/// How many characters of the data of an error are shown; with `--json` all of it is.
const MAX_DATA_CHARS: usize = 1000;

/// The limits that `--max-message` sets: of transports that carry whole messages, and of HTTP.
const MESSAGE_LIMITS: [&str; 3] = ["max_message_bytes", "response_bytes", "event_bytes"];

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut text = told(&error);
        if let Some(why) = unauthorized(&error) {
            let failure = Self::new(code(&error), printable(&text)).unauthorized(why.clone());
            return match error.rpc() {
                Some(rpc) => failure.data(json!({ "rpc": rpc })),
                None => failure,
            };
        }
        let Some(rpc) = error.rpc() else {
            let failure = Self::new(code(&error), printable(&text));
            return match error.kind() {
                ErrorKind::Timeout => failure.hint("give it more time with --timeout 120"),
                _ => failure,
            };
        };
        if let Some(data) = &rpc.data {
            text = format!("{text}\n  data: {}", shortened(data.text()));
        }
        let failure = Self::new(code(&error), printable(&text)).data(json!({ "rpc": rpc }));
        if let Some(pages) = pages_first(rpc) {
            return failure.hint(pages);
        }
        match rpc.code.name() {
            // What the code means in general is not what helps here.
            _ if failure.code() == Code::Forbidden => failure.hint(
                "the credentials that were sent do not allow it; send a token that has the scopes which the server names",
            ),
            Some(name) => failure.hint(format!("toolwire explain {} says what \"{name}\" means", rpc.code)),
            None => failure,
        }
    }
}

/// What happened and why, each cause once: some errors say what theirs is, and others do not.
fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        // Why a program cannot be started is said in full, and better than the system does.
        next = if is_spawn_error(cause) { None } else { cause.source() };
    }
    text
}

/// Why a request had no credential, if that is why it failed.
fn unauthorized(error: &Error) -> Option<&AuthError> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(why) = cause.downcast_ref() {
            return Some(why);
        }
        next = cause.source();
    }
    None
}

/// The pages that have to be visited before the call is made again.
fn pages_first(rpc: &RpcError) -> Option<String> {
    if rpc.code != ErrorCode::URL_ELICITATION_REQUIRED {
        return None;
    }
    let data: UrlElicitationRequiredData = rpc.data.as_ref()?.decode().ok()?;
    let pages: Vec<&str> = data.elicitations.iter().map(|page| page.url.as_str()).collect();
    (!pages.is_empty()).then(|| printable(&format!("visit {} first, then try again", pages.join(" and "))))
}

/// The text, or as much of it as people want to see.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_DATA_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn code(error: &Error) -> Code {
    match error.status() {
        Some(401) => return Code::AuthNeeded,
        Some(403) => return Code::Forbidden,
        // A fault of a server says nothing about what it speaks.
        Some(429 | 500..=599) if error.rpc().is_none() => return Code::Unreachable,
        // A server that speaks the protocol has an error object to go with its status.
        Some(_) if error.rpc().is_none() => return Code::NotMcp,
        _ => {}
    }
    match error.kind() {
        ErrorKind::TooLarge if error.limit().is_some_and(|limit| MESSAGE_LIMITS.contains(&limit)) => {
            Code::TooLarge
        }
        ErrorKind::Rpc => Code::RpcError,
        ErrorKind::Tool => Code::ToolError,
        ErrorKind::Timeout => Code::Timeout,
        ErrorKind::Cancelled => Code::Interrupted,
        ErrorKind::Closed => Code::ConnectionClosed,
        ErrorKind::Connect if error.source().is_some_and(is_spawn_error) => Code::SpawnFailed,
        ErrorKind::Connect => Code::Unreachable,
        ErrorKind::NoCommonVersion => Code::NoCommonVersion,
        ErrorKind::NotInThisVersion | ErrorKind::NotAdvertised => Code::NotSupported,
        ErrorKind::InvalidResponse | ErrorKind::TooManyPages | ErrorKind::TooLarge => Code::InvalidAnswer,
        ErrorKind::InvalidParams => Code::InvalidArguments,
        ErrorKind::Unanswerable => Code::Unanswerable,
        ErrorKind::TaskGone => Code::TaskExpired,
        ErrorKind::TaskCancelled => Code::TaskCancelled,
        _ => Code::Other,
    }
}

fn is_spawn_error(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.and_then(std::io::Error::get_ref)
        .and_then(<dyn std::error::Error + Send + Sync>::downcast_ref::<SpawnError>)
        .is_some()
}
