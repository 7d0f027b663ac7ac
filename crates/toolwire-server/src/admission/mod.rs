//! Who may come in, and how much may be held for whom.
//!
//! There is one ledger for the server, one below it for each caller, and one below that for each connection or
//! session. A request cannot become a [`Call`](crate::engine::Call) without a place on them, whichever way it came
//! in, so all ways in have the same limits.

mod caller;
mod requests;
mod usage;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use toolwire_protocol::{ErrorCode, Message, RpcError, envelope::write_error};
use toolwire_transport::{
    internal::QuickHash,
    ledger::{Account, Ceilings, Charge, Ledger, LimitReached, WeakLedger},
};

pub use caller::CallerKey;
pub(crate) use requests::{Admitted, Waiting};
pub use requests::{Refusal, Requests};
pub use usage::Usage;

use crate::{Limits, Server};

/// The ledgers of a server.
#[derive(Debug)]
pub(crate) struct Admission {
    process: Ledger,
    per_caller: Arc<Ceilings>,
    per_connection: Arc<Ceilings>,
    callers: Mutex<HashMap<CallerKey, WeakLedger, QuickHash>>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            process: Ledger::root(Ceilings {
                requests: ("requests", limits.requests),
                listeners: ("listeners", limits.listeners),
                bytes: ("held_bytes", limits.held_bytes),
                ..Ceilings::NONE
            }),
            per_caller: Arc::new(Ceilings {
                requests: ("requests_per_caller", limits.requests_per_caller),
                listeners: ("listeners_per_caller", limits.listeners_per_caller),
                sessions: ("sessions_per_caller", limits.sessions_per_caller),
                bytes: ("held_bytes_per_caller", limits.held_bytes_per_caller),
            }),
            per_connection: Arc::new(Ceilings {
                bytes: ("held_bytes_per_connection", limits.held_bytes_per_connection),
                ..Ceilings::NONE
            }),
            callers: Mutex::default(),
        }
    }

    fn of_caller(&self, key: CallerKey) -> Ledger {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = callers.get_mut(&key) {
            return place.upgrade().unwrap_or_else(|| {
                let ledger = self.process.child(Arc::clone(&self.per_caller));
                *place = ledger.downgrade();
                ledger
            });
        }
        // Those of whom nothing is left are taken out before the table grows.
        if callers.len() == callers.capacity() {
            callers.retain(|_, known| !known.is_gone());
        }
        let ledger = self.process.child(Arc::clone(&self.per_caller));
        callers.insert(key, ledger.downgrade());
        ledger
    }
}

impl Server {
    /// What this server holds for all of its callers.
    pub fn ledger(&self) -> &Ledger {
        &self.admission().process
    }

    /// What it holds for one caller. All connections of a caller share it.
    pub fn caller_ledger(&self, caller: CallerKey) -> Ledger {
        self.admission().of_caller(caller)
    }

    /// A ledger for one connection or session, below that of its caller.
    pub fn connection_ledger(&self, caller: &Ledger) -> Ledger {
        caller.child(Arc::clone(&self.admission().per_connection))
    }
}

/// The place of one request on the ledgers, until it is answered.
#[derive(Debug)]
pub(crate) struct Place {
    _request: Charge,
    _bytes: Charge,
}

impl Place {
    /// Takes the place of a request whose bytes nobody has charged yet.
    pub(crate) fn take(ledger: &Ledger, listener: bool, bytes: usize) -> Result<Self, LimitReached> {
        let bytes = ledger.charge(Account::RequestBytes, bytes)?;
        Self::with_bytes(ledger, listener, bytes)
    }

    /// Takes the place of a request whose bytes were charged while they were read.
    pub(crate) fn with_bytes(ledger: &Ledger, listener: bool, bytes: Charge) -> Result<Self, LimitReached> {
        let account = if listener { Account::Listeners } else { Account::Requests };
        Ok(Self { _request: ledger.charge(account, 1)?, _bytes: bytes })
    }
}

/// What a caller is told when a limit is met: which one, and that it may try again.
pub(crate) fn busy(reached: &LimitReached) -> RpcError {
    let data = serde_json::json!({ "limit": reached.limit_name() });
    RpcError::new(ErrorCode::INTERNAL_ERROR, format!("the server is busy: {reached}; try again later"))
        .with_data(&data)
}

/// The length up to which an answer is sent whatever the ledgers say: 1 KiB, as much as the error that would take its place.
pub(crate) const LIGHT_BYTES: usize = 1024;

/// Writes the error that takes the place of an answer for which there is no room.
///
/// It does not ask to try again, as the refusal of a request does: this request was carried out.
#[must_use]
pub fn no_room(answer: &Bytes, reached: &LimitReached) -> Bytes {
    tracing::warn!(%reached, bytes = answer.len(), "there was no room for an answer");
    let id = match Message::parse(answer) {
        Ok(Message::Response(answer)) => answer.id,
        _ => None,
    };
    let text = format!(
        "there is no room for the answer: {reached}; ask for less at once, or read other answers first"
    );
    let data = serde_json::json!({ "limit": reached.limit_name() });
    write_error(id.as_ref(), &RpcError::internal(text).with_data(&data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_whom_nothing_is_left_are_forgotten_and_others_are_not() {
        let admission = Admission::new(&Limits::default());
        let key = |number: u32| CallerKey::address(std::net::Ipv4Addr::from(number).into());
        let here = admission.of_caller(key(0));
        let _held = here.charge(Account::Requests, 1).unwrap();
        for number in 1..10_000 {
            drop(admission.of_caller(key(number)));
        }
        let known = admission.callers.lock().unwrap().len();
        assert!(known < 1000, "{known} are known, one of them is there");
        assert_eq!(admission.of_caller(key(0)).used(Account::Requests), 1, "it is the same ledger");
        assert_eq!(admission.of_caller(key(1)).used(Account::Requests), 0);
    }
}
