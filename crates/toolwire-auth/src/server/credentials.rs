//! The token of a request, taken out of its head.

use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};

use toolwire_server::CallerKey;

use super::verify::{PresentedToken, Scheme};

/// How long a token may be, in bytes. Those that carry groups are long.
pub(super) const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// How long a proof may be, in bytes.
const MAX_PROOF_BYTES: usize = 8 * 1024;

const DPOP: HeaderName = HeaderName::from_static("dpop");

/// What a request proves itself with.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    /// What is said in `Authorization`, whatever it is.
    pub(super) authorization: Option<HeaderValue>,
    pub(super) proof: Option<HeaderValue>,
}

/// Why a request is not understood: two readers could take it for different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// Takes the credentials out of a request, so that nobody finds them there afterwards. What is refused is taken out
/// as well.
pub(super) fn take(parts: &mut Parts) -> Result<Credentials, Malformed> {
    let authorization = take_one(&mut parts.headers, &header::AUTHORIZATION);
    let proof = take_one(&mut parts.headers, &DPOP);
    if parts.uri.query().is_some_and(names_a_token) {
        return Err(Malformed("a token must not be part of the URL"));
    }
    let authorization = authorization.map_err(|Repeated| Malformed("Authorization is duplicated"))?;
    let proof = proof.map_err(|Repeated| Malformed("DPoP is duplicated"))?;
    if proof.as_ref().is_some_and(|proof| proof.len() > MAX_PROOF_BYTES) {
        return Err(Malformed("the proof is too long"));
    }
    Ok(Credentials { authorization, proof })
}

struct Repeated;

fn take_one(headers: &mut HeaderMap, name: &HeaderName) -> Result<Option<HeaderValue>, Repeated> {
    let repeated = match headers.get_all(name).iter().take(2).count() {
        0 => return Ok(None),
        count => count > 1,
    };
    let first = headers.remove(name);
    if repeated { Err(Repeated) } else { Ok(first) }
}

/// Whether a query has a token in it (RFC 6750, 2.3, which nobody may use any more). Its value is not looked at.
fn names_a_token(query: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "access_token")
}

/// The token of an `Authorization` header. Other schemes than those of OAuth say nothing to us.
pub(super) fn token(
    value: &HeaderValue,
    peer: Option<CallerKey>,
) -> Result<Option<PresentedToken>, Malformed> {
    let text = value.to_str().map_err(|_| Malformed("Authorization cannot be read"))?;
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    let scheme = if scheme.eq_ignore_ascii_case("bearer") {
        Scheme::Bearer
    } else if scheme.eq_ignore_ascii_case("dpop") {
        Scheme::Dpop
    } else {
        return Ok(None);
    };
    let token = rest.trim_start_matches(' ');
    if token.len() > MAX_TOKEN_BYTES {
        return Err(Malformed("the token is too long"));
    }
    if !is_token(token) {
        return Err(Malformed("the token has characters that no token has"));
    }
    Ok(Some(PresentedToken::from_peer(scheme, token, peer)))
}

/// `b64token` of RFC 6750. A comma is not in it, so two headers that a proxy has joined are refused.
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !body.is_empty() && body.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn take_from(
        uri: &str,
        headers: &[(&str, &str)],
    ) -> Result<(Option<PresentedToken>, Option<HeaderValue>), Malformed> {
        let mut parts = parts(uri, headers);
        let taken = take(&mut parts);
        assert!(!parts.headers.contains_key("authorization") && !parts.headers.contains_key("dpop"));
        let Credentials { authorization, proof } = taken?;
        Ok((authorization.as_ref().map(|value| token(value, None)).transpose()?.flatten(), proof))
    }

    #[test]
    fn a_token_is_taken_whatever_the_case_of_its_scheme() {
        for (header, scheme) in
            [("Bearer abc", Scheme::Bearer), ("bEARER   abc", Scheme::Bearer), ("dpop abc", Scheme::Dpop)]
        {
            let (token, proof) = take_from("/mcp", &[("authorization", header), ("dpop", "proof")]).unwrap();
            let token = token.unwrap();
            assert_eq!((token.expose(), token.scheme()), ("abc", scheme));
            assert_eq!(proof.unwrap(), "proof");
        }
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        let long = format!("Bearer {}", "x".repeat(MAX_TOKEN_BYTES + 1));
        for headers in [
            &[("authorization", "Bearer a"), ("authorization", "Bearer b")][..],
            &[("authorization", "Bearer a, Bearer b")],
            &[("authorization", "Bearer a,Bearer b")],
            &[("authorization", "Bearer a b")],
            &[("authorization", "Bearer")],
            &[("authorization", "Bearer ")],
            &[("authorization", "Bearer =")],
            &[("authorization", "Bearer a=b")],
            &[("authorization", "Bearer a\tb")],
            &[("authorization", &long)],
            &[("authorization", "DPoP a"), ("dpop", "x"), ("dpop", "y")],
        ] {
            assert!(take_from("/mcp", headers).is_err(), "{headers:?}");
        }
    }

    #[test]
    fn a_token_in_the_url_is_refused_and_a_cookie_is_no_token() {
        for uri in ["/mcp?access_token=abc", "/mcp?x=1&access_token", "/mcp?acc%65ss_token=abc"] {
            assert!(take_from(uri, &[]).is_err(), "{uri}");
            assert!(take_from(uri, &[("authorization", "Bearer abc")]).is_err(), "{uri}");
        }
        for (uri, headers) in [
            ("/mcp?session=access_token", &[][..]),
            ("/mcp", &[("cookie", "access_token=abc")]),
            ("/mcp", &[("authorization", "Basic YTpi")]),
        ] {
            assert!(take_from(uri, headers).unwrap().0.is_none(), "{uri}");
        }
    }
}
