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
        register::by_address,
    },
    Declined, LOGIN_TIMEOUT, LOOPBACK_PORTS, Login, listener, loopback_redirects,
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

/// The most ports that are tried for a redirect with any port.
const MAX_PORTS: usize = 8;

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
            return LOOPBACK_PORTS.into_iter().find_map(|port| {
                let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()?;
                Some((loopback_redirects(port), vec![listener]))
            });
        };
        own.iter().find_map(|redirect| {
            let (used, listeners) = bind_own(redirect)?;
            Some((Redirects::new(own.clone(), used), listeners))
        })
    }

    fn take(&self, redirect: &str) -> Vec<TcpListener> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.remove(redirect).unwrap_or_default()
    }

    /// The listeners of a redirect, which stay bound until the login is over: one login may ask more than once, when the
    /// issuer wants the client to be registered anew.
    ///
    /// The redirect may be below the one that is bound, and the twin by name of that. Browsers look up `localhost` themselves, and most try
    /// IPv6 first, so it is listened on as well.
    fn listeners(&self, redirect: &str) -> io::Result<Vec<tokio::net::TcpListener>> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |redirect: &str| bound.keys().find(|used| is_below(redirect, used)).cloned();
        let own = place(redirect);
        let twin = by_address(redirect).filter(|_| own.is_none()).and_then(|twin| place(&twin));
        let listeners = own
            .or_else(|| twin.clone())
            .and_then(|used| bound.get_mut(&used))
            .filter(|listeners| !listeners.is_empty())
            .ok_or_else(|| io::Error::other("the redirect is not one that is listened on"))?;
        if twin.is_some()
            && let [only] = &listeners[..]
        {
            let port = only.local_addr()?.port();
            listeners.extend(listen_on_ipv6(port)?);
        }
        listeners
            .iter()
            .map(|listener| listener.try_clone().and_then(tokio::net::TcpListener::from_std))
            .collect()
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

/// Returns whether a redirect is the one that is bound, or below its path.
fn is_below(redirect: &str, bound: &str) -> bool {
    redirect.strip_prefix(bound).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Binds what a redirect names, in both families for `localhost`.
fn bind_own(redirect: &str) -> Option<(String, Vec<TcpListener>)> {
    let url = url::Url::parse(redirect).ok().filter(|url| url.scheme() == "http")?;
    let host = url.host_str()?;
    let address: std::net::IpAddr = match host {
        "127.0.0.1" | "localhost" => Ipv4Addr::LOCALHOST.into(),
        "[::1]" => Ipv6Addr::LOCALHOST.into(),
        _ => return None,
    };
    // A port that is free in one family may be taken in the other.
    let tries = if url.port().is_some() { 1 } else { MAX_PORTS };
    let listeners = (0..tries).rev().find_map(|left| {
        let first = listen(SocketAddr::from((address, url.port().unwrap_or(0)))).ok()?;
        let port = first.local_addr().ok()?.port();
        // The twin by name may be needed later; a login without it goes on with a port that has none.
        if host == "127.0.0.1" && left > 0 && listen_on_ipv6(port).is_err() {
            return None;
        }
        let second = if host == "localhost" { listen_on_ipv6(port).ok()? } else { None };
        Some([first].into_iter().chain(second).collect::<Vec<_>>())
    })?;
    let port = listeners.first()?.local_addr().ok()?.port();
    let used = if url.port().is_some() {
        redirect.to_owned()
    } else {
        redirect.replacen(host, &format!("{host}:{port}"), 1)
    };
    Some((used, listeners))
}

/// Listens on the IPv6 address of this machine, if it has one. Another program that listens there would be given the
/// answer of the browser, so that is an error.
fn listen_on_ipv6(port: u16) -> io::Result<Option<TcpListener>> {
    match listen(SocketAddr::from((Ipv6Addr::LOCALHOST, port))) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if is_without_ipv6(&error) => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("port {port} of [::1] is not free: {error}"))),
    }
}

