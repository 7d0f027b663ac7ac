//! No secret is in any log, error, panic, answer or `Debug`: everything that is shown is searched for marked bytes.
//!
//! The real guard and the real client, over TLS and HTTP/2 as well, in every way that a login goes and fails, with an
//! issuer that repeats what it is sent.

#![expect(clippy::unwrap_used, reason = "tests")]

mod guard;
mod issuer;
mod login;
mod marks;
mod recorder;
mod robots;
mod values;

use issuer::Issuer;

/// One test, since it listens to everything that the process has to say.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_anything_that_is_shown() {
    recorder::listen();
    let issuer = Issuer::start().await;
    let mut seen = String::new();
    values::show_themselves();
    clean("values", &mut seen);
    login::over_tls_bound_to_a_key(&issuer).await;
    clean("a login", &mut seen);
    login::that_fails(&issuer).await;
    clean("logins that fail", &mut seen);
    login::renewals_that_fail(&issuer).await;
    clean("renewals that fail", &mut seen);
    login::by_other_ways(&issuer).await;
    clean("other ways to log in", &mut seen);
    login::that_panics(&issuer).await;
    clean("applications that panic", &mut seen);
    login::kept_in_broken_files(&issuer).await;
    clean("broken files", &mut seen);
    robots::ask_for_themselves(&issuer).await;
    clean("robots", &mut seen);
    guard::refuses(&issuer).await;
    clean("the guard", &mut seen);
    guard::exchanges(&issuer).await;
    clean("exchanges", &mut seen);
    // Everything was listened to, and there was something to be found.
    for part in ["toolwire_auth::", "toolwire_http::", "h2::", "rustls::", "PANIC", "ERROR", "DEBUG"] {
        assert!(seen.contains(part), "nothing of {part} was seen");
    }
    assert!(marks::learned() > 20, "{}", marks::learned());
}

/// Searches what was shown so far.
fn clean(what: &str, seen: &mut String) {
    let shown = recorder::take();
    if let Some(found) = marks::leaked(&shown) {
        panic!("{what} show a secret: {found}");
    }
    seen.push_str(&shown);
}
