//! The static table of every method of every revision.
//!
//! One row says who sends it, in which revisions it exists, what the server must have advertised for
//! it, and how the rest of the rules treat it. Nothing else in the workspace lists methods.

use std::fmt;

use crate::Version;

/// Who may send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two ends, and some messages go both ways")]
pub enum Sender {
    /// Only the client.
    Client,
    /// Only the server.
    Server,
    /// Either end.
    Both,
}

/// Whether an answer is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these two")]
pub enum Kind {
    /// Has an id and is answered.
    Request,
    /// Has no id and is never answered.
    Notification,
}

/// The part of the server's capabilities that has to be advertised for a method to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerCapability {
    /// `tools`
    Tools,
    /// `resources`
    Resources,
    /// `resources.subscribe`
    ResourcesSubscribe,
    /// `prompts`
    Prompts,
    /// `completions`
    Completions,
    /// `logging`
    Logging,
    /// `tasks` (2025-11-25), or the extension `io.modelcontextprotocol/tasks` (2026-07-28)
    Tasks,
}

/// Which parameter the HTTP header `Mcp-Name` mirrors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameSource {
    /// `params.name`
    Name,
    /// `params.uri`
    Uri,
    /// `params.taskId`
    TaskId,
}

/// One row of the method table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodInfo {
    /// The method as it stands on the wire.
    pub name: &'static str,
    /// Who may send it.
    pub sender: Sender,
    /// Request or notification.
    pub kind: Kind,
    /// The first revision that has it.
    pub since: Version,
    /// The last revision that has it.
    pub until: Version,
    /// What the server must advertise.
    pub needs: Option<ServerCapability>,
    /// What `Mcp-Name` mirrors.
    pub name_header: Option<NameSource>,
    /// Whether the result may be `input_required` (2026-07-28).
    pub multi_round_trip: bool,
    /// Whether a complete result carries caching hints (2026-07-28).
    pub cacheable: bool,
    /// Whether it stays open until something happens, however long that takes.
    pub open_ended: bool,
}

impl MethodInfo {
    const fn new(name: &'static str, sender: Sender, kind: Kind, since: Version, until: Version) -> Self {
        Self {
            name,
            sender,
            kind,
            since,
            until,
            needs: None,
            name_header: None,
            multi_round_trip: false,
            cacheable: false,
            open_ended: false,
        }
    }

    const fn needs(mut self, capability: ServerCapability) -> Self {
        self.needs = Some(capability);
        self
    }

    const fn named_by(mut self, source: NameSource) -> Self {
        self.name_header = Some(source);
        self
    }

    const fn multi_round_trip(mut self) -> Self {
        self.multi_round_trip = true;
        self
    }

    const fn cacheable(mut self) -> Self {
        self.cacheable = true;
        self
    }

    const fn open_ended(mut self) -> Self {
        self.open_ended = true;
        self
    }

    /// Whether `version` has the method.
    pub fn exists_in(&self, version: Version) -> bool {
        self.since <= version && version <= self.until
    }

    /// Whether the client may send it in `version`.
    pub fn from_client(&self, version: Version) -> bool {
        self.exists_in(version)
            && match self.sender {
                Client => true,
                // A modern client is never asked anything, so it has no progress to report.
                Both => !version.is_modern() || self.name != Method::Progress.as_str(),
                Server => false,
            }
    }
}

