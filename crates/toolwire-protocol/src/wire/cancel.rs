//! Cancelling a request.

use super::{Meta, macros::wire_struct};
use crate::RequestId;

wire_struct! {
    /// The parameters of `notifications/cancelled`.
    pub struct CancelledNotificationParams {
        /// The request to cancel. Only 2025-11-25 lets it be absent.
        request_id as "requestId"?: RequestId,
        /// Why, for a log or a person.
        reason?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}
