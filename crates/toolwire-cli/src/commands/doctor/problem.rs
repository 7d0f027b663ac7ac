//! The stable names of what can be found, each with how bad it is.
//!
//! Scripts rely on the names, so they may be added to but not changed. Each has its page: `toolwire explain CODE`.

use crate::failure::Code;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The server cannot be used, or a part of it.
    Error,
    /// It works here, and will not everywhere.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    /// The word that is printed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Declares the problems once: the name in Rust, the name that is printed, how bad it is, the code that the
/// program ends with when it counts as an error.
macro_rules! problems {
    ($($(#[$doc:meta])* $variant:ident $name:literal $severity:ident $code:ident;)*) => {
        /// What is wrong, by a name that does not change. The order is that of causes before consequences.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Problem {
            $($(#[$doc])* $variant,)*
        }

        impl Problem {
            /// All problems, in the order in which they are told.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name that is printed, and that `toolwire explain` takes.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How bad it is.
            pub(crate) const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What the program ends with.
            pub(crate) const fn code(self) -> Code {
                match self { $(Self::$variant => Code::$code,)* }
            }
        }
    };
}

problems! {
    /// The configuration of the server cannot be understood.
    ConfigBroken "config-broken" Error ConfigBroken;
    /// The file of the project with the server is not trusted.
    NotTrusted "not-trusted" Error NotTrusted;
    /// The folder to start it in does not exist.
    DirectoryMissing "directory-missing" Error SpawnFailed;
    /// The program is not there.
    ProgramNotFound "program-not-found" Error SpawnFailed;
    /// The program may not be run.
    ProgramNotExecutable "program-not-executable" Error SpawnFailed;
    /// The interpreter of the script is not there.
    InterpreterMissing "interpreter-missing" Error SpawnFailed;
    /// It could not be started for some other reason.
    SpawnFailed "spawn-failed" Error SpawnFailed;
    /// It ended before it answered.
    ExitsAtOnce "exits-at-once" Error ConnectionClosed;
    /// The name of the host is not known.
    DnsFailed "dns-failed" Error Unreachable;
    /// Nobody listens at the port.
    ConnectionRefused "connection-refused" Error Unreachable;
    /// TLS is spoken on one side only.
    TlsMismatch "tls-mismatch" Error Unreachable;
    /// The certificate is not trusted.
    TlsCertificate "tls-certificate" Error Unreachable;
    /// The server wants to know who is calling.
    AuthNeeded "auth-needed" Error AuthNeeded;
    /// Others can read the stored login.
    CredentialsExposed "credentials-exposed" Error CredentialsExposed;
    /// The stored login is over.
    LoginExpired "login-expired" Error AuthNeeded;
    /// The stored login, or a new one, is refused.
    LoginRefused "login-refused" Error LoginRefused;
    /// The stored login lacks scopes.
    ScopeMissing "scope-missing" Error Forbidden;
    /// The server does not say where to log in.
    ResourceMetadataMissing "resource-metadata-missing" Error ResourceMetadataMissing;
    /// The server's metadata are those of another server.
    ResourceMismatch "resource-mismatch" Error ResourceMismatch;
    /// The issuer's metadata are those of another issuer.
    IssuerMismatch "issuer-mismatch" Error IssuerMismatch;
    /// The issuer does not say where its endpoints are.
    IssuerMetadataMissing "issuer-metadata-missing" Error IssuerMetadataMissing;
    /// The issuer does not say that it protects codes.
    PkceMissing "pkce-missing" Error PkceMissing;
    /// No client is known to the issuer.
    RegistrationImpossible "registration-impossible" Error RegistrationImpossible;
    /// Metadata that are not valid, or lead where they must not.
    MetadataRefused "metadata-refused" Error MetadataRefused;
    /// The issuer gives no tokens for this server.
    ResourceRefused "resource-refused" Error ResourceRefused;
    /// The server does not serve this name.
    HostRefused "host-refused" Error Forbidden;
    /// The server does not allow it.
    Forbidden "forbidden" Error Forbidden;
    /// The server sends us elsewhere.
    Redirected "redirected" Error NotMcp;
    /// The server is at another path.
    WrongPath "wrong-path" Error NotMcp;
    /// A web page answers.
    WebPage "web-page" Error NotMcp;
    /// The server does not take such requests.
    MethodRefused "method-refused" Error NotMcp;
    /// Too many requests.
    RateLimited "rate-limited" Error Unreachable;
    /// A fault of the server.
    ServerFailing "server-failing" Error Unreachable;
    /// What answers is not the protocol.
    NotMcp "not-mcp" Error NotMcp;
    /// No version in common.
    NoCommonVersion "no-common-version" Error NoCommonVersion;
    /// No answer in time.
    Timeout "timeout" Error Timeout;
    /// Nothing answers.
    Unreachable "unreachable" Error Unreachable;
    /// The connection ended.
    ConnectionClosed "connection-closed" Error ConnectionClosed;
    /// The answer is not what the protocol allows.
    InvalidAnswer "invalid-answer" Error InvalidAnswer;
    /// The first message was answered with an error.
    RpcError "rpc-error" Error RpcError;
    /// Something else.
    Other "other" Error Other;
    /// A list fails.
    ListFailed "list-failed" Error Unhealthy;
    /// A list has no end.
    ListEndless "list-endless" Error Unhealthy;
    /// A schema is not valid.
    SchemaInvalid "schema-invalid" Error Unhealthy;
    /// A schema is not that of an object.
    SchemaNotObject "schema-not-object" Error Unhealthy;
    /// Two tools have the same name.
    DuplicateName "duplicate-name" Error Unhealthy;
    /// Lines on standard output that are no messages.
    JunkOnStdout "junk-on-stdout" Warning Unhealthy;
    /// It does not survive the first message of a modern client.
    DiesOnDiscover "dies-on-discover" Warning Unhealthy;
    /// A challenge that cannot be read.
    ChallengeUnreadable "challenge-unreadable" Warning AuthNeeded;
    /// The issuer is spelled with a slash more or less.
    IssuerSlash "issuer-slash" Warning Unhealthy;
    /// The clocks differ.
    ClockWrong "clock-wrong" Warning Unhealthy;
    /// It takes long to start.
    SlowStart "slow-start" Warning Unhealthy;
    /// Requests go through a proxy.
    ProxyInUse "proxy-in-use" Note Unreachable;
    /// It has only the transport of the first revision.
    SseOnly "sse-only" Warning Unhealthy;
    /// It offers nothing.
    NothingOffered "nothing-offered" Warning Unhealthy;
    /// A name that some hosts refuse.
    ToolName "tool-name" Warning Unhealthy;
    /// Text that people do not see and models do.
    HiddenText "hidden-text" Warning Unhealthy;
    /// A description that gives orders to the model.
    DescriptionSuspicious "description-suspicious" Warning Unhealthy;
    /// A schema that some hosts refuse.
    SchemaNotPortable "schema-not-portable" Warning Unhealthy;
    /// A tool without a description.
    DescriptionMissing "description-missing" Warning Unhealthy;
    /// More tools than hosts take.
    TooManyTools "too-many-tools" Warning Unhealthy;
    /// A catalog that takes much context.
    CatalogLarge "catalog-large" Warning Unhealthy;
    /// A description that some hosts refuse.
    DescriptionLong "description-long" Warning Unhealthy;
    /// A dangerous tool that does not say so.
    AnnotationsMissing "annotations-missing" Note Unhealthy;
    /// Arguments without descriptions.
    ArgumentUndescribed "argument-undescribed" Note Unhealthy;
    /// A schema with parts that some hosts ignore.
    SchemaUnusual "schema-unusual" Note Unhealthy;
    /// Hosts on the desktop may not find the program.
    PathDiffers "path-differs" Note Unhealthy;
    /// It speaks only 2026-07-28.
    ModernOnly "modern-only" Note Unhealthy;
    /// It speaks only versions with a handshake.
    LegacyOnly "legacy-only" Note Unhealthy;
}
