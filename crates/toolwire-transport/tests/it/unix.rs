use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net as blocking;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;
use toolwire_transport::unix::DEFAULT_MESSAGE_TIMEOUT;
use toolwire_transport::{Duplex, Listener, ReceiveError, Source, UnixSocket};

use crate::{receive_many, send_many};

/// A path that no other test uses.
fn path() -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("toolwire-{}-{number}.sock", std::process::id()))
}

#[tokio::test]
async fn both_ways_at_once() {
    let socket = UnixSocket::new(path());
    let mut listener = socket.listen().await.unwrap();
    let (near, far) = tokio::join!(socket.connect(), listener.accept());
    let (near_source, near_sink) = near.unwrap().split();
    let (far_source, far_sink) = far.unwrap().split();
    let sending = (tokio::spawn(send_many(near_sink)), tokio::spawn(send_many(far_sink)));
    tokio::join!(receive_many(near_source), receive_many(far_source));
    sending.0.await.unwrap().unwrap();
    sending.1.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_file_is_for_its_user_alone_and_goes_with_the_listener() {
    let socket = UnixSocket::new(path());
    let listener = socket.listen().await.unwrap();
    assert_eq!(listener.path(), socket.path());
    assert_eq!(fs::metadata(socket.path()).unwrap().permissions().mode() & 0o777, 0o600);
    drop(listener);
    assert!(!socket.path().exists());
    let shared = socket.mode(0o660);
    let _listener = shared.listen().await.unwrap();
    assert_eq!(fs::metadata(shared.path()).unwrap().permissions().mode() & 0o777, 0o660);
}

#[tokio::test]
async fn a_live_server_is_not_pushed_aside() {
    let socket = UnixSocket::new(path());
    let mut listener = socket.listen().await.unwrap();
    let error = socket.listen().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains("listens at"), "{error}");
    // The question whether it is there was a connection too; the next one is real.
    let (connected, _) = tokio::join!(socket.connect(), listener.accept());
    connected.unwrap();
}

#[tokio::test]
async fn what_a_dead_server_left_is_replaced() {
    let socket = UnixSocket::new(path());
    drop(blocking::UnixListener::bind(socket.path()).unwrap());
    assert!(socket.path().exists());
    let mut listener = socket.listen().await.unwrap();
    let (connected, accepted) = tokio::join!(socket.connect(), listener.accept());
    connected.unwrap();
    accepted.unwrap();
}

#[tokio::test]
async fn a_file_that_is_not_a_socket_is_left_alone() {
    let socket = UnixSocket::new(path());
    fs::write(socket.path(), "precious").unwrap();
    let error = socket.listen().await.unwrap_err();
    assert!(error.to_string().contains("not a socket, and it is left alone"), "{error}");
    assert_eq!(fs::read_to_string(socket.path()).unwrap(), "precious");
    fs::remove_file(socket.path()).unwrap();
}

#[tokio::test]
async fn the_file_of_a_successor_is_left_alone() {
    let socket = UnixSocket::new(path());
    let first = socket.listen().await.unwrap();
    // Two files that exist at once are different ones, whatever numbers the system gives out again.
    let aside = path();
    fs::rename(socket.path(), &aside).unwrap();
    let second = socket.listen().await.unwrap();
    let inode = fs::metadata(socket.path()).unwrap().ino();
    drop(first);
    assert_eq!(fs::metadata(socket.path()).unwrap().ino(), inode);
    drop(second);
    assert!(!socket.path().exists());
    fs::remove_file(aside).unwrap();
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let socket = UnixSocket::new(path());
    let error = socket.connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("start the server first"), "{error}");

    drop(blocking::UnixListener::bind(socket.path()).unwrap());
    let error = socket.connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains("nobody listens at"), "{error}");
    fs::remove_file(socket.path()).unwrap();

    let nowhere = UnixSocket::new(path().join("deeper.sock"));
    let error = nowhere.listen().await.unwrap_err();
    assert!(error.to_string().contains("make it first"), "{error}");

    let endless = UnixSocket::new(std::env::temp_dir().join("x".repeat(500)));
    let error = endless.listen().await.unwrap_err();
    assert!(error.to_string().contains("cannot be used"), "{error}");
    assert!(endless.connect().await.is_err());
}

#[tokio::test]
async fn a_long_line_and_a_cut_one_end_as_they_do_on_a_pipe() {
    let socket = UnixSocket::new(path()).max_message_bytes(100);
    let mut listener = socket.listen().await.unwrap();
    let (near, far) = tokio::join!(UnixStream::connect(socket.path()), listener.accept());
    let (mut source, _sink) = far.unwrap().split();
    let mut near = near.unwrap();
    near.write_all(&[b'x'; 5000]).await.unwrap();
    near.write_all(b"\n{}\n{\"cut").await.unwrap();
    drop(near);
    assert!(!source.receive().await.unwrap_err().is_fatal());
    assert_eq!(source.receive().await.unwrap(), Some(Bytes::from_static(b"{}")));
    assert_eq!(source.receive().await.unwrap(), Some(Bytes::from_static(b"{\"cut")));
    assert_eq!(source.receive().await.unwrap(), None);
}

/// Begins a message and waits for what becomes of it.
async fn unfinished(mut peer: UnixStream, connection: impl Duplex) -> Duration {
    let begun = Instant::now();
    peer.write_all(b"{").await.unwrap();
    let (mut source, _sink) = connection.split();
    match source.receive().await.unwrap_err() {
        ReceiveError::TimedOut { limit } => assert_eq!(begun.elapsed().as_secs(), limit.as_secs()),
        error => panic!("{error:?}"),
    }
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_never_complete_ends_the_connection_on_either_side() {
    let default = UnixSocket::new(path());
    let patient = default.clone().message_timeout(2 * DEFAULT_MESSAGE_TIMEOUT);
    for (socket, times) in [(default, 1), (patient, 2)] {
        let mut listener = socket.listen().await.unwrap();
        let (near, far) = tokio::join!(UnixStream::connect(socket.path()), listener.accept());
        let server = unfinished(near.unwrap(), far.unwrap()).await;
        drop(listener);
        let listener = UnixListener::bind(socket.path()).unwrap();
        let (near, far) = tokio::join!(socket.connect(), listener.accept());
        let client = unfinished(far.unwrap().0, near.unwrap()).await;
        for time in [server, client] {
            assert_eq!(time.as_secs(), times * DEFAULT_MESSAGE_TIMEOUT.as_secs());
        }
        fs::remove_file(socket.path()).unwrap();
    }
}
