//! Connecting to a target, with a deadline for all of it.

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use toolwire::{
    ChildProcess, Client,
    auth::client::OAuth,
    client::{ClientBuilder, ClientLimits, Observed},
    http::client::{Http, HttpError, HttpLimits, WebSocket},
    protocol::Feature,
    transport::child::{Child, DEFAULT_STDIN_GRACE},
    wire::Root,
};

use super::{Address, Command, Remote, Target, whole_line};
use crate::{
    auth, depth,
    failure::{Code, Failure, Result},
    terminal::seconds,
    waits, watchdog,
};

/// The time in which a program whose output has ended has to end, or it is said to run still.
const ENDING: Duration = Duration::from_secs(1);

/// How large a message may be, unless `--max-message` says otherwise: pictures and files come in one piece.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A client as the target's options want it, ready for handlers.
pub(crate) fn builder(target: &Target) -> ClientBuilder {
    let trace = target.trace.as_ref().map(|recorder| recorder.listener(&target.name, &target.address));
    let lost = target.lost.clone();
    let answered = (!target.roots.is_empty()).then(|| Arc::clone(&target.roots_answered));
    unobserved(target).observe(move |observed| {
        match (&observed, &answered) {
            (Observed::Failed(why), _) => lost.note(why),
            (Observed::TooLarge(why), _) => lost.note_too_large(why),
            (Observed::Sent(message), Some(answered)) if tells_roots(message) => answered.notify_one(),
            _ => {}
        }
        if let Some(trace) = &trace {
            trace(observed);
        }
    })
}

/// The same for when every moment counts: nobody looks on, unless a trace is wanted.
pub(crate) fn unobserved(target: &Target) -> ClientBuilder {
    let builder = Client::builder("toolwire", env!("CARGO_PKG_VERSION"))
        .title("Toolwire")
        .era(target.era)
        .probe_timeout(probe_timeout())
        .request_timeout(target.timeout);
    let builder = match &target.trace {
        Some(recorder) => builder.observe(recorder.listener(&target.name, &target.address)),
        None => builder,
    };
    if target.roots.is_empty() { builder } else { builder.roots(roots(target)) }
}

/// Returns how long a server may take to answer in the new way before the old way is tried.
pub(crate) fn probe_timeout() -> Duration {
    waits::stretched(ClientLimits::default().probe_timeout)
}

/// Connects, or says why not. Nothing that was started is left behind.
pub(crate) async fn connect(target: &Target, builder: ClientBuilder) -> Result<Client> {
    // Boxed, because every command would have all transports in its state otherwise.
    let connecting = Box::pin(async {
        match &target.address {
            Address::Command(command) => {
                let target = target.clone();
                let command = command.clone();
                let starting = move || std::future::ready(start(&command, &target));
                Ok::<_, Failure>(builder.connect(starting).await?)
            }
            Address::Http(remote) => {
                let http = http(remote, target, auth::stored(target).await?)?;
                Ok(builder.connect(http).await?)
            }
            Address::WebSocket(remote) => {
                let socket = websocket(remote, target, auth::stored(target).await?)?;
                Ok(builder.connect(socket).await?)
            }
            #[cfg(unix)]
            Address::Unix(path) => Ok(builder
                .connect(toolwire::UnixSocket::new(path).max_message_bytes(target.max_message))
                .await?),
            #[cfg(not(unix))]
            Address::Unix(_) => Err(Failure::new(Code::Usage, "this system has no unix sockets")),
        }
    });
    match timeout(target.timeout, target.within_limit(connecting)).await {
        Ok(connected) => connected.map_err(|failure| unconnected(failure, target)),
        Err(_) => Err(too_late(target)),
    }
}

/// Says which server it was, unless that is said already.
fn unconnected(failure: Failure, target: &Target) -> Failure {
    let named = failure.message().contains(&target.name);
    let failure = if named { failure } else { failure.context(&target.name) };
    let failure = match &target.address {
        Address::Command(command) if failure.code() == Code::SpawnFailed => match whole_line(command) {
            Some(better) => failure.hint(format!("the arguments belong in a list of their own: {better}")),
            None => failure,
        },
        _ => failure,
    };
    target.explained(failure)
}

