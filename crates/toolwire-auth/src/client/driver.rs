//! Drives a flow: sends what it wants sent, asks whom it wants asked, keeps what it wants kept.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::time::sleep;

use super::{
    AuthError, AuthErrorKind, Event, Step,
    authorize::AuthorizationUrl,
    builder::Means,
    credential::{CurrentCredential, Origin, Server, Stored, logged_out},
    device::DeviceCode,
    flow::{self, Cause, Change, Effect, Env, Input, Plan, Redirects, Way},
    login::{Declined, Login, Person},
    register::Registration,
    store::{Key, Record, StoreError, StoreErrorKind},
    token::Credential,
};
use crate::{Endpoint, Secret, fetch::NamedBy};

/// Whether whoever runs the flow has locked the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saving {
    Locked,
    Unlocked,
}

/// How often a record is written when others write it at the same time and there are no locks.
const MAX_WRITES: usize = 3;

/// Runs a flow to its end, and uses what it ends with.
pub(super) async fn run(
    server: &Arc<Server>,
    cause: Cause,
    may_ask: bool,
    stored: Option<CurrentCredential>,
    saving: Saving,
) -> Result<CurrentCredential, AuthError> {
    let logouts = server.logouts();
    let ready = Ready::new(server, may_ask)?;
    let credential = stored.as_ref().map(|stored| Arc::clone(&stored.credential));
    let plan = plan(server, ready.way.clone(), may_ask, credential).await;
    let mut run = Run {
        server,
        ready,
        saving,
        before: stored,
        logouts,
        generation: 0,
        superseded: false,
        declined: None,
        refused: None,
    };
    let credential = run.drive(plan, cause).await.map_err(|mut error| {
        if let Some(why) = run.declined.take() {
            error.detail = why;
        }
        run.refused.take().unwrap_or(error)
    })?;
    if run.superseded {
        return superseded(server, credential, logouts).await;
    }
    let origin = if may_ask { Origin::Login } else { Origin::Renewal };
    let was_stored = run.generation > 0 || run.was_stored(&credential);
    server.adopt(credential, run.generation, was_stored, origin, logouts)
}

/// Ends a renewal that was not stored, because the login that it belongs to has ended meanwhile.
async fn superseded(server: &Server, own: Credential, logouts: u64) -> Result<CurrentCredential, AuthError> {
    match server.stored().await {
        Stored::Credential(stored, generation) => {
            server.adopt(*stored, generation, true, Origin::Store, logouts)
        }
        Stored::Nothing if server.asks_a_person() => {
            server.forget();
            Err(logged_out())
        }
        Stored::Nothing | Stored::Unusable => server.adopt(own, 0, true, Origin::Renewal, logouts),
    }
}

/// A way to a person that is ready, until the flow is over.
struct Ready {
    way: Way,
    login: Option<(Arc<dyn Login>, Redirects)>,
}

impl Ready {
    fn new(server: &Server, may_ask: bool) -> Result<Self, AuthError> {
        let nowhere = Redirects::none();
        let way = match &server.config.means {
            Means::Person(Some(Person::Browser(login))) if may_ask => {
                let redirects = login.prepare()?;
                let login = Some((Arc::clone(login), redirects.clone()));
                return Ok(Self { way: Way::Browser(redirects), login });
            }
            Means::Person(Some(Person::Browser(_)) | None) => Way::Browser(nowhere),
            Means::Person(Some(Person::Device(_))) => Way::Device,
            Means::ClientCredentials => Way::ClientCredentials,
            Means::Workload(_) => Way::Workload,
            Means::Enterprise(idp, _) => Way::Enterprise(idp.clone()),
        };
        Ok(Self { way, login: None })
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        if let Some((login, redirects)) = &self.login {
            login.done(redirects);
        }
    }
}

/// What a flow is to do for a server, by what was configured and what is stored.
pub(super) async fn plan(server: &Server, way: Way, may_ask: bool, stored: Option<Arc<Credential>>) -> Plan {
    let config = &server.config;
    let clients = config.store.clients().await.unwrap_or_else(|error| {
        server.tell_store("the registered clients cannot be used", &error);
        Vec::new()
    });
    let bound = server.record().await.and_then(|record| record.bound());
    let registration = |record: &Record| {
        let told = |error: &StoreError| server.tell_store("a registered client cannot be read", error);
        record.registration().inspect_err(told).ok()
    };
    let registrations = clients.iter().filter_map(registration).collect();
    Plan {
        server: server.endpoint.clone(),
        way,
        may_ask: may_ask && server.has_way(),
        settings: config.settings.clone(),
        stored: flow::Stored { credential: stored, registrations, bound },
    }
}

