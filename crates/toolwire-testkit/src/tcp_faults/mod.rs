//! A TCP proxy between a client and a server that misbehaves as networks do, on request.
//!
//! It knows nothing of what the bytes mean, so it stands in front of anything: a server of ours, Redis, Postgres.
//! Nothing is ever lost on a connection that goes on: as with TCP itself, what is not delivered is delivered later or
//! the connection ends. Deterministic faults, by seed and with a clock that is not real, are in
//! [`simulation`](crate::simulation).
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::{TcpListener, TcpStream};
//! use toolwire_testkit::tcp_faults::{Fault, FaultyTcp};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = TcpListener::bind("127.0.0.1:0").await?;
//! let proxy = FaultyTcp::to(server.local_addr()?).await?;
//! let mut client = TcpStream::connect(proxy.address()).await?;
//! let (mut served, _) = server.accept().await?;
//! client.write_all(b"hello").await?;
//! served.read_exact(&mut [0; 5]).await?;
//! proxy.set(Fault::Down);
//! assert!(served.read(&mut [0; 1]).await.is_ok_and(|read| read == 0), "the connection has ended");
//! # Ok(())
//! # }
//! ```

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

/// How much is taken from a connection at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// How many chunks may be on their way in one direction; then the sender has to wait, as with any network.
const CHUNKS_IN_FLIGHT: usize = 64;

/// In how many portions a throttled connection sends what it may send in a second.
const PORTIONS: usize = 50;

/// What is wrong with the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing: bytes pass at once.
    #[default]
    None,
    /// Everything takes this much longer, in each direction.
    Latency(Duration),
    /// No more than this many bytes in a second pass in each direction of a connection; 0 counts as 1.
    Throttle(usize),
    /// Nothing passes and nobody is told. Connections can be made, and hear nothing.
    Blackhole,
    /// What the client sends arrives, and what the server answers does not: nobody knows whether it was done.
    NoReplies,
    /// The server's side of each connection is closed, and the client is not told: it goes on to wait on what only
    /// it believes to be open.
    HalfOpen,
    /// Each connection is reset once the server has sent this many more bytes, in the middle of a reply.
    CutAfter(usize),
    /// Connections are reset, and so are new ones.
    Down,
}

