//! For whom changes are read.

use crate::{Context, Principal, Server};

/// Who hears of changes, and from whom some things may be hidden.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    server: Server,
    principal: Option<Principal>,
}

impl Reader {
    /// Whoever sends a request.
    pub(crate) fn of(cx: &Context) -> Self {
        Self::new(cx.server(), cx.principal())
    }

    pub(crate) fn new(server: &Server, principal: Option<&Principal>) -> Self {
        Self { server: server.clone(), principal: principal.cloned() }
    }

    pub(super) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    pub(super) fn conceals(&self, uri: &str) -> bool {
        self.server.conceals(uri, self.principal.as_ref())
    }
}
