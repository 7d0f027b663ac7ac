//! The official schemas, where they are at hand: every message of a server is held against them.
//!
//! They are not part of this crate. `TOOLWIRE_SPEC` names a folder with `REVISION/schema.json` in it; without
//! it nothing is checked, and one line on standard error says so.

use std::{
    collections::HashMap,
    env, fs,
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use serde_json::{Value, json};
use toolwire_protocol::{Method, Version, schema::Schema};

/// The environment variable that names the folder.
pub const SPEC_VARIABLE: &str = "TOOLWIRE_SPEC";

/// The official JSON schemas of some revisions.
#[derive(Debug)]
pub struct SpecSchemas {
    revisions: HashMap<Version, Revision>,
}

#[derive(Debug)]
struct Revision {
    /// `definitions` or `$defs`.
    keyword: &'static str,
    definitions: Value,
    /// At most one for each definition of the document.
    compiled: Mutex<HashMap<String, Arc<Schema>>>,
}

impl SpecSchemas {
    /// The schemas in the folder that `TOOLWIRE_SPEC` names, read once per process; `None` when it is not set.
    ///
    /// # Panics
    /// When the folder cannot be read: a check that was asked for must not be left out in silence.
    pub fn from_env() -> Option<&'static Self> {
        static SCHEMAS: OnceLock<Option<SpecSchemas>> = OnceLock::new();
        SCHEMAS.get_or_init(read_from_env).as_ref()
    }

    /// Reads `REVISION/schema.json` for every revision from `folder`.
    ///
    /// # Errors
    /// When a file is missing or is not a schema with definitions.
    pub fn read(folder: impl AsRef<Path>) -> io::Result<Self> {
        let mut revisions = HashMap::new();
        for version in Version::ALL {
            let path = folder.as_ref().join(version.as_str()).join("schema.json");
            let problem = |why: String| io::Error::other(format!("{}: {why}", path.display()));
            let text = fs::read_to_string(&path).map_err(|error| problem(error.to_string()))?;
            let document = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
            let revision =
                Revision::of(document).ok_or_else(|| problem("it has no definitions".to_owned()))?;
            revisions.insert(version, revision);
        }
        Ok(Self { revisions })
    }

    /// Checks one message that a server sent. `asked` is the method of the request that it answers, if it is a
    /// response. A request or notification of a method outside the specification cannot be checked and passes.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn check(&self, version: Version, asked: Option<&str>, message: &Value) -> Result<(), String> {
        let Some(revision) = self.revisions.get(&version) else {
            return Err(format!("there is no schema of {version}"));
        };
        if let Some(method) = message["method"].as_str() {
            // The tasks of this revision are an extension, which has a schema of its own.
            if method == Method::TaskChanged.as_str() {
                return Ok(());
            }
            return match definition_of(method) {
                Some(definition) => revision.check(definition, message),
                None if Method::from_name(method).is_some() => {
                    Err(format!("a server does not send {method}"))
                }
                None => Ok(()),
            };
        }
        if message.get("error").is_some() {
            return revision.check_error(message);
        }
        revision.check("JSONRPCResponse", message)?;
        let result = &message["result"];
        let definition = match result["resultType"].as_str() {
            Some("input_required") => "InputRequiredResult",
            Some("task") => "Result",
            _ if asked == Some(Method::CallTool.as_str()) && result.get("task").is_some() => {
                "CreateTaskResult"
            }
            Some(_) if asked.is_some_and(|method| method.starts_with("tasks/")) => "Result",
            _ => asked.and_then(result_of).unwrap_or("Result"),
        };
        revision.check(definition, result)
    }
}

impl Revision {
    fn of(mut document: Value) -> Option<Self> {
        let keyword = ["$defs", "definitions"].into_iter().find(|keyword| document[*keyword].is_object())?;
        Some(Self { keyword, definitions: document[keyword].take(), compiled: Mutex::default() })
    }

    fn has(&self, definition: &str) -> bool {
        self.definitions.get(definition).is_some()
    }

    fn check(&self, definition: &str, value: &Value) -> Result<(), String> {
        let violations = self.schema(definition)?.validate(value);
        violations.map_err(|violations| format!("it is no {definition}: {violations}"))
    }

    fn check_error(&self, message: &Value) -> Result<(), String> {
        let definition =
            if self.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" };
        if message.get("id").is_some() || definition == "JSONRPCErrorResponse" {
            return self.check(definition, message);
        }
        // Before 2025-11-25 the schema wants an id in every error, also where none could be read.
        let mut with_id = message.clone();
        with_id["id"] = json!(0);
        self.check(definition, &with_id)
    }

    fn schema(&self, definition: &str) -> Result<Arc<Schema>, String> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = compiled.get(definition) {
            return Ok(Arc::clone(schema));
        }
        if !self.has(definition) {
            return Err(format!("this revision has no {definition}"));
        }
        let root = json!({
            "$ref": format!("#/{}/{definition}", self.keyword),
            self.keyword: self.definitions,
        });
        let schema = Schema::compile(&root).map_err(|error| format!("{definition}: {error}"))?;
        let schema = Arc::new(schema);
        compiled.insert(definition.to_owned(), Arc::clone(&schema));
        Ok(schema)
    }
}

