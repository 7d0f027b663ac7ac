//! A person with a browser: this very test program, which goes where it is sent and agrees to everything.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use crate::program::write_executable;

const PAGE: &str = "TOOLWIRE_TEST_PAGE";

/// Writes a script that is a browser.
pub(crate) fn browser(folder: &Path) -> String {
    let script = folder.join("browser");
    let program = std::env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\n{PAGE}=\"$1\" exec '{}' --exact auth::person::goes_where_it_is_sent\n",
        program.display()
    );
    write_executable(&script, &text);
    script.display().to_string()
}

/// The browser itself, when it is started by the script; nothing otherwise.
#[test]
fn goes_where_it_is_sent() {
    if let Ok(page) = std::env::var(PAGE) {
        let back = answer(&page);
        assert!(get(&back).starts_with("HTTP/1.1 200"));
    }
}

/// Where the issuer sends a browser that visits this page.
pub(crate) fn answer(page: &str) -> String {
    let head = get(page);
    let location = head
        .lines()
        .find_map(|line| line.to_lowercase().starts_with("location: ").then(|| line[10..].to_owned()));
    location.unwrap_or_else(|| panic!("{page}: {head}"))
}

fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    // What is not on this machine is behind a proxy.
    let proxy = std::env::var("http_proxy").ok().filter(|_| !host.starts_with("127."));
    let (to, target) = match &proxy {
        Some(proxy) => (proxy.strip_prefix("http://").unwrap(), url.to_owned()),
        None => (host, format!("/{path}")),
    };
    let mut stream = TcpStream::connect(to).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
