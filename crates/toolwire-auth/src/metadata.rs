//! Metadata of issuers, for both sides: where they may be, and how they are read.

use serde_json::{Map, Value};
use toolwire_protocol::RawJson;

use crate::{Endpoint, InvalidText, Issuer, Origins};

/// The largest metadata that are read.
#[cfg_attr(not(feature = "client"), expect(unreachable_pub, reason = "clients say it in an error"))]
pub const MAX_METADATA_BYTES: usize = 256 * 1024;

const OAUTH: &str = "oauth-authorization-server";
const OPENID: &str = "openid-configuration";

/// A JSON object in which no name is duplicated, at any depth: two readers of it agree.
pub(crate) fn object(body: &[u8]) -> Option<Map<String, Value>> {
    if body.len() > MAX_METADATA_BYTES {
        return None;
    }
    RawJson::parse(std::str::from_utf8(body).ok()?).ok()?.decode().ok()
}

/// Where the metadata of an issuer may be, in the order in which they are looked for (RFC 8414, and OpenID Connect). The
/// root of an issuer with a path is another issuer's, and never among them.
pub(crate) fn places(issuer: &Issuer, trusted: &Origins) -> Result<Vec<Endpoint>, InvalidText> {
    let base = Endpoint::parse_trusting(issuer.as_str(), trusted)?;
    let path = base.url().path();
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut places: Vec<Endpoint> = [OAUTH, OPENID].map(|name| well_known(&base, name, path, None)).into();
    if !path.is_empty() {
        places.push(base.with_path(&format!("{path}/.well-known/{OPENID}"), None));
    }
    Ok(places)
}

/// The place of metadata: a well-known name before the path of what they describe.
pub(crate) fn well_known(base: &Endpoint, name: &str, path: &str, query: Option<&str>) -> Endpoint {
    base.with_path(&format!("/.well-known/{name}{path}"), query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_looked_for_in_the_order_of_the_specification() {
        let places = |text: &str| -> Vec<String> {
            let places = places(&Issuer::parse(text).unwrap(), &Origins::none()).unwrap();
            places.iter().map(|place| place.as_str().to_owned()).collect()
        };
        for root in ["https://a.example", "https://a.example/"] {
            assert_eq!(
                places(root),
                [
                    "https://a.example/.well-known/oauth-authorization-server",
                    "https://a.example/.well-known/openid-configuration"
                ]
            );
        }
        for path in ["https://a.example:8443/t/1", "https://a.example:8443/t/1/"] {
            assert_eq!(
                places(path),
                [
                    "https://a.example:8443/.well-known/oauth-authorization-server/t/1",
                    "https://a.example:8443/.well-known/openid-configuration/t/1",
                    "https://a.example:8443/t/1/.well-known/openid-configuration"
                ]
            );
        }
        assert!(super::places(&Issuer::parse("http://a.example").unwrap(), &Origins::none()).is_err());
    }
}