/// Returns whether a machine has no IPv6, or has it switched off.
fn is_without_ipv6(error: &io::Error) -> bool {
    #[cfg(unix)]
    let family = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    // WSAEAFNOSUPPORT
    #[cfg(not(unix))]
    let family = 10_047;
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported)
        || error.raw_os_error() == Some(family)
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
        assert!(browser.listeners(&redirects.used).is_err());
    }

    #[tokio::test]
    async fn an_answer_comes_to_the_place_of_an_issuer_below_what_is_listened_on_and_to_no_other() {
        let browser = Browser::loopback().redirects(["http://127.0.0.1/back"]).without_opening();
        let redirects = browser.prepare().unwrap();
        let place = format!("{}/issuer", redirects.used);
        let url = listener::tests::page(&place);
        let state =
            url.as_str().split(['?', '&']).find(|part| part.starts_with("state=")).unwrap().to_owned();
        let (place, used) = (place.as_str(), redirects.used.as_str());
        let go = async {
            let fetcher = toolwire_http::client::fetch::Fetcher::new().no_proxy();
            for elsewhere in [used.to_owned(), format!("{used}/other"), format!("{used}issuer")] {
                let target = format!("{elsewhere}?code=evil&{state}");
                fetcher.fetch(toolwire_http::client::fetch::Fetch::get(&target)).await.unwrap();
            }
            let target = format!("{place}?code=good&{state}");
            fetcher.fetch(toolwire_http::client::fetch::Fetch::get(&target)).await.unwrap();
        };
        let (callback, ()) = tokio::join!(browser.ask(url), go);
        assert_eq!(callback.unwrap(), Callback::from_query(&format!("code=good&{state}")).unwrap());
        for other in ["http://127.0.0.1:1/back/issuer", &format!("{used}issuer")] {
            assert!(browser.listeners(other).is_err(), "{other}");
        }
        let named = place.replacen("127.0.0.1", "localhost", 1);
        assert!(browser.listeners(&named).is_ok(), "the twin by name has the same places");
        browser.done(&redirects);
    }

    /// Takes a port of `[::1]` that is free on 127.0.0.1.
    fn taken_on_ipv6_alone() -> Option<TcpListener> {
        let twin_of_any = |_| {
            let free = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
            listen_on_ipv6(free.local_addr().unwrap().port()).ok()
        };
        (0..100).find_map(twin_of_any).expect("a port that is free in both families")
    }

    #[test]
    fn a_port_of_ipv6_that_another_program_has_is_refused() {
        // A machine without IPv6 has no such port.
        let Some(taken) = taken_on_ipv6_alone() else { return };
        let port = taken.local_addr().unwrap().port();
        let named = format!("http://localhost:{port}/back");
        let error = Browser::loopback().redirects([named]).prepare().unwrap_err();
        assert_eq!(error.kind, AuthErrorKind::LoopbackBusy);
        // The same where only the twin of the redirect leads there.
        let browser = Browser::loopback().redirects([format!("http://127.0.0.1:{port}/back")]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _guard = runtime.enter();
        let redirects = browser.prepare().unwrap();
        assert_eq!(browser.listeners(&redirects.used).unwrap().len(), 1);
        let error = browser.listeners(&format!("http://localhost:{port}/back")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn only_a_machine_without_ipv6_is_listened_on_in_one_family() {
        for kind in [io::ErrorKind::AddrInUse, io::ErrorKind::PermissionDenied, io::ErrorKind::Other] {
            assert!(!is_without_ipv6(&kind.into()), "{kind}");
        }
        assert!(is_without_ipv6(&io::ErrorKind::AddrNotAvailable.into()));
    }

    #[tokio::test]
    async fn no_page_is_shown_where_nobody_listens_for_its_answer() {
        let shown = Arc::new(Mutex::new(false));
        let showing = Arc::clone(&shown);
        let browser = Browser::loopback()
            .redirects(["http://127.0.0.1/back"])
            .without_opening()
            .show(move |_| *showing.lock().unwrap() = true);
        let redirects = browser.prepare().unwrap();
        let url = listener::tests::page("http://127.0.0.1:1/other");
        assert!(browser.ask(url).await.is_err() && !*shown.lock().unwrap());
        browser.done(&redirects);
    }
}
