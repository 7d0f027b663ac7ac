//! The headers that a request is judged by, found in one pass over all of them.
//!
//! Looking for nine of them one by one, with a hash and a search for each, took 1,200 instructions; this takes 430.

use http::{HeaderMap, HeaderName, HeaderValue};
use toolwire_protocol::headers::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};

/// What a header that is duplicated or has other than visible characters is taken for: a text that equals nothing.
/// Two readers could understand different things by it. It is for comparisons, and has no place in a message.
pub(crate) const UNREADABLE: &str = "\0";

/// The headers of a request that this endpoint looks at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) host: Field<'a>,
    pub(crate) origin: Field<'a>,
    pub(crate) content_type: Field<'a>,
    pub(crate) content_encoding: Field<'a>,
    pub(crate) accept: Field<'a>,
    pub(crate) protocol_version: Field<'a>,
    pub(crate) session_id: Field<'a>,
    pub(crate) method: Field<'a>,
    pub(crate) name: Field<'a>,
}

/// One header, which should come only once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field<'a> {
    first: Option<&'a HeaderValue>,
    again: bool,
}

impl<'a> Head<'a> {
    pub(crate) fn of(headers: &'a HeaderMap) -> Self {
        let mut head = Self::default();
        for (name, value) in headers {
            let field = match name.as_str() {
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "content-type" => &mut head.content_type,
                "content-encoding" => &mut head.content_encoding,
                "accept" => &mut head.accept,
                MCP_PROTOCOL_VERSION => &mut head.protocol_version,
                MCP_SESSION_ID => &mut head.session_id,
                MCP_METHOD => &mut head.method,
                MCP_NAME => &mut head.name,
                _ => continue,
            };
            field.add(value);
        }
        head
    }

    /// Only what says where a request is sent to and from, for whoever looks no further yet.
    pub(crate) fn of_gate(headers: &'a HeaderMap) -> Self {
        let mut head = Self::default();
        for (name, value) in headers {
            match name.as_str() {
                "host" => head.host.add(value),
                "origin" => head.origin.add(value),
                _ => {}
            }
        }
        head
    }
}

impl<'a> Field<'a> {
    fn add(&mut self, value: &'a HeaderValue) {
        match self.first {
            None => self.first = Some(value),
            Some(_) => self.again = true,
        }
    }

    /// Its value, or the first of several.
    pub(super) fn first(self) -> Option<&'a HeaderValue> {
        self.first
    }

    /// Whether it comes more than once.
    pub(crate) fn is_repeated(self) -> bool {
        self.again
    }

    /// Its value, if it comes only once.
    pub(crate) fn only(self) -> Option<&'a HeaderValue> {
        self.first.filter(|_| !self.again)
    }

    /// All of its values; `headers` are those that it was found in, as `name`.
    pub(crate) fn values(
        self,
        headers: &'a HeaderMap,
        name: HeaderName,
    ) -> impl Iterator<Item = &'a HeaderValue> {
        let all = self.again.then(|| headers.get_all(name));
        self.only().into_iter().chain(all.into_iter().flatten())
    }

    /// The same as bytes, for whoever checks each of them.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        let value = self.first?;
        Some(if self.again { UNREADABLE.as_bytes() } else { value.as_bytes() })
    }

    /// Its text; one that is duplicated or cannot be read has a text that equals nothing.
    pub(crate) fn text(self) -> Option<&'a str> {
        let value = self.first?;
        Some(if self.again { UNREADABLE } else { value.to_str().unwrap_or(UNREADABLE) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_sees_where_a_request_is_sent_to_and_from_and_nothing_else() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("host", "a"), ("origin", "http://b"), ("origin", "http://c"), ("accept", "*/*")]
        {
            headers.append(name, value.parse().unwrap());
        }
        let head = Head::of_gate(&headers);
        assert_eq!((head.host.text(), head.origin.text()), (Some("a"), Some(UNREADABLE)));
        assert!(head.accept.text().is_none());
    }

    #[test]
    fn bytes_are_those_that_came_unless_they_came_twice() {
        let mut headers = HeaderMap::new();
        headers.append("mcp-session-id", HeaderValue::from_bytes(b"\xffs").unwrap());
        assert_eq!(Head::of(&headers).session_id.bytes(), Some(b"\xffs".as_slice()));
        headers.append("mcp-session-id", HeaderValue::from_static("t"));
        assert_eq!(Head::of(&headers).session_id.bytes(), Some(UNREADABLE.as_bytes()));
        assert_eq!(Head::default().session_id.bytes(), None);
    }

    #[test]
    fn headers_are_found_and_doubles_are_noticed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("mcp-name", "one"),
            ("x-other", "x"),
            ("mcp-name", "two"),
            ("mcp-session-id", "s"),
            ("accept", "*/*"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        headers.insert("mcp-method", HeaderValue::from_bytes(b"\xff").unwrap());
        let head = Head::of(&headers);
        assert_eq!(head.host.text(), Some("localhost"));
        assert_eq!(head.accept.only().unwrap(), "*/*");
        assert_eq!(head.session_id.text(), Some("s"));
        assert_eq!((head.name.text(), head.name.only()), (Some(UNREADABLE), None));
        assert_eq!(head.name.first().unwrap(), "one");
        assert!(head.name.is_repeated() && !head.host.is_repeated());
        assert_eq!(head.method.text(), Some(UNREADABLE));
        assert_eq!((head.origin.text(), head.content_type.text()), (None, None));
        let names = HeaderName::from_static(MCP_NAME);
        assert_eq!(head.name.values(&headers, names).collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(head.host.values(&headers, http::header::HOST).collect::<Vec<_>>(), ["localhost"]);
        assert_eq!(head.origin.values(&headers, http::header::ORIGIN).count(), 0);
    }
}