impl Fault {
    fn holds(self, direction: Direction) -> bool {
        match self {
            Self::Blackhole => true,
            Self::NoReplies => direction == Direction::ToClient,
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// The proxy; dropping it closes all of its connections.
#[derive(Debug)]
pub struct FaultyTcp {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    accepting: JoinHandle<()>,
}

/// What all connections look at.
#[derive(Debug, Clone, Copy, Default)]
struct Weather {
    fault: Fault,
    /// Grows with each change of the fault.
    changes: u64,
    /// Grows with each cut: a connection that was made before it ends.
    cuts: u64,
}

impl FaultyTcp {
    /// A proxy on a free port of the loopback address that passes everything on to `target`.
    pub async fn to(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (weather, watched) = watch::channel(Weather::default());
        let accepting = tokio::spawn(accept(listener, target, watched));
        Ok(Self { address, weather, accepting })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on this is wrong, with connections that there are and with those that will be made.
    pub fn set(&self, fault: Fault) {
        self.weather.send_modify(|weather| {
            weather.fault = fault;
            weather.changes += 1;
            // However short it is: nobody may look before it is over.
            weather.cuts += u64::from(fault == Fault::Down);
        });
    }

    /// Resets the connections that there are. New ones can be made.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| weather.cuts += 1);
    }
}

impl Drop for FaultyTcp {
    fn drop(&mut self) {
        // The connections are owned by the task that has accepted them.
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, weather: watch::Receiver<Weather>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    connections.spawn(connection(client, target, weather.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The connection is to be reset.
struct Reset;

/// One connection of a client, from its beginning to its end.
async fn connection(mut client: TcpStream, target: SocketAddr, weather: watch::Receiver<Weather>) {
    let mut cut = weather.clone();
    let born = cut.borrow_and_update().cuts;
    let is_over = |weather: &Weather| weather.cuts > born || weather.fault == Fault::Down;
    let ended = tokio::select! {
        // Without a proxy there is no connection either.
        _ = cut.wait_for(is_over) => Err(Reset),
        ended = both_ways(&mut client, target, weather) => ended,
    };
    if ended.is_err() {
        // Dropped like this it is reset, and nobody takes its end for a proper one.
        let _ = client.set_zero_linger();
    }
}

async fn both_ways(
    client: &mut TcpStream,
    target: SocketAddr,
    mut weather: watch::Receiver<Weather>,
) -> Result<(), Reset> {
    let mut server = TcpStream::connect(target).await.map_err(|_| Reset)?;
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let to_server =
        Way { to: to_server, direction: Direction::ToServer, weather: weather.clone(), left: None };
    let to_client =
        Way { to: to_client, direction: Direction::ToClient, weather: weather.clone(), left: None };
    let ended = tokio::select! {
        ended = async { tokio::try_join!(pump(from_client, to_server), pump(from_server, to_client)) } => ended,
        _ = weather.wait_for(|weather| weather.fault == Fault::HalfOpen) => Err(Reset),
    };
    if ended.is_err() && weather.borrow().fault == Fault::HalfOpen {
        drop(server);
        // Once the network is well again the client hears that nobody knows its connection.
        let _ = weather.wait_for(|weather| weather.fault != Fault::HalfOpen).await;
    }
    ended.map(drop)
}

/// Takes what comes, and delivers it when it is due.
async fn pump(mut from: ReadHalf<'_>, mut way: Way<'_>) -> Result<(), Reset> {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(CHUNKS_IN_FLIGHT);
    let weather = way.weather.clone();
    let reading = async move {
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = from.read(&mut chunk).await.map_err(|_| Reset)?;
            if read == 0 {
                return Ok(());
            }
            chunk.truncate(read);
            let late = match weather.borrow().fault {
                Fault::Latency(late) => late,
                _ => Duration::ZERO,
            };
            sender.send((Instant::now() + late, chunk)).await.map_err(|_| Reset)?;
        }
    };
    let writing = async {
        while let Some((due, chunk)) = receiver.recv().await {
            sleep_until(due).await;
            way.deliver(&chunk).await?;
        }
        way.end().await
    };
    tokio::try_join!(reading, writing).map(drop)
}

/// One direction of a connection.
struct Way<'a> {
    to: WriteHalf<'a>,
    direction: Direction,
    weather: watch::Receiver<Weather>,
    /// What may still be sent before the cut, and which change of the weather has said so.
    left: Option<(u64, usize)>,
}

impl Way<'_> {
    async fn deliver(&mut self, mut bytes: &[u8]) -> Result<(), Reset> {
        while !bytes.is_empty() {
            let weather = self.passable().await?;
            let (portion, rest) = bytes.split_at(self.portion(weather, bytes.len()));
            self.to.write_all(portion).await.map_err(|_| Reset)?;
            if let Fault::Throttle(rate) = weather.fault {
                sleep(Duration::from_secs(1) * u32_of(portion.len()) / u32_of(rate.max(1))).await;
            }
            self.count(portion.len())?;
            bytes = rest;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Reset> {
        self.passable().await?;
        self.to.shutdown().await.map_err(|_| Reset)
    }

    /// Waits until something may pass.
    async fn passable(&mut self) -> Result<Weather, Reset> {
        let direction = self.direction;
        let weather = self.weather.wait_for(|weather| !weather.fault.holds(direction)).await;
        weather.map(|weather| *weather).map_err(|_| Reset)
    }

    /// How much of so many bytes may pass at once.
    fn portion(&mut self, weather: Weather, bytes: usize) -> usize {
        match weather.fault {
            Fault::Throttle(rate) => {
                self.left = None;
                bytes.min((rate / PORTIONS).max(1))
            }
            Fault::CutAfter(limit) if self.direction == Direction::ToClient => {
                if self.left.is_none_or(|(change, _)| change != weather.changes) {
                    self.left = Some((weather.changes, limit));
                }
                self.left.map_or(bytes, |(_, left)| bytes.min(left))
            }
            _ => {
                self.left = None;
                bytes
            }
        }
    }

    /// Ends the connection when as much has passed as may.
    fn count(&mut self, bytes: usize) -> Result<(), Reset> {
        match &mut self.left {
            Some((_, left)) if *left <= bytes => Err(Reset),
            Some((_, left)) => {
                *left -= bytes;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn u32_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
