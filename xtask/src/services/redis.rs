//! `redis-server`, with a log that is written once a second.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Place, on_free_port, password, version, wait_until_ready};
use crate::debian::{self, Package};
use crate::process::{Background, Program};
use crate::steps::Stop;

/// It is on this machine: whoever answers, answers at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Only a program that is waited for has a limit, and nobody waits for this one.
const NEVER: Duration = Duration::MAX;

pub(super) const PACKAGE: Package =
    Package { name: "redis-server", find: || debian::in_path("redis-server") };

/// A server of Redis; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Redis {
    url: String,
    program: PathBuf,
    // Fields are dropped in this order: nobody writes to the folder when it is deleted.
    _server: Background,
    _place: Place,
}

impl Redis {
    pub(crate) fn start() -> Result<Self, Stop> {
        Self::run(&PACKAGE.require()?)
    }

    /// The same with Valkey, which speaks the same protocol and which Debian 12 has no package of, where it is.
    pub(crate) fn start_valkey() -> Option<Result<Self, Stop>> {
        debian::in_path("valkey-server").map(|program| Self::run(&program))
    }

    fn run(program: &Path) -> Result<Self, Stop> {
        on_free_port(|port| {
            let place = Place::new("redis", port)?;
            let password = password()?;
            let settings = settings(&place.path.display().to_string(), port, &password);
            let settings = place.write_secret("redis.conf", &settings)?;
            let mut server = Program::new(program, NEVER).args([settings]).background(&place.log()?)?;
            wait_until_ready("the server of Redis", &place, &mut server, || answers(port, &password))?;
            let url = format!("redis://:{password}@127.0.0.1:{port}/");
            Ok(Self { url, program: program.to_owned(), _server: server, _place: place })
        })
    }

    /// Which version it is.
    pub(crate) fn version(&self) -> Result<String, String> {
        version(&self.program)
    }

    /// Where it is, with its password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

fn settings(folder: &str, port: u16, password: &str) -> String {
    format!(
        "bind 127.0.0.1\nport {port}\ndaemonize no\ndir \"{folder}\"\nrequirepass {password}\n\
         appendonly yes\nappendfsync everysec\nsave \"\"\nmaxmemory-policy noeviction\n"
    )
}

fn answers(port: u16, password: &str) -> bool {
    let asked = || -> std::io::Result<bool> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut connection = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
        connection.set_read_timeout(Some(ANSWER_LIMIT))?;
        // Without the password somebody else's server would do as well.
        connection.write_all(format!("AUTH {password}\r\nPING\r\n").as_bytes())?;
        let mut answer = [0; 12];
        connection.read_exact(&mut answer)?;
        Ok(&answer == b"+OK\r\n+PONG\r\n")
    };
    asked().unwrap_or(false)
}
