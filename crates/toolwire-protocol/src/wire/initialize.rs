//! The handshake of the legacy era.

use super::{ClientCapabilities, Implementation, Meta, ServerCapabilities, macros::wire_struct};

wire_struct! {
    /// The parameters of `initialize`.
    pub struct InitializeRequestParams {
        /// The newest revision the client speaks. It is text, because a server must answer one it does
        /// not know with one it does.
        protocol_version as "protocolVersion": String,
        /// What the client can do.
        capabilities: ClientCapabilities,
        /// What the client is.
        client_info as "clientInfo": Implementation,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}

wire_struct! {
    /// The result of `initialize`.
    pub struct InitializeResult {
        /// The revision the server has chosen.
        protocol_version as "protocolVersion": String,
        /// What the server can do.
        capabilities: ServerCapabilities,
        /// What the server is.
        server_info as "serverInfo": Implementation,
        /// How to use the server, for the model.
        instructions?: String,
        /// Metadata.
        meta as "_meta"?: Meta,
    }
}
