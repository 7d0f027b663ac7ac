//! The logins of this program: where they are kept, how they were made, and who uses them.
//!
//! Only `toolwire login` asks a person. Every other command takes what is stored, renewed when it is due, and says what
//! to type where that is not enough.

mod chain;
mod fault;
mod settings;
mod site;
mod store;
mod walk;

use toolwire::auth::client::{
    Event, OAuth, Step, Verdict,
    store::{CredentialStore as _, FileStore, StoreErrorKind, Summary},
};

pub(crate) use chain::ChainOptions;
pub(crate) use fault::{advice, failure, problem, unstored};
pub(crate) use settings::Settings;
pub(crate) use site::{Knock, Site};
pub(crate) use store::{Keeper, folder};
pub(crate) use walk::{Hop, Walk, walk};

use crate::{
    failure::{Code, Failure, Result},
    target::{Address, Target},
    terminal::{self, printable},
};

/// The name that people see in consent screens.
pub(crate) const CLIENT_NAME: &str = "Toolwire";

/// What gives the requests to a server the stored login, if there is one and nothing else says who is calling.
pub(crate) async fn stored(target: &Target) -> Result<Option<OAuth>> {
    if target.address.has_credentials() {
        return Ok(None);
    }
    let (Ok(store), Some(site)) = (folder(), Site::of(&target.typed(), &target.address)) else {
        return Ok(None);
    };
    let settings = Settings::load(&store, &site)?;
    let Ok(key) = site.key(&settings) else { return Ok(None) };
    match Keeper::new(store.clone()).load(&key).await {
        Ok(None) => Ok(None),
        Ok(Some(_)) => {
            let oauth = settings.oauth().store(Keeper::new(store)).on_event(warn).build();
            oauth.map(Some).map_err(|error| failure(&error, &site))
        }
        Err(error) => Err(unstored(error.kind(), &error.to_string(), &store.path(&key))),
    }
}

/// Tells what went wrong where a login is kept: the next command may have to log in again for it.
fn warn(event: &Event) {
    if event.step == Step::Store && event.verdict == Verdict::Warning {
        terminal::warn(printable(&event.detail));
    }
}

/// What is stored for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Nothing.
    Nothing,
    /// A login.
    Login(Box<Summary>),
    /// Something that is not used, for this reason.
    Refused(StoreErrorKind, String),
}

/// Looks what is stored for a server.
pub(crate) async fn look(site: &Site) -> Stored {
    let Ok(store) = folder() else { return Stored::Nothing };
    let settings = match Settings::load(&store, site) {
        Ok(settings) => settings,
        Err(failure) if failure.code() == Code::CredentialsExposed => {
            return Stored::Refused(StoreErrorKind::Exposed, failure.to_string());
        }
        Err(_) => Settings::default(),
    };
    let Ok(key) = site.key(&settings) else { return Stored::Nothing };
    match Keeper::new(store).load(&key).await.map(|record| record.map(|record| record.summary())) {
        Ok(Some(Ok(Some(summary)))) => Stored::Login(Box::new(summary)),
        Ok(None | Some(Ok(None))) => Stored::Nothing,
        Ok(Some(Err(error))) | Err(error) => Stored::Refused(error.kind(), error.to_string()),
    }
}

/// The server that a word means, which has to be at a URL.
pub(crate) fn site(word: &str, gate: crate::trust::Gate) -> Result<Site> {
    let address = match Address::parse(word) {
        Some(address) => address,
        None => crate::config::address(word, gate)?,
    };
    crate::redact::learn(&address);
    let name = if Address::parse(word).is_some() { address.to_string() } else { word.to_owned() };
    Site::of(&name, &address).ok_or_else(|| {
        let text = "only servers at a URL have logins, and this is none";
        Failure::new(Code::Usage, text).hint("a program is told by a variable: --env NAME=VALUE")
    })
}

/// The store, or why there is none.
pub(crate) fn store_of_user() -> Result<FileStore> {
    folder().map_err(|error| unstored(error.kind(), &error.to_string(), std::path::Path::new("")))
}
