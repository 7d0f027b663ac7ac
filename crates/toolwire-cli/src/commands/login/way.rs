//! How the person is asked: in a browser, with another device, or by pasting.

use std::io::BufRead as _;

use inquire::{Confirm, InquireError, Select};
use owo_colors::OwoColorize;
use serde_json::json;
use toolwire::auth::{
    Endpoint,
    client::{
        device::DeviceCode,
        login::{Browser, Device, PasteBack, Person},
    },
};

use crate::{
    ask,
    failure::{Code, Failure, Result},
    redact,
    terminal::{Terminal, printable_line},
};

/// One way to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Browser,
    Device,
    Paste,
}

impl Way {
    /// The ways to try, the first one first: as the command line says, else a browser if one can be seen, else whatever
    /// needs none.
    pub(super) fn choose(device: bool, paste: bool, is_set: impl Fn(&str) -> bool) -> Vec<Self> {
        if device {
            return vec![Self::Device];
        }
        if paste {
            return vec![Self::Paste];
        }
        // Whoever names a browser has one.
        let far = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
        let blind =
            cfg!(all(unix, not(target_os = "macos"))) && !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY");
        if is_set("BROWSER") || !(far || blind) {
            vec![Self::Browser]
        } else {
            vec![Self::Device, Self::Paste]
        }
    }

    /// The ways to try, as [`choose`](Self::choose) has them. Where there are several, the user decides which, if there is a
    /// terminal to ask on: a code that is confirmed elsewhere is easily one of somebody else.
    pub(super) async fn chosen(ways: Vec<Self>, terminal: Terminal) -> Result<Vec<Self>> {
        const PASTE: &str = "in a browser of another machine, and paste the address that it ends up at";
        const DEVICE: &str = "with a code, on another device";
        if ways.len() < 2 || !terminal.can_ask() {
            return Ok(ways);
        }
        let ask =
            || Select::new("How do you want to log in?", vec![PASTE, DEVICE]).without_help_message().prompt();
        match ask::in_terminal(ask).await {
            Ok(DEVICE) => Ok(vec![Self::Device]),
            Ok(_) => Ok(vec![Self::Paste]),
            Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => {
                Err(Failure::new(Code::Interrupted, "interrupted; nobody was asked to log in"))
            }
            Err(error) => Err(Failure::new(Code::Io, format!("the answer could not be read: {error}"))),
        }
    }

    /// What asks the person.
    pub(super) fn person(self, redirect: Option<&str>, terminal: Terminal) -> Person {
        match self {
            Self::Browser => {
                let browser = Browser::loopback().show(move |url| page(url.as_str(), terminal));
                match redirect {
                    Some(redirect) => browser.redirects([redirect]).into(),
                    None => browser.into(),
                }
            }
            Self::Device => {
                let device = Device::new(move |code| show(code, terminal));
                device.confirm(move |code| confirmed(code, terminal)).into()
            }
            Self::Paste => PasteBack::new(move |url| paste(url, terminal)).into(),
        }
    }
}

fn page(url: &str, terminal: Terminal) {
    if terminal.json {
        return terminal.note_json(&json!({ "open": url }));
    }
    terminal.note("Log in with the browser. If none opens, visit this page on this machine:");
    terminal.note(format!("  {}", printable_line(url).cyan()));
}

fn show(code: &DeviceCode, terminal: Terminal) {
    let page = code.verification_uri.as_str();
    let (issuer, server) = (code.issuer.as_str(), redact::address_of(code.server.as_str()));
    if terminal.json {
        let whole = code.verification_uri_complete.as_ref().map(Endpoint::as_str);
        return terminal.note_json(&json!({ "device": {
            "page": page, "code": code.user_code, "whole": whole,
            "issuer": issuer, "server": server, "otherSite": code.is_on_another_site(),
        } }));
    }
    terminal.note(format!(
        "{}, the issuer for {}, asks you to confirm this login:",
        printable_line(issuer).bold(),
        printable_line(&server).bold()
    ));
    terminal.note(
        "Visit this page on any device, and type the code there, if you trust that issuer and that server:",
    );
    terminal.note(format!("  page: {}", printable_line(page).cyan()));
    terminal.note(format!("  code: {}", printable_line(&code.user_code).bold()));
    terminal.note("Waiting until that is done …");
}

/// Warns of a page that is not the issuer's, and asks about it if somebody is there to answer.
async fn confirmed(code: DeviceCode, terminal: Terminal) -> bool {
    let page =
        code.page_on_another_site().unwrap_or(&code.verification_uri).url().host_str().unwrap_or_default();
    terminal.warn(format!(
        "the page to confirm at is on {}, which is another site than that of the issuer {}. Some providers do so. But \
         whoever runs that issuer may also be passing on a code of their own, and gets the account you confirm with",
        printable_line(page),
        printable_line(code.issuer.as_str())
    ));
    if !terminal.can_ask() {
        return true;
    }
    let asked = ask::in_terminal(|| Confirm::new("Go on?").with_default(false).prompt());
    asked.await.unwrap_or(false)
}

async fn paste(url: String, terminal: Terminal) -> Option<String> {
    if terminal.json {
        terminal.note_json(&json!({ "open": url, "paste": true }));
    } else {
        terminal.note("Visit this page in any browser, and log in:");
        terminal.note(format!("  {}", printable_line(&url).cyan()));
        terminal.note("It ends at an address of 127.0.0.1 that shows nothing. Paste that address here:");
    }
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.ok().filter(|count| *count > 0).map(|_| line.trim().to_owned())
    });
    read.await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_only_where_it_can_be_seen() {
        let chosen = |set: &'static [&str]| Way::choose(false, false, move |name| set.contains(&name));
        assert_eq!(chosen(&["DISPLAY"]), [Way::Browser]);
        assert_eq!(chosen(&["DISPLAY", "SSH_CONNECTION"]), [Way::Device, Way::Paste]);
        assert_eq!(chosen(&["SSH_TTY", "BROWSER"]), [Way::Browser]);
        if cfg!(target_os = "linux") {
            assert_eq!(chosen(&[]), [Way::Device, Way::Paste]);
        }
        assert_eq!(Way::choose(true, false, |_| true), [Way::Device]);
        assert_eq!(Way::choose(false, true, |_| true), [Way::Paste]);
    }
}