macro_rules! methods {
    ($( $(#[$doc:meta])* $variant:ident = $info:expr; )+) => {
        /// A method of the protocol.
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $( $(#[$doc])* $variant, )+
        }

        impl Method {
            /// Every method of every revision.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The method's row in the table.
            pub const fn info(self) -> &'static MethodInfo {
                match self {
                    $( Self::$variant => const { &$info }, )+
                }
            }
        }
    };
}

use Kind::{Notification, Request};
use Sender::{Both, Client, Server};
use Version::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

methods! {
    /// `initialize`
    Initialize = MethodInfo::new("initialize", Client, Request, V2024_11_05, V2025_11_25);
    /// `notifications/initialized`
    Initialized = MethodInfo::new("notifications/initialized", Client, Notification, V2024_11_05, V2025_11_25);
    /// `ping`
    Ping = MethodInfo::new("ping", Both, Request, V2024_11_05, V2025_11_25);
    /// `server/discover`
    Discover = MethodInfo::new("server/discover", Client, Request, V2026_07_28, V2026_07_28).cacheable();
    /// `tools/list`
    ListTools = MethodInfo::new("tools/list", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Tools).cacheable();
    /// `tools/call`
    CallTool = MethodInfo::new("tools/call", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Tools).named_by(NameSource::Name).multi_round_trip();
    /// `prompts/list`
    ListPrompts = MethodInfo::new("prompts/list", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Prompts).cacheable();
    /// `prompts/get`
    GetPrompt = MethodInfo::new("prompts/get", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Prompts).named_by(NameSource::Name).multi_round_trip();
    /// `resources/list`
    ListResources = MethodInfo::new("resources/list", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Resources).cacheable();
    /// `resources/templates/list`
    ListResourceTemplates = MethodInfo::new("resources/templates/list", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Resources).cacheable();
    /// `resources/read`
    ReadResource = MethodInfo::new("resources/read", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Resources).named_by(NameSource::Uri).multi_round_trip().cacheable();
    /// `resources/subscribe`
    Subscribe = MethodInfo::new("resources/subscribe", Client, Request, V2024_11_05, V2025_11_25)
        .needs(ServerCapability::ResourcesSubscribe);
    /// `resources/unsubscribe`
    Unsubscribe = MethodInfo::new("resources/unsubscribe", Client, Request, V2024_11_05, V2025_11_25)
        .needs(ServerCapability::ResourcesSubscribe);
    /// `subscriptions/listen`
    Listen = MethodInfo::new("subscriptions/listen", Client, Request, V2026_07_28, V2026_07_28).open_ended();
    /// `logging/setLevel`
    SetLevel = MethodInfo::new("logging/setLevel", Client, Request, V2024_11_05, V2025_11_25)
        .needs(ServerCapability::Logging);
    /// `completion/complete`
    Complete = MethodInfo::new("completion/complete", Client, Request, V2024_11_05, V2026_07_28)
        .needs(ServerCapability::Completions);
    /// `tasks/get`
    GetTask = MethodInfo::new("tasks/get", Both, Request, V2025_11_25, V2026_07_28)
        .needs(ServerCapability::Tasks).named_by(NameSource::TaskId);
    /// `tasks/result`
    GetTaskPayload = MethodInfo::new("tasks/result", Both, Request, V2025_11_25, V2025_11_25)
        .needs(ServerCapability::Tasks).open_ended();
    /// `tasks/list`
    ListTasks = MethodInfo::new("tasks/list", Both, Request, V2025_11_25, V2025_11_25)
        .needs(ServerCapability::Tasks);
    /// `tasks/cancel`
    CancelTask = MethodInfo::new("tasks/cancel", Both, Request, V2025_11_25, V2026_07_28)
        .needs(ServerCapability::Tasks).named_by(NameSource::TaskId);
    /// `tasks/update`
    UpdateTask = MethodInfo::new("tasks/update", Client, Request, V2026_07_28, V2026_07_28)
        .needs(ServerCapability::Tasks).named_by(NameSource::TaskId);
    /// `notifications/cancelled`
    Cancelled = MethodInfo::new("notifications/cancelled", Both, Notification, V2024_11_05, V2026_07_28);
    /// `notifications/progress`
    Progress = MethodInfo::new("notifications/progress", Both, Notification, V2024_11_05, V2026_07_28);
    /// `notifications/roots/list_changed`
    RootsListChanged =
        MethodInfo::new("notifications/roots/list_changed", Client, Notification, V2024_11_05, V2025_11_25);
    /// `sampling/createMessage`
    CreateMessage = MethodInfo::new("sampling/createMessage", Server, Request, V2024_11_05, V2026_07_28);
    /// `elicitation/create`
    Elicit = MethodInfo::new("elicitation/create", Server, Request, V2025_06_18, V2026_07_28);
    /// `roots/list`
    ListRoots = MethodInfo::new("roots/list", Server, Request, V2024_11_05, V2026_07_28);
    /// `notifications/message`
    LoggingMessage = MethodInfo::new("notifications/message", Server, Notification, V2024_11_05, V2026_07_28);
    /// `notifications/tools/list_changed`
    ToolListChanged =
        MethodInfo::new("notifications/tools/list_changed", Server, Notification, V2024_11_05, V2026_07_28);
    /// `notifications/prompts/list_changed`
    PromptListChanged =
        MethodInfo::new("notifications/prompts/list_changed", Server, Notification, V2024_11_05, V2026_07_28);
    /// `notifications/resources/list_changed`
    ResourceListChanged =
        MethodInfo::new("notifications/resources/list_changed", Server, Notification, V2024_11_05, V2026_07_28);
    /// `notifications/resources/updated`
    ResourceUpdated =
        MethodInfo::new("notifications/resources/updated", Server, Notification, V2024_11_05, V2026_07_28);
    /// `notifications/elicitation/complete`
    ElicitationComplete =
        MethodInfo::new("notifications/elicitation/complete", Server, Notification, V2025_11_25, V2025_11_25);
    /// `notifications/tasks/status`
    TaskStatus = MethodInfo::new("notifications/tasks/status", Both, Notification, V2025_11_25, V2025_11_25);
    /// `notifications/tasks`
    TaskChanged = MethodInfo::new("notifications/tasks", Server, Notification, V2026_07_28, V2026_07_28);
    /// `notifications/subscriptions/acknowledged`
    SubscriptionsAcknowledged = MethodInfo::new(
        "notifications/subscriptions/acknowledged", Server, Notification, V2026_07_28, V2026_07_28);
}

impl Method {
    /// The method as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        self.info().name
    }

    /// Looks a method up by its wire name.
    pub fn from_name(name: &str) -> Option<Self> {
        // Nearly all traffic is this one.
        if name == Self::CallTool.as_str() {
            return Some(Self::CallTool);
        }
        Self::ALL.iter().copied().find(|method| method.as_str() == name)
    }

    /// Whether a name is the protocol's, or may become one of it: everything that does not begin with a vendor of its
    /// own, as `acme/step` does.
    pub fn is_reserved(name: &str) -> bool {
        let Some((vendor, rest)) = name.split_once('/') else { return true };
        let areas = || Self::ALL.iter().filter_map(|method| method.as_str().split('/').next());
        vendor.is_empty()
            || rest.is_empty()
            || vendor.starts_with("rpc.")
            || areas().any(|area| area == vendor)
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The method of a message: one from the table, or a name we do not know.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a name is known or it is not")]
pub enum MethodName {
    /// A method of the table.
    Known(Method),
    /// Any other name, for instance an extension's.
    Unknown(Box<str>),
}

impl MethodName {
    /// The name as it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(method) => method.as_str(),
            Self::Unknown(name) => name,
        }
    }

    /// The table's method, if it is one.
    pub const fn known(&self) -> Option<Method> {
        match self {
            Self::Known(method) => Some(*method),
            Self::Unknown(_) => None,
        }
    }
}

impl From<&str> for MethodName {
    fn from(name: &str) -> Self {
        Method::from_name(name).map_or_else(|| Self::Unknown(name.into()), Self::Known)
    }
}

impl From<Method> for MethodName {
    fn from(method: Method) -> Self {
        Self::Known(method)
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.as_str()), Some(*method));
        }
        assert_eq!(Method::from_name("tools/List"), None);
    }

    #[test]
    fn kind_follows_the_name() {
        for method in Method::ALL {
            let notification = method.as_str().starts_with("notifications/");
            assert_eq!(method.info().kind == Notification, notification, "{method}");
        }
    }

    /// The rows of the specification's method tables: what a client may send, per revision.
    #[test]
    fn what_a_client_may_send_in_each_revision() {
        let v = Version::ALL;
        let all = [true; 5];
        let legacy = v.map(|v| !v.is_modern());
        let modern = v.map(Version::is_modern);
        let nov25 = v.map(|v| v == V2025_11_25);
        let never = [false; 5];
        for (name, expected) in [
            ("initialize", legacy),
            ("notifications/initialized", legacy),
            ("ping", legacy),
            ("server/discover", modern),
            ("tools/list", all),
            ("tools/call", all),
            ("prompts/list", all),
            ("prompts/get", all),
            ("resources/list", all),
            ("resources/templates/list", all),
            ("resources/read", all),
            ("resources/subscribe", legacy),
            ("resources/unsubscribe", legacy),
            ("subscriptions/listen", modern),
            ("logging/setLevel", legacy),
            ("completion/complete", all),
            ("tasks/get", [false, false, false, true, true]),
            ("tasks/cancel", [false, false, false, true, true]),
            ("tasks/result", nov25),
            ("tasks/list", nov25),
            ("tasks/update", modern),
            ("notifications/cancelled", all),
            ("notifications/progress", legacy),
            ("notifications/roots/list_changed", legacy),
            ("sampling/createMessage", never),
            ("elicitation/create", never),
            ("roots/list", never),
            ("notifications/message", never),
        ] {
            let info = Method::from_name(name).unwrap().info();
            assert_eq!(v.map(|v| info.from_client(v)), expected, "{name}");
        }
    }

    #[test]
    fn flags_name_exactly_the_methods_of_the_specification() {
        let named = |pick: fn(&MethodInfo) -> bool| -> Vec<&str> {
            Method::ALL.iter().map(|m| m.info()).filter(|i| pick(i)).map(|i| i.name).collect()
        };
        assert_eq!(named(|i| i.multi_round_trip), ["tools/call", "prompts/get", "resources/read"]);
        assert_eq!(
            named(|i| i.cacheable),
            [
                "server/discover",
                "tools/list",
                "prompts/list",
                "resources/list",
                "resources/templates/list",
                "resources/read"
            ]
        );
        assert_eq!(
            named(|i| i.name_header.is_some()),
            ["tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/cancel", "tasks/update"]
        );
        assert_eq!(named(|i| i.open_ended), ["subscriptions/listen", "tasks/result"]);
    }
}
