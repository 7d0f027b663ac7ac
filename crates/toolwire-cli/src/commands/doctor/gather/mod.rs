//! Gathers the facts about a server: looks for its program, connects, asks for its lists.
//!
//! Nothing is judged here. Every step has a deadline, and nothing that was started is left behind.

mod program;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use toolwire::{
    Client,
    auth::client::AuthError,
    client::{EraChoice, ErrorKind, PageOf, Pages},
    http::client::fetch::Fetcher,
    protocol::{Feature, probe::ProbeLink},
    transport::child::ChildHandle,
};

use super::{
    case::{Auth, Case, Child, Listed, Silence, Talk},
    web,
};
use crate::{
    ask,
    auth::{self, Settings, Site, Stored},
    failure::{Code, Failure, Result},
    target::{self, Address, Command, Target},
    terminal::seconds,
    tools, waits,
};

/// How long the end of a child is waited for, when its connection is gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Gathers everything about a server.
pub(crate) async fn gather(target: &Target) -> Case {
    let program = match &target.address {
        Address::Command(command) => Some(program::find(command).await),
        _ => None,
    };
    let was_renewable = is_renewable(target).await;
    let children = Children::default();
    let begun = Instant::now();
    let connected = connect(target, target.era, &children).await;
    let took = begun.elapsed();
    let why = connected.as_ref().err().and_then(Failure::auth).cloned();
    let (talk, child) = match connected {
        Ok(client) => {
            let starts = children.handles().len();
            let mut talk = converse(&client, target).await;
            let child = Child { starts, ..children.facts(false).await };
            // A client sends what is left, and a server that will not go is made to.
            let _ = client.close().await;
            (talk.took, talk.first) = (took, took);
            again(target, &mut talk).await;
            (Ok(talk), child)
        }
        Err(failure) => {
            let child = children.facts(failure.code() == Code::ConnectionClosed).await;
            (Err(Silence { code: failure.code(), text: failure.message().to_owned() }), child)
        }
    };
    let child = Child { lost: target.lost.last(), ..child };
    let (web, proxy) = match (&target.address, &talk) {
        (Address::Http(remote), talk) => {
            let web = if talk.is_err() { web::examine(remote, target.timeout).await } else { None };
            (web, web::proxy(&remote.url, |name| std::env::var(name).ok()))
        }
        _ => (None, None),
    };
    let auth = match &talk {
        Err(silence) => auth(target, silence.code, why, was_renewable).await,
        Ok(_) => None,
    };
    let (name, address) = (target.name.clone(), target.address.clone());
    Case { name, address, patience: target.timeout, program, child, proxy, web, auth, talk }
}

/// Whether a login is stored that can be renewed.
async fn is_renewable(target: &Target) -> bool {
    match Site::of(&target.name, &target.address) {
        Some(site) => matches!(auth::look(&site).await, Stored::Login(login) if login.renewable),
        None => false,
    }
}

/// Finds out about logins, where one is wanted and no header says who is calling.
async fn auth(target: &Target, code: Code, failed: Option<AuthError>, was_renewable: bool) -> Option<Auth> {
    let wanted = matches!(code, Code::AuthNeeded | Code::Forbidden | Code::CredentialsExposed);
    if target.address.has_credentials() || !(wanted || failed.is_some()) {
        return None;
    }
    let site = Site::of(&target.name, &target.address)?;
    let stored = auth::look(&site).await;
    let fetcher = Fetcher::new();
    let settings =
        auth::folder().ok().and_then(|store| Settings::load(&store, &site).ok()).unwrap_or_default();
    let walk = match site.knock(&fetcher, target.timeout).await {
        Ok(knock) => auth::walk(&site, &settings, &fetcher, &knock).await.ok(),
        Err(_) => None,
    };
    Some(Auth { typed: site.typed, was_renewable, stored, failed, walk })
}

/// Connects like every other command, but keeps an eye on the processes that are started.
pub(crate) async fn connect(target: &Target, era: EraChoice, children: &Children) -> Result<Client> {
    let target = Target { era, ..target.clone() };
    let builder = ask::declare(target::builder(&target));
    let Address::Command(command) = &target.address else {
        return target::connect(&target, builder).await;
    };
    let connecting = builder.connect(children.starting(command, &target));
    let connecting = target.within_limit(Box::pin(async { Ok(connecting.await?) }));
    match tokio::time::timeout(target.timeout, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(target::too_late(&target)),
    }
}

/// The processes that were started for one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children(Arc<Mutex<Vec<ChildHandle>>>);

impl Children {
    /// A connector that starts the command and remembers the process.
    fn starting(
        &self,
        command: &Command,
        target: &Target,
    ) -> impl FnMut() -> std::future::Ready<std::io::Result<toolwire::transport::child::Child>> + Send {
        let (command, children, target) = (command.clone(), self.clone(), target.clone());
        move || {
            let started = target::start(&command, &target);
            if let Ok(child) = &started {
                children.0.lock().unwrap_or_else(PoisonError::into_inner).push(child.handle());
            }
            std::future::ready(started)
        }
    }

