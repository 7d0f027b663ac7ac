//! The one decision: whether a request may reach its handler.

use serde::Deserialize;
use toolwire_protocol::{
    Method, MethodName, Params, Request, RpcError,
    peek::Peek,
    wire::{CompletionReference, SubscriptionsListenRequestParams},
};

use super::{Lack, Principal, Scopes, Viewer, policy::Access};
use crate::{Context, Server, catalog::Catalog, engine::Incoming};

impl Server {
    /// Whether a request may reach its handler: the caller is known where it must be, and has the scopes that are
    /// needed. What is hidden from the caller needs nothing, since it does not exist.
    ///
    /// A [`Call`](crate::engine::Call) asks this by itself.
    ///
    /// # Errors
    /// What the caller is missing.
    pub fn admit(&self, request: &Request, peek: &Peek, principal: Option<&Principal>) -> Result<(), Lack> {
        if !self.is_guarded() {
            return Ok(());
        }
        let mut decision = Decision::new(self, principal);
        decision.request(&self.catalog(), &request.method, &request.params, peek);
        decision.outcome()
    }

    /// The same for all requests of a batch: either all of them may start, or none.
    ///
    /// # Errors
    /// What the caller is missing, with everything that the requests need together.
    pub fn admit_batch(
        &self,
        messages: &[(Incoming, Box<Peek>)],
        principal: Option<&Principal>,
    ) -> Result<(), Lack> {
        if !self.is_guarded() {
            return Ok(());
        }
        let catalog = self.catalog();
        let mut decision = Decision::new(self, principal);
        for (message, peek) in messages {
            if let Incoming::Request(request, _) = message {
                decision.request(&catalog, &request.method, &request.params, peek);
            }
        }
        decision.outcome()
    }

    /// Which scopes include others, as [`scope_implies`](crate::ServerBuilder::scope_implies) has said.
    pub fn scope_rules(&self) -> &super::ScopeRules {
        &self.policy().rules
    }
}

impl Context {
    /// Makes sure that the caller has these scopes, for those that depend on the arguments. What a route always needs
    /// is better said by [`scopes`](crate::ToolRoute::scopes).
    ///
    /// ```
    /// use toolwire_server::{Context, Server, ToolError, tool};
    ///
    /// async fn share(cx: Context) -> Result<&'static str, ToolError> {
    ///     cx.require(["files:share"])?;
    ///     Ok("shared")
    /// }
    ///
    /// let server = Server::builder("files", "1.0").tool(tool("share", share)).build().unwrap();
    /// ```
    ///
    /// # Errors
    /// The answer to the request, to be handed on with `?`. If it is the first thing that the caller hears, HTTP
    /// answers with 401 or 403 and names everything that the operation needs.
    pub fn require(&self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Result<(), RpcError> {
        let mut access = Access::new(true);
        access.require(scopes).map_err(|error| {
            tracing::error!(%error, request = ?self, "Context::require was asked for something that is not a scope");
            RpcError::internal("the handler asks for a scope that is not valid")
        })?;
        self.check_access(&access)
    }

    /// Whether the caller may use what asks for `access`.
    pub(crate) fn check_access(&self, access: &Access) -> Result<(), RpcError> {
        if access.is_open() {
            return Ok(());
        }
        let server = self.server();
        let mut decision = Decision::new(server, self.principal());
        decision.add(access);
        decision.request(&server.catalog(), self.method(), self.params(), &self.0.peek);
        decision.outcome().map_err(|lack| self.lacking(lack))
    }

    /// Remembers what the caller is missing, for the answer.
    pub(crate) fn lacking(&self, lack: Lack) -> RpcError {
        let error = lack.rpc_error();
        *self.0.lack.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Box::new(lack));
        error
    }

    /// What the caller is missing, if that is why the request has failed with this error.
    pub(crate) fn lack_behind(&self, error: &RpcError) -> Option<Box<Lack>> {
        let lack = self.0.lack.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        lack.as_ref().filter(|lack| lack.rpc_error() == *error).cloned()
    }
}

/// A decision about everything that a request touches, or all requests of a batch do.
struct Decision<'a> {
    viewer: Viewer<'a>,
    /// How many resources may be listened to; a request for more is refused by whoever serves it, and need not be
    /// looked at any further.
    subscriptions: usize,
    needs: Scopes,
    lack: Option<Lack>,
}

/// The parameters of `completion/complete`, as far as they say what is completed.
#[derive(Deserialize)]
struct Completing {
    #[serde(rename = "ref")]
    reference: CompletionReference,
}

impl<'a> Decision<'a> {
    fn new(server: &'a Server, principal: Option<&'a Principal>) -> Self {
        let (viewer, subscriptions) = (server.viewer(principal), server.limits().subscriptions);
        Self { viewer, subscriptions, needs: Scopes::new(), lack: None }
    }

    fn add(&mut self, access: &Access) {
        if let Ok(needs) = self.needs.union(access.scopes()) {
            self.needs = needs;
        }
        if let Err(lack) = access.check(&self.viewer.policy().rules, self.viewer.principal()) {
            self.lack = Some(match self.lack.take() {
                Some(known) => known.and(&lack),
                None => lack,
            });
        }
    }

    fn request(&mut self, catalog: &Catalog, method: &MethodName, params: &Params, peek: &Peek) {
        let method = match method {
            MethodName::Known(method) => *method,
            MethodName::Unknown(name) => {
                if let Some(access) = self.viewer.policy().methods.get(&**name) {
                    self.add(access);
                }
                return;
            }
        };
        let viewer = self.viewer;
        match method {
            Method::CallTool => {
                let route = peek.name.as_deref().and_then(|name| catalog.tools.get(name, &viewer));
                self.add_all(route.map(|route| &route.needs.access));
            }
            Method::GetPrompt => {
                let route = peek.name.as_deref().and_then(|name| catalog.prompts.get(name, &viewer));
                self.add_all(route.map(|route| &route.needs.access));
            }
            Method::ReadResource | Method::Subscribe => {
                self.add_all(peek.uri.as_deref().and_then(|uri| catalog.access_of(uri, &viewer)));
            }
            // What cannot be decoded has no route, and is refused by whoever decodes it in full.
            Method::Complete => match params.decode::<Completing>().map(|params| params.reference) {
                Ok(CompletionReference::Prompt(prompt)) => {
                    let route = catalog.prompts.get(&prompt.name, &viewer);
                    self.add_all(route.map(|route| &route.needs.access));
                }
                Ok(CompletionReference::Resource(template)) => {
                    let route = catalog.templates.get(&template.uri, &viewer);
                    self.add_all(route.map(|route| &route.needs.access));
                }
                _ => {}
            },
            Method::Listen => {
                let Ok(params) = params.decode::<SubscriptionsListenRequestParams>() else { return };
                let uris = params.notifications.resource_subscriptions.unwrap_or_default();
                for uri in uris.iter().take(self.subscriptions) {
                    self.add_all(catalog.access_of(uri, &viewer));
                }
            }
            _ => {}
        }
    }

    fn add_all<'r>(&mut self, accesses: impl IntoIterator<Item = &'r Access>) {
        accesses.into_iter().for_each(|access| self.add(access));
    }

    fn outcome(self) -> Result<(), Lack> {
        let Some(lack) = self.lack else { return Ok(()) };
        let all = if lack.is_anonymous() { Lack::principal(self.needs) } else { Lack::scopes(self.needs) };
        Err(lack.and(&all))
    }
}
