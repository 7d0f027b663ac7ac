//! Why no response came, as a kind to decide by and a sentence to read.

use std::{borrow::Cow, error::Error, fmt, io, time::Duration};

pub(crate) use FetchErrorKind as Kind;

/// What went wrong on the way to a server or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The name of the host cannot be resolved.
    Dns,
    /// Nobody listens at the address, or it cannot be reached.
    Refused,
    /// It took longer than it may.
    Timeout,
    /// The certificate of the server is not one to trust.
    Certificate(CertificateFault),
    /// The server speaks TLS, and no agreement was found.
    Tls,
    /// What answers does not speak TLS.
    NotTls,
    /// What answers does not speak HTTP.
    NotHttp,
    /// The proxy cannot be used, or refuses.
    Proxy,
    /// The connection ended before the response did.
    Closed,
    /// The response, or a part of it, is larger than its limit.
    TooLarge,
    /// There are redirects that are not followed.
    Redirect,
    /// The address is one that may not be reached.
    Forbidden,
    /// The request cannot be sent as it is.
    Invalid,
    /// All connections that there may be are in use.
    Busy,
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateFault {
    /// Its time is over, or has not come yet.
    Expired,
    /// It was made for another name.
    OtherName,
    /// Its issuer is not known here.
    Untrusted,
    /// Anything else.
    Other,
}

/// A request without a response.
#[derive(Debug)]
pub(crate) struct NetError {
    kind: Kind,
    text: Cow<'static, str>,
    /// Whether any part of the request may have left.
    sent: bool,
}

impl NetError {
    /// Something that happened before anything of the request had left.
    pub(crate) fn unsent(kind: Kind, text: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, text: text.into(), sent: false }
    }

    /// Something that happened when the request may have arrived already.
    pub(crate) fn sent(kind: Kind, text: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, text: text.into(), sent: true }
    }

    pub(crate) fn connect_timeout(after: Duration) -> Self {
        Self::unsent(Kind::Timeout, format!("no connection was made within {}", Shown(after)))
    }

    /// All connections were in use for this long.
    pub(super) fn no_place(connections: usize, after: Duration) -> Self {
        let text = format!(
            "as many connections are in use as the limit `connections` allows ({connections}), and none was free \
             within {}",
            Shown(after)
        );
        Self::unsent(Kind::Busy, text)
    }

    /// The server closed one connection after the other before the request was sent.
    pub(super) fn not_taken(error: &hyper::Error) -> Self {
        Self::unsent(Kind::Closed, format!("the server does not take the request: {}", root(error)))
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) const fn was_sent(&self) -> bool {
        self.sent
    }
}

/// What became of a request or a response that was under way.
impl From<hyper::Error> for NetError {
    fn from(error: hyper::Error) -> Self {
        let (kind, text): (_, Cow<'static, str>) = match () {
            () if error.is_parse_too_large() => (
                Kind::TooLarge,
                "the headers of the response are larger than the limit `header_bytes`".into(),
            ),
            () if error.is_parse() => {
                (Kind::NotHttp, format!("what answers is not HTTP: {}", root(&error)).into())
            }
            () if error.is_timeout() => (Kind::Timeout, "the connection does not answer any more".into()),
            () if error.is_incomplete_message() => {
                (Kind::Closed, "the server closed the connection before its response was complete".into())
            }
            () => (Kind::Closed, root(&error).into()),
        };
        Self { kind, text, sent: true }
    }
}

/// The innermost cause, which is the one that says something.
pub(super) fn root(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// What kind of failure an error of the system is, when a connection is made.
pub(super) fn connecting(error: &io::Error) -> Kind {
    match error.kind() {
        io::ErrorKind::TimedOut => Kind::Timeout,
        _ => Kind::Refused,
    }
}

/// A time as people say it: seconds with as many digits as matter.
pub(crate) struct Shown(pub(crate) Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        match milliseconds {
            0..1000 => write!(f, "{milliseconds} ms"),
            _ if milliseconds.is_multiple_of(1000) => write!(f, "{} s", milliseconds / 1000),
            _ => write!(f, "{:.1} s", self.0.as_secs_f64()),
        }
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for NetError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_people_say_them() {
        for (time, shown) in
            [(0, "0 ms"), (250, "250 ms"), (1000, "1 s"), (10_025, "10.0 s"), (90_000, "90 s")]
        {
            assert_eq!(Shown(Duration::from_millis(time)).to_string(), shown);
        }
    }
}
