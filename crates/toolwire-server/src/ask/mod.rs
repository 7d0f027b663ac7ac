//! Asking the user, the model or the roots from inside a handler.
//!
//! A handler writes `cx.elicit::<Confirm>("Delete 12 files?").await?` and gets an answer. How, is chosen when the
//! call starts (`asking`): the client is sent a request on the stream of the call (`live`), or it gets the questions
//! as the result of the call, and the handler is run again when it retries with the answers (`journal`). The handler cannot tell the difference, as long as it follows the rules on
//! [`Context::elicit`](crate::Context::elicit).

mod answer;
mod asking;
mod context;
mod durable;
mod elicit;
mod extract;
mod journal;
mod live;
mod need_input;
mod nonces;
mod question;
mod sealing;

pub use answer::{Answer, AskError};
pub(crate) use asking::Asking;
pub use elicit::{Elicit, ElicitUrl, UrlAnswer};
pub use extract::{Ask, Question};
pub(crate) use journal::{Journal, Waits};
pub(crate) use live::{Asks, weight as answer_weight, write_question};
pub use need_input::NeedInput;
pub(crate) use need_input::live_rounds;
pub use nonces::{MemoryNonces, NonceError, NonceStore};
pub(crate) use question::check_capability;
pub use question::{ListRoots, Sample};
pub use sealing::StateKeys;
pub(crate) use sealing::random;

use std::time::Duration;

/// How many rounds one request may take. Clients give up after as many.
pub(crate) const MAX_ROUNDS: u32 = 10;

/// How long a live question waits for its answer unless it says otherwise. People need their time.
pub(crate) const DEFAULT_ASK_TIME: Duration = Duration::from_secs(600);
