//! A browser on this machine, and a listener that it comes back to.

use std::{
    collections::HashMap,
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::time::timeout;

use super::{
    super::{
        AuthError, AuthErrorKind, Step,
        authorize::{AuthorizationUrl, Callback},
        flow::Redirects,
    },
    Declined, LOGIN_TIMEOUT, LOOPBACK_PORTS, Login, listener, loopback,
};
use crate::fetch::BoxFuture;

/// Opens the browser of the system, or what `$BROWSER` names, and listens on this machine for the answer.
#[derive(Clone)]
pub struct Browser {
    /// Redirects of a client that was registered by hand.
    own: Option<Vec<String>>,
    show: Option<Show>,
    open: Open,
    /// Those that are bound, by their redirect.
    bound: Arc<Mutex<HashMap<String, Vec<TcpListener>>>>,
}

type Show = Arc<dyn Fn(&AuthorizationUrl) + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    System,
    Nothing,
}

impl Browser {
    /// Listens on one of the [`LOOPBACK_PORTS`].
    pub fn loopback() -> Self {
        Self { own: None, show: None, open: Open::System, bound: Arc::default() }
    }

    /// Listens where a client that was registered by hand, or by a document, wants the answer: at one of these
    /// redirects, which begin with `http://127.0.0.1`, `http://[::1]` or `http://localhost`. One without a port means
    /// any port.
    #[must_use]
    pub fn redirects<T: Into<String>>(mut self, redirects: impl IntoIterator<Item = T>) -> Self {
        self.own = Some(redirects.into_iter().map(Into::into).collect());
        self
    }

    /// Is called with the page before it is opened, to show it to people whose browser does not open by itself.
    #[must_use]
    pub fn show(mut self, show: impl Fn(&AuthorizationUrl) + Send + Sync + 'static) -> Self {
        self.show = Some(Arc::new(show));
        self
    }

    /// Opens no browser: [`show`](Self::show) is all there is.
    #[must_use]
    pub fn without_opening(mut self) -> Self {
        self.open = Open::Nothing;
        self
    }

    fn bind(&self) -> Option<(Redirects, Vec<TcpListener>)> {
        let Some(own) = &self.own else {
            let registered: Vec<String> = LOOPBACK_PORTS.into_iter().map(loopback).collect();
            return LOOPBACK_PORTS.into_iter().find_map(|port| {
                let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()?;
                Some((Redirects { registered: registered.clone(), used: loopback(port) }, vec![listener]))
            });
        };
        own.iter().find_map(|redirect| {
            let (used, listeners) = bind_own(redirect)?;
            Some((Redirects { registered: own.clone(), used }, listeners))
        })
    }

    fn take(&self, redirect: &str) -> Vec<TcpListener> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.remove(redirect).unwrap_or_default()
    }

    /// The listeners of a redirect, which stay bound until the login is over: one login may ask more than once, when the
    /// issuer wants the client to be registered anew.
    fn listeners(&self, redirect: &str) -> io::Result<Vec<tokio::net::TcpListener>> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let listeners = bound.get(redirect).into_iter().flatten();
        listeners.map(|listener| listener.try_clone().and_then(tokio::net::TcpListener::from_std)).collect()
    }

    async fn wait(&self, url: AuthorizationUrl) -> Result<Callback, Declined> {
        let failed = |error: io::Error| {
            Declined::new(format!("the answer of the browser cannot be received: {error}"))
        };
        let listeners = self.listeners(url.redirect()).map_err(failed)?;
        if let Some(show) = &self.show {
            show(&url);
        }
        if self.open == Open::System
            && let Err(error) = open(url.as_str())
            && self.show.is_none()
        {
            let text =
                format!("no browser could be started ({error}); log in by pasting, or with another device");
            return Err(Declined::new(text));
        }
        match timeout(LOGIN_TIMEOUT, listener::wait(listeners, url)).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(Declined::new("nobody has logged in within five minutes")),
        }
    }
}

