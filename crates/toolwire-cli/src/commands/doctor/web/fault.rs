//! Why an address does not answer.

use std::error::Error;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Dns(String),
    Refused(String),
    Timeout,
    Certificate(String),
    /// What came is not TLS, or not HTTP.
    Garbled(String),
    Other(String),
}

impl Fault {
    /// What an error of the client means. Its URL is left out, because it may hold secrets.
    pub(super) fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut causes = vec![error.to_string()];
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        classify(&causes, error.is_timeout())
    }
}

/// Tells the reasons apart. They are only there as texts of the libraries below.
fn classify(causes: &[String], timeout: bool) -> Fault {
    let all = causes.join(": ").to_lowercase();
    let last = causes.last().cloned().unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| all.contains(word));
    match () {
        () if timeout || has(&["timed out"]) => Fault::Timeout,
        () if has(&[
            "dns error",
            "failed to lookup",
            "name or service not known",
            "nodename nor servname",
        ]) =>
        {
            Fault::Dns(last)
        }
        () if has(&["connection refused", "actively refused"]) => Fault::Refused(last),
        () if has(&["invalid peer certificate", "certificate", "unknownissuer"]) => Fault::Certificate(last),
        () if has(&[
            "corrupt message",
            "invalidcontenttype",
            "invalid http version",
            "httparse",
            "invalid status",
            "connection closed before message completed",
            "incompletemessage",
            "received fatal alert",
            "unexpected eof",
            "tls handshake eof",
            "connection reset",
        ]) =>
        {
            Fault::Garbled(last)
        }
        () => Fault::Other(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classified(causes: &[&str]) -> Fault {
        let causes: Vec<_> = causes.iter().map(ToString::to_string).collect();
        classify(&causes, false)
    }

    #[test]
    fn reasons_are_told_apart_by_their_words() {
        let refused =
            classified(&["error sending request", "tcp connect error", "Connection refused (os error 111)"]);
        assert_eq!(refused, Fault::Refused("Connection refused (os error 111)".into()));
        assert!(matches!(classified(&["x", "dns error", "failed to lookup address"]), Fault::Dns(_)));
        assert!(matches!(classified(&["x", "invalid peer certificate: Expired"]), Fault::Certificate(_)));
        assert!(matches!(
            classified(&["received corrupt message of type InvalidContentType"]),
            Fault::Garbled(_)
        ));
        assert!(matches!(classified(&["invalid HTTP version parsed"]), Fault::Garbled(_)));
        assert!(matches!(classified(&["operation timed out"]), Fault::Timeout));
        assert!(matches!(classified(&["the moon is full"]), Fault::Other(_)));
    }
}
