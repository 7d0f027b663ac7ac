//! Connecting to a target, with a deadline for all of it.

use std::io;

use toolwire::{
    ChildProcess, Client,
    client::{ClientBuilder, Observed},
    http::client::{Http, HttpError, WebSocket},
    transport::child::Child,
    wire::Root,
};

use super::{Address, Command, Remote, Target};
use crate::{
    depth,
    failure::{Code, Failure, Result},
    watchdog,
};

/// How large a message may be: pictures and files come in one piece. HTTP has the same limit.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A client as the target's options want it, ready for handlers.
pub(crate) fn builder(target: &Target) -> ClientBuilder {
    let trace = target.trace.as_ref().map(|recorder| recorder.listener(&target.name, &target.address));
    let lost = target.lost.clone();
    unobserved(target).observe(move |observed| {
        if let Observed::Failed(why) = &observed {
            lost.note(why);
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
        .request_timeout(target.timeout);
    let builder = match &target.trace {
        Some(recorder) => builder.observe(recorder.listener(&target.name, &target.address)),
        None => builder,
    };
    if target.roots.is_empty() { builder } else { builder.roots(roots(target)) }
}

/// Connects, or says why not. Nothing that was started is left behind.
pub(crate) async fn connect(target: &Target, builder: ClientBuilder) -> Result<Client> {
    let connecting = async {
        match &target.address {
            Address::Command(command) => {
                let (command, stderr) = (command.clone(), target.stderr);
                let starting = move || std::future::ready(start(&command, stderr));
                Ok::<_, Failure>(builder.connect(starting).await?)
            }
            Address::Http(remote) => Ok(builder.connect(http(remote)?).await?),
            Address::WebSocket(remote) => Ok(builder.connect(websocket(remote)?).await?),
            #[cfg(unix)]
            Address::Unix(path) => Ok(builder
                .connect(toolwire::UnixSocket::new(path).max_message_bytes(MAX_MESSAGE_BYTES))
                .await?),
            #[cfg(not(unix))]
            Address::Unix(_) => Err(Failure::new(Code::Usage, "this system has no unix sockets")),
        }
    };
    match tokio::time::timeout(target.timeout, connecting).await {
        Ok(connected) => connected.map_err(|failure| unconnected(failure, target)),
        Err(_) => Err(too_late(target)),
    }
}

/// Says which server it was, unless that is said already.
fn unconnected(failure: Failure, target: &Target) -> Failure {
    let named = failure.message().contains(&target.name);
    let failure = if named { failure } else { failure.context(&target.name) };
    target.explained(failure)
}

/// A failure to connect in time.
pub(crate) fn too_late(target: &Target) -> Failure {
    let text = format!("{}: no connection within {} s", target.name, target.timeout.as_secs_f64());
    let hint = match target.address {
        Address::Command(_) => {
            "a first start may download a package: try again, or give it more time with --timeout 120"
        }
        _ => "is it running, and is the address right? --timeout 120 gives it more time",
    };
    target.explained(Failure::new(Code::Timeout, text).hint(hint))
}

/// Starts the process that a command stands for. It does not outlive this program, however that ends.
pub(crate) fn start(command: &Command, stderr: Option<fn(&str)>) -> io::Result<Child> {
    let child = process(command, stderr).spawn()?;
    watchdog::watch(child.handle());
    Ok(child)
}

fn process(command: &Command, stderr: Option<fn(&str)>) -> ChildProcess {
    let process = ChildProcess::command(&command.program).args(&command.args);
    let mut process = process.max_message_bytes(MAX_MESSAGE_BYTES);
    process = process.envs(command.env.iter().map(|(name, value)| (name, value)));
    // After the others, so that no configuration takes it back.
    process = process.env(depth::VARIABLE, depth::below());
    if let Some(directory) = &command.directory {
        process = process.current_dir(directory);
    }
    match stderr {
        Some(pass_on) => process.on_stderr(pass_on),
        None => process,
    }
}

fn http(remote: &Remote) -> Result<Http> {
    let mut http = Http::builder(&remote.url);
    for (name, value) in &remote.headers {
        http = http.header(name, value);
    }
    http.build().map_err(|error| misdescribed(&error))
}

fn websocket(remote: &Remote) -> Result<WebSocket> {
    let mut socket = WebSocket::builder(&remote.url);
    for (name, value) in &remote.headers {
        socket = socket.header(name, value);
    }
    socket.build().map_err(|error| misdescribed(&error))
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