/// Binds what a redirect names, in both families for `localhost`.
fn bind_own(redirect: &str) -> Option<(String, Vec<TcpListener>)> {
    let url = url::Url::parse(redirect).ok().filter(|url| url.scheme() == "http")?;
    let addresses: &[std::net::IpAddr] = match url.host_str()? {
        "127.0.0.1" => &[std::net::IpAddr::V4(Ipv4Addr::LOCALHOST)],
        "[::1]" => &[std::net::IpAddr::V6(Ipv6Addr::LOCALHOST)],
        "localhost" => {
            &[std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), std::net::IpAddr::V6(Ipv6Addr::LOCALHOST)]
        }
        _ => return None,
    };
    let mut port = url.port().unwrap_or(0);
    let mut listeners = Vec::new();
    for address in addresses {
        match listen(SocketAddr::from((*address, port))) {
            Ok(listener) => {
                port = listener.local_addr().ok()?.port();
                listeners.push(listener);
            }
            // A machine may have one family only.
            Err(_) if address.is_ipv6() && !listeners.is_empty() => {}
            Err(_) => return None,
        }
    }
    let used = if url.port().is_some() {
        redirect.to_owned()
    } else {
        let host = url.host_str()?;
        redirect.replacen(host, &format!("{host}:{port}"), 1)
    };
    Some((used, listeners))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Opens a page of the web, with what `$BROWSER` names or what the system has: as one argument, by no shell.
///
/// # Errors
/// When it is not a page of the web, or no browser can be started.
pub fn open(url: &str) -> io::Result<()> {
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return Err(io::Error::other("it is not a page of the web"));
    }
    if let Some(named) = std::env::var_os("BROWSER").filter(|named| !named.is_empty()) {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for program in std::env::split_paths(&named) {
            match start(Command::new(program).arg(url)) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
        return Err(last);
    }
    if cfg!(windows) {
        start(Command::new("rundll32").arg("url.dll,FileProtocolHandler").arg(url))
    } else if cfg!(target_os = "macos") {
        start(Command::new("open").arg(url))
    } else {
        start(Command::new("xdg-open").arg(url))
    }
}

fn start(command: &mut Command) -> io::Result<()> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    reap(child);
    Ok(())
}

/// Nobody else waits for it, and what is not waited for stays in the table of processes.
fn reap(mut child: Child) {
    std::thread::spawn(move || {
        let _ = child.wait();
    });
}

impl Login for Browser {
    fn prepare(&self) -> Result<Redirects, AuthError> {
        let (redirects, listeners) = self.bind().ok_or_else(|| {
            let detail = match &self.own {
                None => "none of the ports 17853 to 17856 is free for the answer of the browser; log in by pasting",
                Some(_) => "none of the redirects can be listened on; log in by pasting",
            };
            AuthError::new(AuthErrorKind::LoopbackBusy, Step::Authorization, detail)
        })?;
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.insert(redirects.used.clone(), listeners);
        Ok(redirects)
    }

    fn ask(&self, url: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>> {
        Box::pin(self.wait(url))
    }

    fn done(&self, redirects: &Redirects) {
        drop(self.take(&redirects.used));
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser").field("redirects", &self.own).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_web_are_opened() {
        for url in ["javascript:alert(1)", "file:///etc/passwd", "-flag", "", "ftp://x"] {
            assert!(open(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_redirect_without_a_port_means_any_and_other_hosts_are_never_listened_on() {
        let browser = Browser::loopback().redirects(["http://127.0.0.1/back"]);
        let redirects = browser.prepare().unwrap();
        let port =
            redirects.used.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/back"));
        assert_ne!(port.unwrap().parse::<u16>().unwrap(), 0);
        assert_eq!(redirects.registered, ["http://127.0.0.1/back"]);
        browser.done(&redirects);
        for redirect in ["http://0.0.0.0/back", "https://127.0.0.1/back", "http://evil.example/", "x"] {
            let error = Browser::loopback().redirects([redirect]).prepare().unwrap_err();
            assert_eq!(error.kind, AuthErrorKind::LoopbackBusy, "{redirect}");
        }
    }

    #[test]
    fn a_port_is_given_back_when_the_login_ends() {
        // Reserves a port: listeners can share it with a socket that does not listen.
        let reserved = tokio::net::TcpSocket::new_v4().unwrap();
        reserved.set_reuseaddr(true).unwrap();
        reserved.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let redirect = format!("http://127.0.0.1:{}/back", reserved.local_addr().unwrap().port());
        let browser = Browser::loopback().redirects([redirect.clone()]);
        let redirects = browser.prepare().unwrap();
        assert!(browser.prepare().is_err());
        browser.done(&redirects);
        assert_eq!(browser.prepare().unwrap().used, redirect);
    }

    #[tokio::test]
    async fn a_login_can_ask_twice() {
        let browser = Browser::loopback().redirects(["http://127.0.0.1/back"]);
        let redirects = browser.prepare().unwrap();
        for _ in 0..2 {
            let listeners = browser.listeners(&redirects.used).unwrap();
            let address = listeners[0].local_addr().unwrap();
            let (came, _) = tokio::join!(listeners[0].accept(), tokio::net::TcpStream::connect(address));
            came.unwrap();
        }
        browser.done(&redirects);
        assert!(browser.listeners(&redirects.used).unwrap().is_empty());
    }
}
