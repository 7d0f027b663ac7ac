//! What the documents show of the program is what the program says.
//!
//! Every `console` block with a `$ toolwire …` line is run, in a home that has a few servers configured, and what
//! comes out is compared with what is written there; `cargo xtask screens` writes it there. Times differ from run
//! to run, so they are compared as if they were equal.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::documents;
use crate::output::say;
use crate::process::Program;
use crate::programs;
use crate::steps::Outcome;
use crate::workspace::root;

/// No command in a document may take long.
const COMMAND_LIMIT: Duration = Duration::from_mins(1);

/// The home that the commands run in, with the configurations of a few hosts.
const HOME: &str = "docs/screens/home";
/// What begins a line that was typed.
const PROMPT: &str = "$ ";

/// Compares, and says where a document and the program differ.
pub(crate) fn check() -> Outcome {
    let stale = each_document(|_, _| Ok(()))?;
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nif that is what the program should say: cargo xtask screens", stale.join("\n")).into())
}

/// Writes what the program says into the documents.
pub(crate) fn write() -> Result<bool, String> {
    let stale = each_document(|path, text| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    })?;
    for screen in &stale {
        say!("{screen}");
    }
    say!("{} screens are new", stale.len());
    Ok(true)
}

/// Runs the screens of all documents. `update` gets those that are not up to date, with what they should be.
fn each_document(update: impl Fn(&Path, &str) -> Result<(), String>) -> Result<Vec<String>, String> {
    let root = root();
    let stage = Stage::create(&root)?;
    stage.add_program()?;
    let mut differing = Vec::new();
    for path in documents::all(&root)? {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let (fresh, changes) = stage.perform(&text)?;
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        differing.extend(changes.iter().map(|change| format!("{name}: {change}")));
        if !changes.is_empty() {
            update(&path, &fresh)?;
        }
    }
    Ok(differing)
}

/// A temporary folder that the commands run in, removed when dropped.
///
/// The program shows its search path, and breaks lines and cuts texts at a width. So the folder is not below the target
/// folder: its path is equally long for every checkout and user.
struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// Creates the folder, with the home and nothing else in it.
    fn create(root: &Path) -> Result<Self, String> {
        // `TMPDIR` may be of any length. A process id has seven digits at most.
        let name = format!("toolwire-screens-{:07}", std::process::id());
        let stage = Self { folder: Path::new("/tmp").join(name) };
        let explain = |error: std::io::Error| format!("{}: {error}", stage.folder.display());
        // Left by a process of the same id that was killed.
        if stage.folder.exists() {
            fs::remove_dir_all(&stage.folder).map_err(explain)?;
        }
        fs::create_dir(&stage.folder).map_err(explain)?;
        copy(&root.join(HOME), &stage.home()).map_err(|error| format!("{HOME}: {error}"))?;
        Ok(stage)
    }

    /// Builds the program and adds it.
    fn add_program(&self) -> Result<(), String> {
        let name = format!("toolwire{}", std::env::consts::EXE_SUFFIX);
        let (built, added) = (programs::build()?.join(&name), self.programs().join(&name));
        fs::create_dir(self.programs())
            // A link costs nothing, but the folder may be on another file system.
            .and_then(|()| fs::hard_link(&built, &added).or_else(|_| fs::copy(&built, &added).map(drop)))
            .map_err(|error| format!("{}: {error}", added.display()))
    }

    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// The document with fresh screens, and a line for each that is different from what it was.
    fn perform(&self, text: &str) -> Result<(String, Vec<String>), String> {
        let mut fresh = String::new();
        let mut changes = Vec::new();
        let mut lines = text.lines().peekable();
        let mut inside = false;
        while let Some(line) = lines.next() {
            fresh += line;
            fresh.push('\n');
            match line.trim() {
                "```console" => inside = true,
                "```" => inside = false,
                typed if inside && typed.starts_with("$ toolwire") => {
                    let mut shown = String::new();
                    while let Some(line) = lines.next_if(|line| !line.starts_with(PROMPT) && *line != "```") {
                        shown += line;
                        shown.push('\n');
                    }
                    let command = typed.trim_start_matches(PROMPT);
                    let said = self.run(command)?;
                    if same(&shown, &said) {
                        fresh += &shown;
                    } else {
                        changes.push(format!("`{command}` says\n{said}"));
                        fresh += &said;
                        // A line between what was said and what is typed next, as before.
                        if shown == "\n" || shown.ends_with("\n\n") {
                            fresh.push('\n');
                        }
                    }
                }
                _ => {}
            }
        }
        Ok((fresh, changes))
    }

    fn run(&self, command: &str) -> Result<String, String> {
        let home = self.home().display().to_string();
        let programs = self.programs().display().to_string();
        let both = format!("{command} 2>&1");
        let (_, output) = Program::new("sh", COMMAND_LIMIT)
            .args(["-c", &both])
            .directory(&self.home())
            .env("HOME", &home)
            // Nothing but our program and the shell is found, so that machines do not differ.
            .env("PATH", &format!("{programs}:/usr/bin:/bin"))
            .env("XDG_CONFIG_HOME", &format!("{home}/.config"))
            .output()?;
        let output = output.replace(&home, "~").replace(&programs, "~/.cargo/bin");
        Ok(format!("{}\n", output.trim_end()))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether two screens have the same words. Lines are broken where the paths of a machine leave room, and columns are
/// as wide as its times.
fn same(one: &str, other: &str) -> bool {
    without_times(one) == without_times(other)
}

fn without_times(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_time = |index: usize| {
        let unit = words
            .get(index + 1)
            .is_some_and(|next| matches!(next.trim_matches([',', ')', '.']), "ms" | "µs" | "s"));
        unit && words.get(index).is_some_and(|word| word.trim_matches('(').parse::<f64>().is_ok())
    };
    // The unit goes as well: a slow machine has milliseconds where a fast one has microseconds.
    let is_unit = |index: usize| index.checked_sub(1).is_some_and(is_time);
    let plain = |(index, word): (usize, &&str)| {
        let varies = is_time(index) || is_unit(index);
        if varies { "#".to_owned() } else { (*word).to_owned() }
    };
    words.iter().enumerate().map(plain).collect::<Vec<_>>().join(" ")
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &place)?;
        } else {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Stage, same};
    use crate::workspace::root;

    #[test]
    fn stage_path_does_not_depend_on_the_checkout() {
        let stage = Stage::create(&root()).unwrap();
        let folder = stage.folder.clone();
        assert_eq!(folder.as_os_str().len(), "/tmp/toolwire-screens-1234567".len(), "{folder:?}");
        assert!(stage.home().join(".cursor/mcp.json").exists());
        drop(stage);
        assert!(!folder.exists());
    }

    #[test]
    fn times_and_the_spaces_around_them_do_not_count() {
        assert!(same("ok  12 ms  x\n\n", "ok 7.5 ms x\n"));
        assert!(same("took (3 s)", "took (4 ms)"));
        assert!(!same("ok 12 tools", "ok 13 tools"));
        assert!(same("a\n  b", "a b\n"), "broken elsewhere");
        assert!(!same("a\nb", "a"));
    }
}
