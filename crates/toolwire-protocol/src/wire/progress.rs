//! Progress of a request.

use super::{Meta, Number, macros::wire_struct};
use crate::ProgressToken;

wire_struct! {
    /// The parameters of `notifications/progress`.
    pub struct ProgressNotificationParams {
        /// The token that the request gave in its `_meta`.
        progress_token as "progressToken": ProgressToken,
        /// How far it is; it grows with every notification.
        progress: Number,
        /// How far it will go, if that is known.
        total?: Number,
        /// What is being done, since 2025-03-26.
        message?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}