/// A failure to connect in time.
pub(crate) fn too_late(target: &Target) -> Failure {
    let text = format!("{}: no connection within {}", target.name, seconds(target.timeout));
    let hint = match target.address {
        Address::Command(_) => {
            "a first start may download a package: try again, or give it more time with --timeout 120"
        }
        _ => "is it running, and is the address right? --timeout 120 gives it more time",
    };
    target.explained(Failure::new(Code::Timeout, text).hint(hint))
}

/// Starts the process that a command stands for. It does not outlive this program, however that ends.
pub(crate) fn start(command: &Command, target: &Target) -> io::Result<Child> {
    watchdog::prepare();
    let child = process(command, target).spawn()?;
    watchdog::watch(child.handle());
    Ok(child)
}

fn process(command: &Command, target: &Target) -> ChildProcess {
    let process = ChildProcess::command(&command.program).args(&command.args);
    let mut process = process.max_message_bytes(target.max_message);
    process = process.stdin_grace(waits::stretched(DEFAULT_STDIN_GRACE));
    process = process.exit_patience(waits::stretched(ENDING));
    process = process.envs(command.env.iter().map(|(name, value)| (name, value)));
    // After the others, so that no configuration takes it back.
    process = process.env(depth::VARIABLE, depth::below());
    if let Some(directory) = &command.directory {
        process = process.current_dir(directory);
    }
    match target.stderr {
        Some(pass_on) => process.on_stderr(pass_on),
        None => process,
    }
}

fn http(remote: &Remote, target: &Target, login: Option<OAuth>) -> Result<Http> {
    let mut http = Http::builder(&remote.url).limits(limits(target));
    for (name, value) in &remote.headers {
        http = http.header(name, value);
    }
    if let Some(login) = login {
        http = http.auth(login);
    }
    http.build().map_err(|error| misdescribed(&error))
}

fn websocket(remote: &Remote, target: &Target, login: Option<OAuth>) -> Result<WebSocket> {
    let mut socket = WebSocket::builder(&remote.url).limits(limits(target));
    for (name, value) in &remote.headers {
        socket = socket.header(name, value);
    }
    if let Some(login) = login {
        socket = socket.auth(login);
    }
    socket.build().map_err(|error| misdescribed(&error))
}

fn limits(target: &Target) -> HttpLimits {
    let mut limits = HttpLimits::default();
    (limits.event_bytes, limits.response_bytes) = (target.max_message, target.max_message);
    limits
}

/// Whether a message is the answer with the folders.
fn tells_roots(message: &[u8]) -> bool {
    let message: Option<Value> = serde_json::from_slice(message).ok();
    message.is_some_and(|message| message["result"]["roots"].is_array())
}

/// Waits until a server that asks for the folders right after the handshake has been answered. Only then does it know
/// what it may work on, and what is called before that is refused.
pub(crate) async fn settle(target: &Target, client: &Client) {
    /// How long it may take to ask.
    const ASKING: Duration = Duration::from_secs(1);
    /// How long it may take with the answer, which it does not tell about.
    const TAKING_IN: Duration = Duration::from_millis(100);
    if target.roots.is_empty() || !client.version().has(Feature::Handshake) {
        return;
    }
    let asking = waits::stretched(ASKING);
    if timeout(asking, target.roots_answered.notified()).await.is_ok() {
        tokio::time::sleep(TAKING_IN).await;
        // Behind the answer, so that this is answered only when that was read.
        let _ = timeout(asking, client.ping()).await;
    }
}

fn misdescribed(error: &HttpError) -> Failure {
    Failure::new(Code::Usage, error.to_string())
}

fn roots(target: &Target) -> Vec<Root> {
    let root = |folder: &std::path::PathBuf| {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        // Spaces and the like are written as URIs have them; only a relative path cannot be one.
        url::Url::from_file_path(folder).ok().map(|uri| Root::new(uri.to_string()))
    };
    target.roots.iter().filter_map(root).collect()
}
