//! Requests of a server as they came, for those who pass them on.

use serde::Deserialize;
use toolwire_protocol::{MethodName, RawJson, Request, RequestId, RpcError, wire::InputRequest};

/// Something a server asks of its client, not decoded: a method, its parameters, and the call it came with. See
/// [`ClientBuilder::on_request`](crate::ClientBuilder::on_request).
#[derive(Clone, Debug)]
pub struct ServerRequest {
    method: MethodName,
    params: RawJson,
    during: Option<RequestId>,
}

impl ServerRequest {
    /// A request of a legacy server, which came while it worked on the request `during`, if that is known.
    pub(super) fn new(request: &Request, during: Option<RequestId>) -> Result<Self, RpcError> {
        let params = request.params.raw().map_err(|error| unreadable(&request.method, &error))?;
        Ok(Self { method: request.method.clone(), params, during })
    }

    /// A question that a modern server has put into a result.
    pub(super) fn of_round(question: &InputRequest) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Parts {
            params: Option<RawJson>,
        }

        let method = MethodName::from(question.method());
        let written = RawJson::of(question).and_then(|raw| raw.decode::<Parts>());
        let params = match written.map_err(|error| unreadable(&method, &error))?.params {
            Some(params) => params,
            None => RawJson::from(&serde_json::json!({})),
        };
        Ok(Self { method, params, during: None })
    }

    /// What is asked for.
    pub const fn method(&self) -> &MethodName {
        &self.method
    }

    /// Its parameters, to the byte as they came from a legacy server.
    pub const fn params(&self) -> &RawJson {
        &self.params
    }

    /// The request of this client that the server worked on when it asked; [`RawCall::on_id`](crate::RawCall::on_id)
    /// tells the ids. HTTP knows it, unless the server uses its own stream. A pipe does not, as all messages come the
    /// same way, and neither does a modern server's question need it: there the result of the call asks.
    pub const fn during(&self) -> Option<&RequestId> {
        self.during.as_ref()
    }
}

fn unreadable(method: &MethodName, error: &serde_json::Error) -> RpcError {
    RpcError::invalid_params(format!("{method}: {error}"))
}
