//! The methods that are about tasks.

use std::sync::Arc;

use toolwire_protocol::RpcError;

use super::service::TaskService;
use crate::{Context, handler::Answer};

/// Answers `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel` and `tasks/update`.
pub(super) fn serve(_service: Arc<TaskService>, cx: Context) -> Answer {
    let method = cx.method().as_str().to_owned();
    Box::pin(async move { Err(RpcError::method_not_found(&method)) })
}
