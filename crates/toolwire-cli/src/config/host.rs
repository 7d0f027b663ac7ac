//! The programs whose configurations are read, and where each of them keeps its servers.
//!
//! Only what is said in files counts: servers that a host brings along by itself, such as extensions, are not
//! seen.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use serde::{Serialize, Serializer};

use super::places::Places;

/// A program with a configuration of servers. The order is that of precedence when a name is in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Host {
    /// The project's own .mcp.json or mcp.json
    Project,
    /// Toolwire's own servers.json
    Toolwire,
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    /// VS Code, and its Insiders
    #[value(name = "vscode")]
    VsCode,
    Windsurf,
    Zed,
    Codex,
    /// Gemini CLI
    Gemini,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, in which comments and trailing commas are forgiven.
    Json,
    Toml,
}

/// Who has put a file where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The user.
    User,
    /// Whoever has made the project: it may have come from anywhere.
    Project,
}

/// A file that may have servers.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) host: Host,
    pub(crate) scope: Scope,
    pub(crate) file: PathBuf,
    pub(crate) format: Format,
    /// The tables with servers, each as the keys that lead to it. What is in the first ones goes first.
    pub(crate) tables: Vec<Vec<String>>,
    /// What `${workspaceFolder}` and relative folders are about.
    pub(crate) folder: PathBuf,
}

impl Host {
    /// All of them, in the order of precedence.
    pub(crate) const ALL: [Self; 10] = [
        Self::Project,
        Self::Toolwire,
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Zed,
        Self::Codex,
        Self::Gemini,
    ];

    /// The word for it on the command line and in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Toolwire => "toolwire",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// The host with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// The key of the table with servers, in the files that are written today.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// How its files are written.
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            _ => Format::Json,
        }
    }

    /// The file to which a new server is added. Without a home there may be none.
    pub(crate) fn own_file(self, places: &Places) -> Option<PathBuf> {
        let application = |path: &str| places.application_data().map(|folder| folder.join(path));
        match self {
            Self::Project => {
                let file = |folder: &Path| folder.join(".mcp.json");
                let existing = places.project().iter().map(|folder| file(folder)).find(|file| file.exists());
                Some(existing.unwrap_or_else(|| file(places.root())))
            }
            Self::Toolwire => places.settings().map(|folder| folder.join("toolwire/servers.json")),
            Self::ClaudeCode => match places.folder("CLAUDE_CONFIG_DIR") {
                Some(folder) => Some(folder.join(".claude.json")),
                None => places.home(".claude.json"),
            },
            Self::ClaudeDesktop => application("Claude/claude_desktop_config.json"),
            Self::Cursor => places.home(".cursor/mcp.json"),
            Self::VsCode => application("Code/User/mcp.json"),
            Self::Windsurf => places.home(".codeium/windsurf/mcp_config.json"),
            Self::Zed => places.zed(),
            Self::Codex => match places.folder("CODEX_HOME") {
                Some(folder) => Some(folder.join("config.toml")),
                None => places.home(".codex/config.toml"),
            },
            Self::Gemini => places.home(".gemini/settings.json"),
        }
    }

    /// Every file in which it may have servers: those of the project first, the nearest folder first.
    pub(crate) fn files(self, places: &Places) -> Vec<Place> {
        let mut found = Vec::new();
        let (project, user) = (Scope::Project, Scope::User);
        for folder in places.project() {
            let files = self.in_project().iter().map(|file| folder.join(file));
            found.extend(files.map(|file| self.place(project, file, places, folder)));
        }
        if self != Self::Project {
            let current = places.current();
            let files = self.own_file(places).into_iter().chain(self.elsewhere(places));
            found.extend(files.map(|file| self.place(user, file, places, current)));
        }
        found
    }

    /// Its files in the folder of a project.
    const fn in_project(self) -> &'static [&'static str] {
        match self {
            Self::Project => &[".mcp.json", "mcp.json"],
            Self::Cursor => &[".cursor/mcp.json"],
            Self::VsCode => &[".vscode/mcp.json", ".vscode/settings.json"],
            Self::Zed => &[".zed/settings.json"],
            Self::Codex => &[".codex/config.toml"],
            Self::Gemini => &[".gemini/settings.json"],
            Self::Toolwire | Self::ClaudeCode | Self::ClaudeDesktop | Self::Windsurf => &[],
        }
    }

    /// Its files of other versions, which are read but not written.
    fn elsewhere(self, places: &Places) -> Vec<PathBuf> {
        let Some(folder) = places.application_data().filter(|_| self == Self::VsCode) else {
            return Vec::new();
        };
        let files = [
            "Code/User/settings.json",
            "Code - Insiders/User/mcp.json",
            "Code - Insiders/User/settings.json",
        ];
        files.iter().map(|file| folder.join(file)).collect()
    }

    fn place(self, scope: Scope, file: PathBuf, places: &Places, folder: &Path) -> Place {
        let tables = match self {
            Self::ClaudeCode => claude_code(places),
            Self::Project => [["mcpServers"], ["servers"]].iter().map(|keys| owned(keys)).collect(),
            Self::VsCode if file.ends_with("settings.json") => vec![owned(&["mcp", "servers"])],
            _ => vec![owned(&[self.key()])],
        };
        Place { host: self, scope, file, format: self.format(), tables, folder: folder.to_owned() }
    }
}

/// Claude Code keeps the servers of a project beside those of the user, under the folder's path.
fn claude_code(places: &Places) -> Vec<Vec<String>> {
    let mut tables = Vec::new();
    for folder in places.project() {
        let folder = folder.display().to_string();
        // On Windows the path may be written either way.
        if folder.contains('\\') {
            tables.push(owned(&["projects", &folder.replace('\\', "/"), "mcpServers"]));
        }
        tables.push(owned(&["projects", &folder, "mcpServers"]));
    }
    tables.push(owned(&["mcpServers"]));
    tables
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_the_command_line_are_those_in_tables() {
        for host in Host::ALL {
            assert_eq!(host.to_possible_value().unwrap().get_name(), host.name());
            assert_eq!(Host::named(host.name()), Some(host));
        }
        assert!(Host::ALL.is_sorted());
        assert_eq!(Host::value_variants(), Host::ALL);
    }
}
