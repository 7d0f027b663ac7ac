//! Where a server keeps what must outlive a request, a connection or the process: tasks, sessions, streams, nonces.
//!
//! This crate has the traits, the records and a [store in memory](memory). A [`Store`] is a set of five parts, of one
//! maker or of several:
//!
//! * [`TaskStore`]: long work, who does it, and what it has come to;
//! * [`SessionStore`]: sessions of the legacy era, and which nodes are alive;
//! * [`EventLog`]: streams that can be resumed, and what nodes send each other;
//! * [`Bus`]: wakes, so that nobody has to ask all the time;
//! * [`NonceStore`]: what may be used only once.
//!
//! Values inside records are JSON that was sealed before, or was not: a store never reads them.
//!
//! What each operation promises is in its documentation; `toolwire_testkit::store::contract` tests it, for the stores
//! of this project and for yours.

mod bus;
mod error;
mod ids;
mod life;
pub mod limits;
mod log;
pub mod memory;
mod nonce;
#[doc(hidden)]
pub mod record;
mod session;
mod store;
mod task;
mod version;

use std::pin::Pin;

pub use bus::{Bus, Hub, Topic, Wake, Wakes};
pub use error::{Cause, StoreError};
pub use ids::{KeyId, NodeId, NotAnId, Owner, Quota, SessionKey, TaskId, Token};
pub use life::Life;
#[doc(hidden)]
pub use life::milliseconds;
pub use log::{Event, EventLog, Head, LogKey, LogState, NewHead, Slice};
pub use nonce::NonceStore;
pub use session::{SessionRecord, SessionStore};
pub use store::Store;
pub use task::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Finish, Lease, NewLease, NewTask,
    OpenQuestion, Outcome, Park, Renewed, TaskHead, TaskNote, TaskRequest, TaskStore, TaskView,
    pause_before_next,
};

/// An operation of a store that is under way.
///
/// It may be dropped. Then nobody knows whether it has happened, as with
/// [`StoreError::Unavailable`].
pub type Op<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
