//! Whether requests go through a proxy.

use url::Url;

use super::shown;

/// Whether the server is on this machine, where no proxy is asked.
fn is_local(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The proxy in the environment that requests to this address go through, without its credentials.
pub(crate) fn proxy(url: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let url = Url::parse(url).ok()?;
    if is_local(&url) {
        return None;
    }
    let both = |name: &str| variable(name).or_else(|| variable(&name.to_lowercase()));
    let host = url.host_str()?;
    let excepted = |pattern: &str| {
        let pattern = pattern.trim().trim_start_matches(['*', '.']);
        !pattern.is_empty() && (host == pattern || host.ends_with(&format!(".{pattern}")))
    };
    let exceptions = both("NO_PROXY").unwrap_or_default();
    if exceptions.trim() == "*" || exceptions.split(',').any(excepted) {
        return None;
    }
    let own = if url.scheme() == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    let named =
        |name: &str| both(name).filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value));
    let (name, value) = named(own).or_else(|| named("ALL_PROXY"))?;
    let address = Url::parse(&value).map_or_else(|_| "(no URL)".to_owned(), |url| shown(&url));
    Some(format!("{name}={address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_is_the_one_that_requests_go_through() {
        let environment = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let set =
            environment(&[("https_proxy", "http://user:secret@proxy:3128"), ("NO_PROXY", "a.com, .b.com")]);
        assert_eq!(proxy("https://x.com/mcp", set).as_deref(), Some("HTTPS_PROXY=http://proxy:3128/"));
        for direct in ["http://x.com", "https://a.com/mcp", "https://c.b.com/mcp", "https://127.0.0.1/"] {
            assert_eq!(proxy(direct, set), None, "{direct}");
        }
        assert_eq!(proxy("https://x.com", environment(&[])), None);
    }
}
