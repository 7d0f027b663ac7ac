//! A page that a server wants somebody to visit. It is opened only when that is agreed to.

use inquire::{InquireError, Select};
use owo_colors::OwoColorize;
use serde_json::Map;
use toolwire::auth::client::login::open_browser;

use super::{Reply, form::heading};
use crate::terminal::{Terminal, printable_line};

const OPEN: &str = "Open it in the browser";
const MYSELF: &str = "I will open it myself";
const DECLINE: &str = "Decline";
const CANCEL: &str = "Cancel";

/// The page.
pub(super) struct Page {
    terminal: Terminal,
    server: String,
    message: String,
    url: String,
}

impl Page {
    pub(super) fn new(terminal: Terminal, server: &str, message: &str, url: &str) -> Self {
        Self { terminal, server: server.to_owned(), message: message.to_owned(), url: url.to_owned() }
    }

    /// Shows where it leads, and asks what to do.
    pub(super) fn ask(self) -> Result<Reply, InquireError> {
        heading(self.terminal, &self.server, &self.message);
        let host = host(&self.url);
        self.terminal.note(format!("  {}  {}", "url:".dimmed(), printable_line(&self.url)));
        self.terminal.note(format!(
            "  {} {}",
            "host:".dimmed(),
            printable_line(host.unwrap_or("none")).bold()
        ));
        if let Some(warning) = warning(&self.url) {
            self.terminal.warn(warning);
        }
        let mut choices = vec![MYSELF, DECLINE, CANCEL];
        if host.is_some() {
            choices.insert(0, OPEN);
        }
        let chosen = Select::new("Visit this page?", choices).without_help_message().prompt()?;
        match chosen {
            OPEN => {
                if let Err(error) = open_browser(&self.url) {
                    self.terminal
                        .warn(format!("no browser could be started ({error}); please open it yourself"));
                }
                Ok(Reply::Accept(Map::new()))
            }
            MYSELF => Ok(Reply::Accept(Map::new())),
            DECLINE => Ok(Reply::Decline),
            _ => Ok(Reply::Cancel),
        }
    }
}

fn authority(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    (web && !authority.is_empty()).then_some(authority)
}

/// The host of a page on the web; anything else is not opened.
fn host(url: &str) -> Option<&str> {
    let host = authority(url)?.rsplit('@').next()?;
    (!host.is_empty() && !url.contains(|c: char| c.is_whitespace() || c.is_control())).then_some(host)
}

/// What may be wrong with the address.
fn warning(url: &str) -> Option<&'static str> {
    let Some(authority) = authority(url) else {
        return Some("this is not a page on the web, so it is not opened for you");
    };
    if authority.contains('@') {
        return Some("what stands before the @ is not where it leads");
    }
    if authority.contains("xn--") || !authority.is_ascii() {
        return Some("the host has letters that may only look familiar");
    }
    let is_local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| authority.starts_with(local));
    (!is_local && url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http:")))
        .then_some("the page is not encrypted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_on_the_web_have_a_host() {
        assert_eq!(host("https://example.com/x?y#z"), Some("example.com"));
        assert_eq!(host("https://good.example@evil.example/"), Some("evil.example"));
        assert_eq!(host("https://evil.example\\@good.example/"), Some("evil.example"));
        for other in
            ["file:///etc/passwd", "javascript:alert(1)", "https://", "https://a b", "-x", "mailto:a@b"]
        {
            assert_eq!(host(other), None, "{other}");
        }
    }

    #[test]
    fn suspicious_addresses_are_warned_of() {
        for url in ["https://a@b", "https://xn--e1a.example", "http://example.com", "ftp://x"] {
            assert!(warning(url).is_some(), "{url}");
        }
        for url in ["https://example.com", "http://localhost:3000"] {
            assert_eq!(warning(url), None, "{url}");
        }
    }
}
