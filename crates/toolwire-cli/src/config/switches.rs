//! The servers that hosts have switched off in places of their own, beside the servers themselves.
//!
//! Claude Code keeps lists of names in its settings, Gemini CLI in its settings and in a file of its own. Cursor
//! and VS Code keep theirs in a database, which is not read. Only what switches off counts: an approval for a host
//! is no approval for this program, and a list in a project's file could have been written by anybody.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Format, Host, Place, Places, System, file, syntax};
use crate::failure::Failure;

/// What is switched off.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// Servers of `.mcp.json` that were rejected in Claude Code.
    mcp_json: BTreeSet<String>,
    /// Servers of any kind that were switched off in Claude Code.
    claude: BTreeSet<String>,
    /// Servers that Gemini CLI does not use; it does not care for case.
    gemini: BTreeSet<String>,
    /// Each list of those that Gemini CLI may use at all.
    gemini_allowed: Vec<BTreeSet<String>>,
}

impl Switches {
    /// Reads all lists. A file that cannot be understood is told: what it switches off is not known.
    pub(super) fn read(places: &Places, broken: &mut Vec<Failure>) -> Self {
        let mut switches = Self::default();
        for file in claude_settings(places) {
            switches.claude_settings(&parsed(&file, broken));
        }
        // It has servers as well, so it is told there when it is broken.
        let own = Host::ClaudeCode.own_file(places).map(|file| parsed(&file, &mut Vec::new()));
        for folder in places.project() {
            let folder = folder.display().to_string();
            for key in [folder.replace('\\', "/"), folder] {
                let project = own.as_ref().map_or(&Value::Null, |own| &own["projects"][key.as_str()]);
                switches.claude_settings(project);
                switches.claude.extend(names(&project["disabledMcpServers"]));
            }
        }
        for place in Host::Gemini.files(places) {
            switches.gemini_settings(&parsed(&place.file, &mut Vec::new()));
        }
        for file in gemini_system(places) {
            switches.gemini_settings(&parsed(&file, broken));
        }
        if let Some(file) = places.home(".gemini/mcp-server-enablement.json") {
            let states = parsed(&file, broken);
            let off = states.as_object().into_iter().flatten().filter(|(_, state)| state["enabled"] == false);
            switches.gemini.extend(off.map(|(name, _)| name.to_lowercase()));
        }
        switches
    }

    /// Whether a server of a place is switched off elsewhere.
    pub(super) fn is_off(&self, place: &Place, name: &str) -> bool {
        match place.host {
            Host::Project if place.file.ends_with(".mcp.json") => {
                self.mcp_json.contains(name) || self.claude.contains(name)
            }
            Host::ClaudeCode => self.claude.contains(name),
            Host::Gemini => {
                let name = name.trim().to_lowercase();
                self.gemini.contains(&name)
                    || self.gemini_allowed.iter().any(|allowed| !allowed.contains(&name))
            }
            _ => false,
        }
    }

    fn claude_settings(&mut self, settings: &Value) {
        self.mcp_json.extend(names(&settings["disabledMcpjsonServers"]));
        let denied = settings["deniedMcpServers"].as_array().into_iter().flatten();
        let denied = denied.filter_map(|server| server["serverName"].as_str()).map(str::to_owned);
        self.claude.extend(denied);
    }

    fn gemini_settings(&mut self, settings: &Value) {
        let lower = |list: &Value| names(list).map(|name| name.trim().to_lowercase()).collect();
        let mcp = &settings["mcp"];
        let excluded: BTreeSet<_> = lower(&mcp["excluded"]);
        self.gemini.extend(excluded);
        let allowed: BTreeSet<_> = lower(&mcp["allowed"]);
        if !allowed.is_empty() {
            self.gemini_allowed.push(allowed);
        }
    }
}

/// The settings of Claude Code: of the system, of the user, and of the project.
fn claude_settings(places: &Places) -> Vec<PathBuf> {
    let managed = match places.system() {
        System::Linux => "/etc/claude-code/managed-settings.json",
        System::MacOs => "/Library/Application Support/ClaudeCode/managed-settings.json",
        System::Windows => "C:\\Program Files\\ClaudeCode\\managed-settings.json",
    };
    let own = places.folder("CLAUDE_CONFIG_DIR").or_else(|| places.home(".claude"));
    let mut files = vec![PathBuf::from(managed)];
    files.extend(own.map(|folder| folder.join("settings.json")));
    for folder in places.project() {
        files.extend(["settings.json", "settings.local.json"].map(|file| folder.join(".claude").join(file)));
    }
    files
}

fn gemini_system(places: &Places) -> Vec<PathBuf> {
    let folder = match places.system() {
        System::Linux => "/etc/gemini-cli",
        System::MacOs => "/Library/Application Support/GeminiCli",
        System::Windows => "C:\\ProgramData\\gemini-cli",
    };
    ["settings.json", "system-defaults.json"].map(|file| Path::new(folder).join(file)).to_vec()
}

/// What a file says; nothing if there is none.
fn parsed(path: &Path, broken: &mut Vec<Failure>) -> Value {
    let value = file::read(path).and_then(|text| match text {
        Some(text) => syntax::parse(path, &text.text, Format::Json),
        None => Ok(Value::Null),
    });
    value.unwrap_or_else(|failure| {
        broken.push(failure);
        Value::Null
    })
}

fn names(list: &Value) -> impl Iterator<Item = String> + '_ {
    list.as_array().into_iter().flatten().filter_map(|name| name.as_str()).map(str::to_owned)
}