fn read_from_env() -> Option<SpecSchemas> {
    let Some(folder) = env::var_os(SPEC_VARIABLE) else {
        say_unchecked();
        return None;
    };
    match SpecSchemas::read(&folder) {
        Ok(schemas) => Some(schemas),
        Err(error) => panic!("{SPEC_VARIABLE} is set, but the schemas cannot be read: {error}"),
    }
}

/// Written past the test harness, which would keep it to itself.
fn say_unchecked() {
    let text = format!("{SPEC_VARIABLE} is not set: messages are not checked against the official schemas");
    // Whoever has no standard error does not want to know.
    let _ = writeln!(io::stderr(), "{text}");
}

/// The definition of what a server sends of its own accord.
fn definition_of(method: &str) -> Option<&'static str> {
    Some(match Method::from_name(method)? {
        Method::Cancelled => "CancelledNotification",
        Method::Progress => "ProgressNotification",
        Method::LoggingMessage => "LoggingMessageNotification",
        Method::ToolListChanged => "ToolListChangedNotification",
        Method::PromptListChanged => "PromptListChangedNotification",
        Method::ResourceListChanged => "ResourceListChangedNotification",
        Method::ResourceUpdated => "ResourceUpdatedNotification",
        Method::SubscriptionsAcknowledged => "SubscriptionsAcknowledgedNotification",
        Method::Ping => "PingRequest",
        Method::CreateMessage => "CreateMessageRequest",
        Method::Elicit => "ElicitRequest",
        Method::ListRoots => "ListRootsRequest",
        Method::TaskStatus => "TaskStatusNotification",
        _ => return None,
    })
}

/// The definition of the result of a request.
fn result_of(method: &str) -> Option<&'static str> {
    Some(match Method::from_name(method)? {
        Method::Initialize => "InitializeResult",
        Method::Ping | Method::SetLevel | Method::Subscribe | Method::Unsubscribe => "EmptyResult",
        Method::Discover => "DiscoverResult",
        Method::ListTools => "ListToolsResult",
        Method::CallTool | Method::GetTaskPayload => "CallToolResult",
        Method::ListPrompts => "ListPromptsResult",
        Method::GetPrompt => "GetPromptResult",
        Method::ListResources => "ListResourcesResult",
        Method::ListResourceTemplates => "ListResourceTemplatesResult",
        Method::ReadResource => "ReadResourceResult",
        Method::Complete => "CompleteResult",
        Method::Listen => "SubscriptionsListenResult",
        Method::GetTask => "GetTaskResult",
        Method::ListTasks => "ListTasksResult",
        Method::CancelTask => "CancelTaskResult",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas(keyword: &str, error: &str) -> SpecSchemas {
        let text = json!({ "type": "object", "required": ["text"] });
        let document = json!({ keyword: {
            "Text": text,
            "JSONRPCResponse": { "required": ["id", "result"] },
            error: { "required": ["id", "error"] },
            "CallToolResult": { "properties": { "content": { "$ref": format!("#/{keyword}/Text") } } },
            "ToolListChangedNotification": { "required": ["params"] },
            "InputRequiredResult": { "required": ["requestState"] },
            "Result": {},
        }});
        let revision = Revision::of(document).unwrap();
        SpecSchemas { revisions: [(Version::LATEST, revision)].into() }
    }

    #[test]
    fn each_message_is_held_against_its_definition() {
        let schemas = schemas("definitions", "JSONRPCError");
        let check = |asked, message: Value| schemas.check(Version::LATEST, asked, &message);
        let call = Some("tools/call");
        let good = json!({ "id": 1, "result": { "content": { "text": "" } } });
        assert_eq!(check(call, good), Ok(()));
        let bad = json!({ "id": 1, "result": { "content": {} } });
        assert_eq!(check(None, bad.clone()), Ok(()), "any result will do where nothing is known of it");
        let violation = "it is no CallToolResult: /content: missing required property \"text\"";
        assert_eq!(check(call, bad), Err(violation.to_owned()));
        assert!(check(call, json!({ "result": {} })).unwrap_err().contains("JSONRPCResponse"));
        let asking = json!({ "id": 1, "result": { "resultType": "input_required" } });
        assert!(check(call, asking).unwrap_err().contains("requestState"));
        let changed = json!({ "method": "notifications/tools/list_changed" });
        assert!(check(None, changed).unwrap_err().contains("params"));
        let foreign = json!({ "method": "notifications/progress" });
        assert_eq!(check(None, foreign), Err("this revision has no ProgressNotification".to_owned()));
        assert!(check(None, json!({ "method": "tools/list" })).is_err(), "that is for clients");
        assert_eq!(check(None, json!({ "method": "com.example/own" })), Ok(()));
        assert!(schemas.check(Version::V2024_11_05, None, &json!({})).is_err());
    }

    #[test]
    fn an_error_may_lack_its_id_where_the_old_schemas_did_not_think_of_it() {
        let error = json!({ "error": {} });
        assert_eq!(schemas("definitions", "JSONRPCError").check(Version::LATEST, None, &error), Ok(()));
        let strict = schemas("$defs", "JSONRPCErrorResponse");
        assert!(strict.check(Version::LATEST, None, &error).unwrap_err().contains("JSONRPCErrorResponse"));
    }

    #[test]
    fn a_folder_without_schemas_is_an_error_that_names_the_file() {
        let error = SpecSchemas::read("/no/such/folder").unwrap_err().to_string();
        assert!(error.contains("2024-11-05") && error.contains("schema.json"), "{error}");
    }
}
