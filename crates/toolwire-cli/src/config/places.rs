//! Where things are on this machine. Everything derives from environment variables and the current folder, so
//! that nothing else needs to know the system, and tests can have a machine of their own.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

/// How many folders are looked into on the way up to the root of the repository.
const MAX_FOLDERS: usize = 64;

/// Which conventions for folders apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Linux and everything that keeps its settings as it does.
    Linux,
    MacOs,
    Windows,
}

impl System {
    const THIS: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// The folders of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    system: System,
    variables: BTreeMap<String, String>,
    current: PathBuf,
    /// The current folder and those above it, up to the root of the repository.
    project: Vec<PathBuf>,
}

impl Places {
    /// The folders of this machine.
    pub(crate) fn here() -> Self {
        // Variables that are no text cannot be meant by a configuration, which is text.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = env::vars_os().filter_map(text).collect();
        // Without a current folder, which somebody may have removed, nothing is there to be found.
        Self::new(System::THIS, variables, env::current_dir().unwrap_or_default())
    }

    /// The folders of a machine with these variables.
    pub(crate) fn new(system: System, variables: BTreeMap<String, String>, current: PathBuf) -> Self {
        let project = project(&current);
        Self { system, variables, current, project }
    }

    /// A variable of the environment, if it is set.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let exact = self.variables.get(name);
        let value = exact.or_else(|| {
            let same = |key: &&String| key.eq_ignore_ascii_case(name);
            let key = self.variables.keys().find(same).filter(|_| self.system == System::Windows)?;
            self.variables.get(key)
        });
        value.map(String::as_str)
    }

    /// A path in the home directory.
    pub(crate) fn home(&self, path: &str) -> Option<PathBuf> {
        let variable = if self.system == System::Windows { "USERPROFILE" } else { "HOME" };
        Some(self.folder(variable)?.join(path))
    }

    /// Where programs with a window keep their settings.
    pub(crate) fn application_data(&self) -> Option<PathBuf> {
        match self.system {
            System::Linux => self.settings(),
            System::MacOs => self.home("Library/Application Support"),
            System::Windows => self.folder("APPDATA").or_else(|| self.home("AppData/Roaming")),
        }
    }

    /// Where programs of the command line keep their settings.
    pub(crate) fn settings(&self) -> Option<PathBuf> {
        match self.system {
            System::Windows => self.application_data(),
            System::Linux | System::MacOs => self.folder("XDG_CONFIG_HOME").or_else(|| self.home(".config")),
        }
    }

    /// Where programs of the command line keep what they remember.
    pub(crate) fn state(&self) -> Option<PathBuf> {
        match self.system {
            System::Windows => self.folder("LOCALAPPDATA").or_else(|| self.home("AppData/Local")),
            System::Linux | System::MacOs => {
                self.folder("XDG_STATE_HOME").or_else(|| self.home(".local/state"))
            }
        }
    }

    /// The same machine, seen from another folder.
    pub(crate) fn seen_from(&self, current: PathBuf) -> Self {
        Self::new(self.system, self.variables.clone(), current)
    }

    /// Which conventions for folders apply.
    pub(crate) const fn system(&self) -> System {
        self.system
    }

    /// The settings of Zed, which has its own mind about macOS.
    pub(crate) fn zed(&self) -> Option<PathBuf> {
        match self.system {
            System::Linux => self.settings().map(|folder| folder.join("zed/settings.json")),
            System::MacOs => self.home(".config/zed/settings.json"),
            System::Windows => self.application_data().map(|folder| folder.join("Zed/settings.json")),
        }
    }

    /// The current folder.
    pub(crate) fn current(&self) -> &Path {
        &self.current
    }

    /// The current folder and those above it, up to the root of the repository; only itself outside of one.
    pub(crate) fn project(&self) -> &[PathBuf] {
        &self.project
    }

    /// The root of the repository, or else the current folder.
    pub(crate) fn root(&self) -> &Path {
        self.project.last().unwrap_or(&self.current)
    }

    /// A text in which paths begin as people write them: with `~` for the home directory.
    pub(crate) fn short(&self, text: &str) -> String {
        match self.home("") {
            // It ends with a separator.
            Some(home) if home.parent().is_some() => text.replace(&home.display().to_string(), "~/"),
            _ => text.to_owned(),
        }
    }

    /// A folder that a variable names. Relative ones are to be ignored, say those who made the conventions.
    pub(crate) fn folder(&self, variable: &str) -> Option<PathBuf> {
        let path = self.variable(variable).filter(|path| !path.is_empty())?;
        let other_system = self.system != System::THIS;
        Some(PathBuf::from(path)).filter(|path| path.is_absolute() || other_system)
    }
}

fn project(current: &Path) -> Vec<PathBuf> {
    let folders: Vec<_> = current.ancestors().take(MAX_FOLDERS).map(Path::to_owned).collect();
    match folders.iter().position(|folder| folder.join(".git").exists()) {
        Some(root) => folders.into_iter().take(root + 1).collect(),
        None => folders.into_iter().take(1).collect(),
    }
}
