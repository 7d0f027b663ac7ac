//! The stable names of what can go wrong, each with the exit code it ends the program with.
//!
//! Scripts rely on both, so they may be added to but not changed. Each has its page: `toolwire explain CODE`.

/// Declares the codes once: the name in Rust, the name that is printed, the exit code.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $exit:literal;)*) => {
        /// What went wrong, by a name that does not change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// All codes, in the order of their exit codes.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name that is printed, and that `toolwire explain` takes.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the program ends with.
            pub(crate) const fn exit(self) -> u8 {
                match self { $(Self::$variant => $exit,)* }
            }
        }
    };
}

codes! {
    /// Nothing below fits.
    Other "other" 1;
    /// A file or the terminal could not be read or written.
    Io "io" 1;
    /// A file of settings cannot be understood.
    ConfigBroken "config-broken" 1;
    /// The server answered with a JSON-RPC error.
    RpcError "rpc-error" 1;
    /// The server does not offer what was asked for.
    NotSupported "not-supported" 1;
    /// The server asked something that nobody here could answer.
    Unanswerable "unanswerable" 1;
    /// Something was found that is not as it should be.
    Unhealthy "unhealthy" 1;
    /// A message of the server is larger than what is accepted.
    TooLarge "message-too-large" 1;
    /// A program of this name was started by one that was started by one, and so on.
    TooDeep "too-deep" 1;
    /// The server does not know the task any more.
    TaskExpired "task-expired" 1;
    /// The task was cancelled.
    TaskCancelled "task-cancelled" 1;
    /// The command line is not valid.
    Usage "usage" 2;
    /// No configured server has this name.
    UnknownServer "unknown-server" 2;
    /// The host has been told not to use the server.
    SwitchedOff "switched-off" 2;
    /// The server has no such tool, prompt or resource.
    UnknownName "unknown-name" 2;
    /// The server wants to know who is calling.
    AuthNeeded "auth-needed" 3;
    /// The server knows who is calling and does not allow it, or does not like the host or origin.
    Forbidden "forbidden" 3;
    /// The user has not trusted the file of the project that has the server.
    NotTrusted "not-trusted" 3;
    /// Somebody, or the issuer, did not go on with a login.
    LoginRefused "login-refused" 3;
    /// The server does not say where to log in.
    ResourceMetadataMissing "resource-metadata-missing" 3;
    /// The server's metadata are those of another server.
    ResourceMismatch "resource-mismatch" 3;
    /// The issuer's metadata, or its answer, are those of another issuer.
    IssuerMismatch "issuer-mismatch" 3;
    /// The issuer does not say where its endpoints are.
    IssuerMetadataMissing "issuer-metadata-missing" 3;
    /// The issuer does not say that it protects codes.
    PkceMissing "pkce-missing" 3;
    /// No client is known to the issuer.
    RegistrationImpossible "registration-impossible" 3;
    /// Metadata that are not valid, or lead where they must not.
    MetadataRefused "metadata-refused" 3;
    /// The issuer gives no tokens for this server.
    ResourceRefused "resource-refused" 3;
    /// Others can read what is stored.
    CredentialsExposed "credentials-exposed" 3;
    /// The server's program could not be started.
    SpawnFailed "spawn-failed" 4;
    /// Nothing answers at the address.
    Unreachable "unreachable" 4;
    /// The connection ended before the answer.
    ConnectionClosed "connection-closed" 4;
    /// The server took too long.
    Timeout "timeout" 4;
    /// Something answers at the address, but not the protocol.
    NotMcp "not-mcp" 4;
    /// Client and server have no protocol version in common.
    NoCommonVersion "no-common-version" 4;
    /// A store of tasks does not answer, or is full.
    StoreUnreachable "store-unreachable" 4;
    /// The tool ran and failed.
    ToolError "tool-error" 5;
    /// The arguments are not what the schema allows.
    InvalidArguments "invalid-arguments" 6;
    /// The server's answer is not what the protocol or its own schema allows.
    InvalidAnswer "invalid-answer" 6;
    /// A task waits for an answer that this run cannot give.
    InputRequired "input-required" 7;
    /// Ctrl-C.
    Interrupted "interrupted" 130;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_for_a_command_line_and_exit_codes_in_order() {
        for code in Code::ALL {
            assert!(code.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{code:?}");
        }
        assert!(Code::ALL.is_sorted_by_key(|code| code.exit()));
    }
}