/// The time, and new randomness.
pub(super) fn env(server: &Server) -> Result<Env, AuthError> {
    let mut entropy = [0; 64];
    let filled = server.config.entropy.fill(&mut entropy);
    filled.map_err(|error| AuthError::new(AuthErrorKind::KeyFailed, Step::Use, error.to_string()))?;
    Ok(Env { now: server.now(), entropy })
}

/// A flow that is driven.
struct Run<'a> {
    server: &'a Arc<Server>,
    ready: Ready,
    saving: Saving,
    /// The credential that the flow began with.
    before: Option<CurrentCredential>,
    /// The number of logouts when it began.
    logouts: u64,
    /// Of the record that was written last.
    generation: u64,
    /// True if a renewal was not stored, because the record is not that of its login any more.
    superseded: bool,
    /// Why somebody did not go on.
    declined: Option<String>,
    /// Why a page was not opened.
    refused: Option<AuthError>,
}

impl Run<'_> {
    async fn drive(&mut self, plan: Plan, cause: Cause) -> Result<Credential, AuthError> {
        let mut events = Vec::new();
        let mut turned = flow::begin(plan, cause, &self.env()?, &mut events);
        loop {
            self.server.tell(&events);
            events.clear();
            let (flow, effect) = turned?;
            let input = match effect {
                Effect::Done(credential) => return Ok(*credential),
                other => self.carry_out(other).await,
            };
            turned = flow.next(input, &self.env()?, &mut events);
        }
    }

    fn env(&self) -> Result<Env, AuthError> {
        env(self.server)
    }

    /// Returns whether the store has had the login of a credential when the flow began.
    fn was_stored(&self, credential: &Credential) -> bool {
        let before = self.before.as_ref().filter(|before| before.credential.is_of_same_login(credential));
        before.is_some_and(|before| before.was_stored)
    }

    async fn carry_out(&mut self, effect: Effect) -> Input {
        match effect {
            Effect::Send(request) => match self.server.send(request).await {
                Ok(response) => Input::Response(response),
                Err(error) => Input::Unreachable(error),
            },
            Effect::Browse(url) => self.browse(url).await,
            Effect::ShowCode(code, named_by) => self.show(&code, named_by).await,
            Effect::Wait(pause) => {
                sleep(pause).await;
                Input::Elapsed
            }
            Effect::Assert(audience) => match &self.server.config.means {
                Means::Workload(ask) => self.asserted(ask(audience).await),
                _ => Input::Declined,
            },
            Effect::Identify(_) => match &self.server.config.means {
                Means::Enterprise(_, ask) => self.asserted(ask(()).await),
                _ => Input::Declined,
            },
            Effect::Save(change) => {
                if let Err(error) = self.save(&change).await {
                    // What was given is used all the same: the old one may be void.
                    self.server.tell_store("what was given could not be stored", &error);
                }
                Input::Saved
            }
            // Whoever drives the flow ends with it.
            Effect::Done(_) => Input::Saved,
        }
    }

    /// Returns whether a page may be opened. The one who named it would not be let reach further inside the network by a request,
    /// and a browser there reaches as far, without a click.
    fn may_open(&mut self, page: &Endpoint, named_by: NamedBy, step: Step) -> bool {
        let trusted = &self.server.config.settings.dangerous.trusted;
        let fine = named_by == NamedBy::Application
            || trusted.contains(page.url())
            || self.server.reach.allows_url(page.url());
        if !fine {
            let detail = "the page to open lies further inside the network than the server that leads to it; if it is \
                          the right one, trust its origin";
            let error = AuthError::new(AuthErrorKind::MetadataRefused, step, detail).at(page);
            self.server.tell(&[Event::refused(&error, "")]);
            self.refused = Some(error);
        }
        fine
    }

    async fn show(&mut self, code: &DeviceCode, named_by: NamedBy) -> Input {
        let pages = [Some(&code.verification_uri), code.verification_uri_complete.as_ref()];
        if !pages.into_iter().flatten().all(|page| self.may_open(page, named_by, Step::Device)) {
            return Input::Declined;
        }
        if let Means::Person(Some(Person::Device(device))) = &self.server.config.means
            && !device.show(code).await
        {
            let page = &code.verification_uri;
            self.declined = Some(format!("the page {page} of {} was not gone on to", code.issuer));
            return Input::Declined;
        }
        Input::Elapsed
    }

    async fn browse(&mut self, url: AuthorizationUrl) -> Input {
        let (page, named_by) = url.page();
        if !self.may_open(page, named_by, Step::Authorization) {
            return Input::Declined;
        }
        let asked = match &self.ready.login {
            Some((login, _)) => login.ask(url).await,
            None => Err(Declined::new("there is no way to ask a person")),
        };
        match asked {
            Ok(callback) => Input::Callback(callback),
            Err(declined) => {
                self.declined = Some(declined.to_string());
                Input::Declined
            }
        }
    }

    fn asserted(&mut self, answer: Result<Secret, String>) -> Input {
        match answer {
            Ok(assertion) => Input::Assertion(assertion),
            Err(why) => {
                self.declined = Some(format!("the application has no assertion: {why}"));
                Input::Declined
            }
        }
    }

    async fn save(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Granted(credential) => {
                let renewed =
                    self.before.as_ref().filter(|before| before.credential.is_of_same_login(credential));
                let was_stored = self.was_stored(credential);
                let (logouts, superseded) = (self.logouts, AtomicBool::new(false));
                let trusted = &self.server.config.settings.dangerous.trusted;
                let generation = self
                    .update(|record| {
                        let ended = (renewed.is_some() && self.server.logouts() != logouts)
                            || (was_stored && record.has_left_login(credential, trusted));
                        superseded.store(ended, Ordering::Relaxed);
                        if !ended {
                            record.set_credential(credential);
                        }
                        !ended
                    })
                    .await?;
                self.superseded = superseded.into_inner();
                self.generation = generation;
            }
            Change::RefreshRejected(rejected) => {
                self.server.forget_refresh(rejected);
                self.update(|record| record.reject_refresh(rejected)).await?;
            }
            Change::Bound { issuer, .. } => {
                self.update(|record| {
                    record.set_bound(issuer);
                    true
                })
                .await?;
            }
            Change::Registered(registration) => self.register(registration).await?,
            Change::Forgotten(registration) => self.unregister(registration).await?,
        }
        Ok(())
    }

    /// Changes the record of the server, and gives back its generation.
    async fn update(&self, change: impl Fn(&mut Record) -> bool + Sync) -> Result<u64, StoreError> {
        let (store, key) = (&self.server.config.store, &self.server.key);
        let _lock = match self.saving {
            Saving::Locked => None,
            Saving::Unlocked => store.lock(key).await?,
        };
        for last in (0..MAX_WRITES).rev() {
            let mut record = store.load(key).await?.unwrap_or_else(Record::empty);
            let before = record.generation();
            if !change(&mut record) {
                return Ok(before);
            }
            let record = record.after(before);
            let generation = record.generation();
            match store.save(key, record, before).await {
                Ok(()) => return Ok(generation),
                Err(error) if error.kind() == StoreErrorKind::Conflict && last > 0 => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::new(StoreErrorKind::Conflict, "others write the record at the same time"))
    }

    async fn register(&self, registration: &Registration) -> Result<(), StoreError> {
        let (store, key) = (&self.server.config.store, Key::client(registration.issuer.as_str()));
        let _lock = store.lock(&key).await?;
        let mut record = store.load(&key).await?.unwrap_or_else(Record::empty);
        let before = record.generation();
        record.set_registration(registration);
        store.save(&key, record.after(before), before).await
    }

    async fn unregister(&self, registration: &Registration) -> Result<(), StoreError> {
        let (store, key) = (&self.server.config.store, Key::client(registration.issuer.as_str()));
        let _lock = store.lock(&key).await?;
        let Some(record) = store.load(&key).await? else { return Ok(()) };
        match record.registration() {
            Ok(stored) if stored.client_id == registration.client_id => {
                store.remove(&key, record.generation()).await
            }
            _ => Ok(()),
        }
    }
}
