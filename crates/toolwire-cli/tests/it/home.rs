//! A machine for a test: a home directory with whatever files, a project in it, and nothing from outside.

use std::{fs, path::PathBuf, process::Command};

use tempfile::TempDir;

use crate::program::{Ended, WAITS, run, toolwire};

/// A home directory.
#[derive(Debug)]
pub(crate) struct Home(TempDir);

impl Home {
    /// An empty one, with an empty project.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("project/.git")).unwrap();
        Self(folder)
    }

    /// Writes a file, by its path from the home directory. `[toolwire]` becomes the path of the program.
    pub(crate) fn with(self, path: &str, text: &str) -> Self {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let program = serde_json::to_string(env!("CARGO_BIN_EXE_toolwire")).unwrap();
        fs::write(file, text.replace("\"[toolwire]\"", &program)).unwrap();
        self
    }

    /// A path in it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// What a file says.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// The program, at home in the project.
    pub(crate) fn toolwire(&self, args: &[&str]) -> Command {
        let mut command = toolwire(args);
        command.env_clear().env("HOME", self.0.path()).env("PATH", "/usr/bin:/bin").env(WAITS.0, WAITS.1);
        command.current_dir(self.path("project"));
        command
    }

    /// Runs the program as one who has this in the environment.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ended {
        let mut command = self.toolwire(args);
        command.envs(variables.iter().copied());
        let ended = run(command);
        Ended { stdout: self.same(&ended.stdout), stderr: self.same(&ended.stderr), ..ended }
    }

    /// Runs the program; paths in what it printed are made the same for every run.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.run_with(&[], args)
    }

    fn same(&self, text: &str) -> String {
        let real = self.0.path().canonicalize().unwrap();
        text.replace(env!("CARGO_BIN_EXE_toolwire"), "[toolwire]")
            .replace(&real.display().to_string(), "[home]")
            .replace(&self.0.path().display().to_string(), "[home]")
            .replace(env!("CARGO_PKG_VERSION"), "[version]")
    }
}