    fn handles(&self) -> Vec<ChildHandle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the last of them did so far, and how it ended, if it did so of its own accord.
    async fn facts(&self, ended: bool) -> Child {
        let handles = self.handles();
        let Some(last) = handles.last() else { return Child::default() };
        // A process that has just crashed has not always been buried yet.
        let report = tokio::time::timeout(waits::stretched(LAST_WORDS), last.wait());
        let report = if ended { report.await.ok() } else { None };
        let junk = last.junk();
        Child {
            starts: handles.len(),
            ending: report.map(|report| report.ending),
            stderr: last.stderr_tail(),
            lost: None,
            junk_count: junk.count,
            junk: junk.lines.into(),
        }
    }
}

/// Asks for everything that the server says it has.
async fn converse(client: &Client, target: &Target) -> Talk {
    let can = client.capabilities();
    let mut lists = Lists { target, gone: false };
    let mut tools = lists.collect(can.tools.is_some(), client.tools()).await;
    let mut bad_tools = Vec::new();
    if let Listed::Failed { endless: false, .. } = &tools
        && let Ok(Ok(apart)) = tokio::time::timeout(target.timeout, tools::all(client)).await
    {
        (tools, bad_tools) = (Listed::All(apart.good), apart.bad);
    }
    let sse = matches!(target.address, Address::Http(_)) && client.link().family() == ProbeLink::Duplex;
    let newer = match &target.address {
        Address::Http(remote) if sse => web::newer(remote, target.timeout).await,
        _ => None,
    };
    Talk {
        version: client.version(),
        server: client.server_info().cloned(),
        took: Duration::ZERO,
        first: Duration::ZERO,
        silent_on_discover: false,
        legacy_refusal: None,
        sse,
        newer,
        tools,
        bad_tools,
        resources: lists.collect(can.resources.is_some(), client.resources()).await,
        templates: templates(client, &mut lists).await,
        prompts: lists.collect(can.prompts.is_some(), client.prompts()).await,
    }
}

async fn templates(client: &Client, lists: &mut Lists<'_>) -> Listed<toolwire::wire::ResourceTemplate> {
    let offered = client.capabilities().resources.is_some();
    match lists.collect(offered, client.resource_templates()).await {
        // There is no capability for templates alone, so a server with resources need not know the method.
        Listed::Failed { why, .. } if why.contains("-32601") => Listed::NotOffered,
        listed => listed,
    }
}

/// The lists of a server, one after the other.
struct Lists<'a> {
    target: &'a Target,
    /// The connection was lost at one of them, so the others cannot be asked for.
    gone: bool,
}

impl Lists<'_> {
    async fn collect<T: PageOf>(&mut self, offered: bool, pages: Pages<T>) -> Listed<T::Item> {
        if !offered || self.gone {
            return Listed::NotOffered;
        }
        let patience = self.target.timeout;
        let collecting = self.target.within_limit(async { Ok(pages.collect().await) });
        let (failure, endless) = match tokio::time::timeout(patience, collecting).await {
            Ok(Ok(Ok(items))) => return Listed::All(items),
            Ok(Ok(Err(error))) => {
                self.gone = error.kind() == ErrorKind::Closed;
                let endless = error.kind() == ErrorKind::TooManyPages;
                (Failure::from(error), endless)
            }
            Ok(Err(failure)) => (failure, false),
            Err(_) => {
                let why = format!("not complete within {}", seconds(patience));
                (Failure::new(Code::Timeout, why), false)
            }
        };
        Listed::Failed { why: self.target.explained(failure).message().to_owned(), endless }
    }
}

/// Connects once more with the handshake: to see whether older clients are served, and how long the server takes
/// when it has been started before.
async fn again(target: &Target, talk: &mut Talk) {
    let modern = !talk.version.has(Feature::Handshake);
    let waited = !modern && talk.took >= target::probe_timeout();
    if target.era != EraChoice::Auto || talk.sse || !(modern || waited) {
        return;
    }
    let begun = Instant::now();
    match connect(target, EraChoice::Legacy, &Children::default()).await {
        Ok(client) => {
            let took = begun.elapsed();
            let _ = client.close().await;
            if waited {
                talk.took = talk.took.min(took);
                talk.silent_on_discover = is_silent(target, took).await;
            }
        }
        Err(failure) if modern => talk.legacy_refusal = Some(failure.message().to_owned()),
        Err(_) => {}
    }
}

/// Whether a server that needs this long to start leaves `server/discover` unanswered, which only a second attempt
/// can tell from a slow first start.
async fn is_silent(target: &Target, start: Duration) -> bool {
    let timeout = target.timeout.min(target::probe_timeout() + start);
    let target = Target { timeout, ..target.clone() };
    match connect(&target, EraChoice::Modern, &Children::default()).await {
        Ok(client) => {
            let _ = client.close().await;
            false
        }
        Err(failure) => failure.code() == Code::Timeout,
    }
}
