//! Real servers for the tests of stores: from Debian's packages, on free ports of the loopback address, with their data
//! below the target folder.
//!
//! Each server is started anew with an empty folder and a password of its own, and is ended when it is dropped,
//! also when a test has failed. Servers that run on this machine already are neither used nor touched.

mod postgres;
mod redis;

use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::debian::Package;
use crate::output::hex;
use crate::process::{Background, Program};
use crate::steps::Stop;
use crate::workspace::{Workspace, root};

pub(crate) use postgres::Postgres;
pub(crate) use redis::Redis;

pub(crate) const PACKAGES: [Package; 2] = [redis::PACKAGE, postgres::PACKAGE];

/// How long a server may take until it answers. On a busy machine with a slow disk it takes some seconds.
const START_LIMIT: Duration = Duration::from_mins(1);

/// Programs that only ask, or tell a version.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// How often it is asked.
const POLL: Duration = Duration::from_millis(50);

/// Somebody else may take the free port before the server does.
const TRIES: usize = 3;

/// How much of a server's log is shown when it does not start.
const SHOWN_LINES: usize = 15;

/// Starts a server on a free port, and on another one if that was taken meanwhile.
fn on_free_port<T>(start: impl Fn(u16) -> Result<T, Stop>) -> Result<T, Stop> {
    let mut tried = 1;
    loop {
        match start(free_port()?) {
            Err(Stop::Failed(_)) if tried < TRIES => tried += 1,
            done => return done,
        }
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// An empty folder for the data of a server, which is taken away with it.
#[derive(Debug)]
struct Place {
    path: PathBuf,
}

impl Place {
    fn new(name: &str, port: u16) -> Result<Self, String> {
        let path = Workspace::read(&root())?.target.join("services").join(format!("{name}-{port}"));
        let place = Self { path };
        place.clear();
        fs::create_dir_all(&place.path).map_err(|error| format!("{}: {error}", place.path.display()))?;
        Ok(place)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that only its owner may read.
    fn write_secret(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        use std::io::Write;
        let path = self.file(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A log that the server writes to from its first word on.
    fn log(&self) -> Result<File, String> {
        let path = self.file("log");
        let log = File::options().create(true).append(true).open(&path);
        log.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn last_words(&self) -> String {
        let text = fs::read(self.file("log")).unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&text), SHOWN_LINES)
    }

    fn clear(&self) {
        // What cannot be deleted is below the target folder, and is tried again when its port comes up again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Asks until there is an answer, as long as the server lives.
fn wait_until_ready(
    name: &str,
    place: &Place,
    server: &mut Background,
    is_ready: impl Fn() -> bool,
) -> Result<(), String> {
    let deadline = Instant::now() + START_LIMIT;
    while !is_ready() {
        let words = || format!("its last words:\n{}", place.last_words());
        if let Some(status) = server.ended()? {
            return Err(format!("{name} ended with {status} before it was ready; {}", words()));
        }
        if Instant::now() >= deadline {
            return Err(format!("{name} gave no answer within {START_LIMIT:?}; {}", words()));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// What a server says about its version.
fn version(program: &Path) -> Result<String, String> {
    let said = Program::new(program, ANSWER_LIMIT).args(["--version"]).successful_output()?;
    Ok(said.trim().to_owned())
}

/// A password that nobody else on this machine knows.
fn password() -> Result<String, String> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| format!("/dev/urandom: {error}"))?;
    Ok(hex(&bytes))
}

/// The user of this process; root may not run every server.
fn is_root() -> bool {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::uid(&match fs::metadata("/proc/self") {
            Ok(metadata) => metadata,
            Err(_) => return false,
        }) == 0
    }
    #[cfg(not(unix))]
    {
        false
    }
}

/// Whether a path can be reached by everybody, from the root of the file system on.
fn is_open_to_all(path: &Path) -> bool {
    #[cfg(unix)]
    {
        let mode = |path: &Path| {
            fs::metadata(path)
                .map(|metadata| std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()))
        };
        path.ancestors().all(|folder| mode(folder).is_ok_and(|mode| mode & 0o001 != 0))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_taken_meanwhile_is_given_up_for_another() {
        let ports = std::cell::RefCell::new(Vec::new());
        let started = on_free_port(|port| {
            ports.borrow_mut().push(port);
            if ports.borrow().len() < TRIES { Err("taken".into()) } else { Ok(port) }
        });
        assert_eq!(started.ok(), ports.borrow().last().copied());
        let failed: Result<(), Stop> = on_free_port(|_| Err("taken".into()));
        assert_eq!(failed, Err("taken".into()));
        let skipped: Result<(), Stop> = on_free_port(|_| Err(Stop::skipped("not here")));
        assert_eq!(skipped, Err(Stop::skipped("not here")));
    }

    #[test]
    fn passwords_differ_and_need_no_escapes() {
        let (one, two) = (password().unwrap(), password().unwrap());
        assert_ne!(one, two);
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    }

    #[test]
    fn the_last_lines_of_a_log_are_shown() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_goes_with_its_server_and_secrets_are_for_their_owner() {
        let place = Place::new("test", free_port().unwrap()).unwrap();
        let path = place.path.clone();
        let secret = place.write_secret("secret", "x").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(secret).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        drop(place);
        assert!(!path.exists());
    }
}
