//! What the two sides can do.

use std::collections::BTreeMap;

use super::{JsonObject, macros::wire_struct};

/// Capabilities outside the core, by name; the value is the extension's settings.
pub type CapabilityMap = BTreeMap<String, JsonObject>;

/// The name of the extension that tasks are since 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

wire_struct! {
    /// What a client can do.
    pub struct ClientCapabilities {
        /// It can list roots.
        roots?: RootsCapability,
        /// It can ask a model.
        sampling?: SamplingCapability,
        /// It can ask a person, since 2025-06-18.
        elicitation?: ElicitationCapability,
        /// It can run tasks, in 2025-11-25 only.
        tasks?: ClientTasksCapability,
        /// Experiments that are not in the specification.
        experimental?: CapabilityMap,
        /// Extensions, since 2026-07-28.
        extensions?: CapabilityMap,
    }
}

impl ClientCapabilities {
    /// Whether it can show a form. An elicitation capability that names no mode means forms.
    pub fn elicits_form(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Whether it can send a person to a URL.
    pub fn elicits_url(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }

    /// Whether it declares the extension `name`.
    pub fn has_extension(&self, name: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(name))
    }
}

wire_struct! {
    /// Listing roots.
    pub struct RootsCapability {
        /// It says when they change, before 2026-07-28.
        list_changed as "listChanged"?: bool,
    }
}

wire_struct! {
    /// Asking a model.
    pub struct SamplingCapability {
        /// It can offer tools to the model, since 2025-11-25.
        tools?: JsonObject,
        /// It can include context from servers.
        context?: JsonObject,
    }
}

wire_struct! {
    /// Asking a person. Empty means forms only.
    pub struct ElicitationCapability {
        /// It can show a form.
        form?: JsonObject,
        /// It can send the person to a URL, since 2025-11-25.
        url?: JsonObject,
    }
}

wire_struct! {
    /// Tasks that run on the client.
    pub struct ClientTasksCapability {
        /// They can be listed.
        list?: JsonObject,
        /// They can be cancelled.
        cancel?: JsonObject,
        /// Which requests can become one.
        requests?: ClientTaskRequests,
    }
}

wire_struct! {
    /// The requests to a client that can become a task.
    pub struct ClientTaskRequests {
        /// Requests to ask a model.
        sampling?: SamplingTaskRequests,
        /// Requests to ask a person.
        elicitation?: ElicitationTaskRequests,
    }
}

wire_struct! {
    /// The sampling requests that can become a task.
    pub struct SamplingTaskRequests {
        /// `sampling/createMessage`.
        create_message as "createMessage"?: JsonObject,
    }
}

wire_struct! {
    /// The elicitation requests that can become a task.
    pub struct ElicitationTaskRequests {
        /// `elicitation/create`.
        create?: JsonObject,
    }
}

wire_struct! {
    /// What a server can do.
    pub struct ServerCapabilities {
        /// It sends log messages.
        logging?: JsonObject,
        /// It completes arguments, since 2025-03-26.
        completions?: JsonObject,
        /// It has prompts.
        prompts?: PromptsCapability,
        /// It has resources.
        resources?: ResourcesCapability,
        /// It has tools.
        tools?: ToolsCapability,
        /// It runs tasks, in 2025-11-25 only.
        tasks?: ServerTasksCapability,
        /// Experiments that are not in the specification.
        experimental?: CapabilityMap,
        /// Extensions, since 2026-07-28.
        extensions?: CapabilityMap,
    }
}

impl ServerCapabilities {
    /// Whether it declares the extension `name`.
    pub fn has_extension(&self, name: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(name))
    }
}

wire_struct! {
    /// Having prompts.
    pub struct PromptsCapability {
        /// It says when the list changes.
        list_changed as "listChanged"?: bool,
    }
}

wire_struct! {
    /// Having resources.
    pub struct ResourcesCapability {
        /// Single resources can be watched.
        subscribe?: bool,
        /// It says when the list changes.
        list_changed as "listChanged"?: bool,
    }
}

wire_struct! {
    /// Having tools.
    pub struct ToolsCapability {
        /// It says when the list changes.
        list_changed as "listChanged"?: bool,
    }
}

wire_struct! {
    /// Tasks that run on the server.
    pub struct ServerTasksCapability {
        /// They can be listed.
        list?: JsonObject,
        /// They can be cancelled.
        cancel?: JsonObject,
        /// Which requests can become one.
        requests?: ServerTaskRequests,
    }
}

wire_struct! {
    /// The requests to a server that can become a task.
    pub struct ServerTaskRequests {
        /// Requests about tools.
        tools?: ToolTaskRequests,
    }
}

wire_struct! {
    /// The tool requests that can become a task.
    pub struct ToolTaskRequests {
        /// `tools/call`.
        call?: JsonObject,
    }
}

wire_struct! {
    /// The error data that names what the client would have to declare.
    pub struct MissingRequiredClientCapabilityData {
        /// The capabilities that are missing.
        required_capabilities as "requiredCapabilities": ClientCapabilities,
    }
}
