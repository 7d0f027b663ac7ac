//! `postgresql`: its programs are outside the path and refuse root, so they are run as the package's own user.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{
    ANSWER_LIMIT, Place, is_open_to_all, is_root, on_free_port, password, version, wait_until_ready,
};
use crate::debian::Package;
use crate::process::{Background, Program};
use crate::steps::Stop;

/// Where Debian has one folder per version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The package of the server, found by the folder of its programs.
pub(super) const PACKAGE: Package = Package { name: "postgresql", find: || newest(Path::new(VERSIONS)) };

/// The user that the package makes.
const USER: &str = "postgres";

/// Making a cluster takes some seconds on a busy machine, ending one less.
const LIMIT: Duration = Duration::from_mins(2);

/// Only a program that is waited for has a limit, and nobody waits for the server.
const NEVER: Duration = Duration::MAX;

/// A server of Postgres; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Postgres {
    url: String,
    programs: PathBuf,
    // Fields are dropped in this order: nobody writes to the folder when it is deleted.
    _server: Background,
    place: Place,
}

impl Postgres {
    pub(crate) fn start() -> Result<Self, Stop> {
        let programs = PACKAGE.require()?;
        on_free_port(|port| {
            let place = Place::new("postgres", port)?;
            let password = password()?;
            make_cluster(&programs, &place, &password)?;
            let mut server = as_user(&programs, "postgres", NEVER)
                .args(["-D".as_ref(), place.file("data").as_os_str()])
                .args(settings(port).iter().flat_map(|setting| ["-c", setting]))
                .background(&place.log()?)?;
            wait_until_ready(USER, &place, &mut server, || answers(&programs, port))?;
            let url = format!("postgres://{USER}:{password}@127.0.0.1:{port}/postgres");
            Ok(Self { url, programs: programs.clone(), _server: server, place })
        })
    }

    /// Which version it is.
    pub(crate) fn version(&self) -> Result<String, String> {
        version(&self.programs.join("postgres"))
    }

    /// Where it is, with its password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Postgres {
    /// Its processes are not in one group, and leave shared memory behind when they are killed: they are asked to end
    /// first. If they do not, the kill that follows ends the first of them, and the others notice that.
    fn drop(&mut self) {
        let data = self.place.file("data");
        let stop = as_user(&self.programs, "pg_ctl", LIMIT);
        let stop = stop.args(["stop", "--silent", "-m", "immediate", "-D"]).args([data]);
        let _ = stop.output();
    }
}

/// The programs of the newest version that is whole; a client alone has no server.
fn newest(versions: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(versions).ok()?.filter_map(Result::ok);
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let numbered = versions.filter_map(|entry| Some((number(&entry.path())?, entry.path().join("bin"))));
    let whole = numbered.filter(|(_, programs)| programs.join("initdb").is_file());
    whole.max_by_key(|(number, _)| *number).map(|(_, programs)| programs)
}

/// One of its programs, as a user that may run it.
fn as_user(programs: &Path, name: &str, limit: Duration) -> Program {
    let program = programs.join(name);
    // Wherever this runs may be a folder that the other user cannot enter.
    let nowhere = Path::new("/");
    if is_root() {
        let user = [format!("--reuid={USER}"), format!("--regid={USER}"), "--init-groups".to_owned()];
        Program::new("setpriv", limit).args(user).args([program]).directory(nowhere)
    } else {
        Program::new(program, limit).directory(nowhere)
    }
}

fn make_cluster(programs: &Path, place: &Place, password: &str) -> Result<(), Stop> {
    let secret = place.write_secret("password", password)?;
    if is_root() {
        if !is_open_to_all(&place.path) {
            let folder = place.path.display();
            return Err(Stop::skipped(format!(
                "the user {USER} cannot enter {folder}: set CARGO_TARGET_DIR to a folder that everybody can enter"
            )));
        }
        let owner = format!("{USER}:{USER}");
        let give = Program::new("chown", LIMIT).args([&owner]);
        give.args([&place.path, &secret]).run()?;
    }
    let log = place.log()?;
    let made = as_user(programs, "initdb", LIMIT)
        .args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--username", USER])
        .args([
            format!("--pwfile={}", secret.display()),
            format!("--pgdata={}", place.file("data").display()),
        ])
        .logged(&log)?;
    if made.success() { Ok(()) } else { Err(format!("initdb failed:\n{}", place.last_words()).into()) }
}

/// Everything that decides about durability is as it is by default.
fn settings(port: u16) -> [String; 4] {
    [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "unix_socket_directories=".to_owned(),
        "max_connections=300".to_owned(),
    ]
}

fn answers(programs: &Path, port: u16) -> bool {
    let port = port.to_string();
    let ask = Program::new(programs.join("pg_isready"), ANSWER_LIMIT);
    let asked = ask.args(["--quiet", "--host=127.0.0.1", "--port", &port]).output();
    asked.is_ok_and(|(status, _)| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_has_a_server_is_used() {
        let place = std::env::temp_dir().join(format!("xtask-postgres-{}", std::process::id()));
        for (version, has_server) in [("9", true), ("15", true), ("16", false), ("common", true)] {
            let programs = place.join(version).join("bin");
            fs::create_dir_all(&programs).unwrap();
            if has_server {
                fs::write(programs.join("initdb"), "").unwrap();
            }
        }
        let (found, none) = (newest(&place), newest(&place.join("gone")));
        fs::remove_dir_all(&place).unwrap();
        assert_eq!((found, none), (Some(place.join("15/bin")), None));
    }
}
