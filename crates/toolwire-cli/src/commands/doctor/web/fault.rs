//! Why an address does not answer.

use toolwire::http::client::fetch::{CertificateFault, FetchError, FetchErrorKind};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Dns(String),
    Refused(String),
    Timeout,
    Certificate(CertificateFault, String),
    /// What came is not TLS, or not HTTP.
    Garbled(String),
    /// It speaks TLS, and no agreement was found.
    NoAgreement(String),
    Other(String),
}

impl Fault {
    /// What an error of the client means.
    pub(super) fn of(error: &FetchError) -> Self {
        let why = error.to_string();
        match error.kind() {
            FetchErrorKind::Dns => Self::Dns(why),
            FetchErrorKind::Refused => Self::Refused(why),
            FetchErrorKind::Timeout => Self::Timeout,
            FetchErrorKind::Certificate(fault) => Self::Certificate(fault, why),
            FetchErrorKind::Tls => Self::NoAgreement(why),
            FetchErrorKind::NotTls | FetchErrorKind::NotHttp | FetchErrorKind::Closed => Self::Garbled(why),
            _ => Self::Other(why),
        }
    }
}
