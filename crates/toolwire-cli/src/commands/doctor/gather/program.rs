//! Looks for the program of a server, as the operating system will.

use std::{
    env,
    io::Read,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use crate::{commands::doctor::case::Program, depth, target::Command, waits};

/// How long the login shell may take to say where a program is.
const SHELL_PATIENCE: Duration = Duration::from_secs(3);

/// How much of a script is read to see its interpreter; operating systems read no more either.
const FIRST_LINE: u64 = 256;

/// Looks for the program.
pub(super) async fn find(command: &Command) -> Program {
    let own = command.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.into());
    let path = own.or_else(|| env::var_os("PATH")).unwrap_or_default();
    let found = locate(command, &env::split_paths(&path).collect::<Vec<_>>());
    match found {
        Program::NotFound { searched, .. } => {
            let in_login_shell = ask_login_shell(&command.program).await;
            Program::NotFound { searched, in_login_shell }
        }
        found => found,
    }
}

fn locate(command: &Command, path: &[PathBuf]) -> Program {
    let directory = command.directory.as_deref();
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        return Program::NoDirectory(directory.to_owned());
    }
    let program = Path::new(&command.program);
    if program.components().count() > 1 {
        let file = directory.unwrap_or_else(|| Path::new("")).join(program);
        return if file.exists() { judge(file, true) } else { Program::NoFile(file) };
    }
    let there = path.iter().flat_map(|folder| names(folder, &command.program)).filter(|file| file.is_file());
    let there: Vec<_> = there.collect();
    // A file that may not be run does not keep the system from finding another one further on.
    match there.iter().find(|file| is_executable(file)).or_else(|| there.first()) {
        Some(file) => judge(file.clone(), false),
        None => Program::NotFound { searched: path.to_vec(), in_login_shell: None },
    }
}

/// The files that a name can stand for in a folder.
fn names(folder: &Path, program: &str) -> Vec<PathBuf> {
    let endings: &[&str] = if cfg!(windows) { &["", ".exe"] } else { &[""] };
    endings.iter().map(|ending| folder.join(format!("{program}{ending}"))).collect()
}

fn judge(file: PathBuf, by_path: bool) -> Program {
    if !file.is_file() || !is_executable(&file) {
        return Program::NotExecutable(file);
    }
    match interpreter(&file).filter(|interpreter| !Path::new(interpreter).exists()) {
        Some(interpreter) => Program::NoInterpreter { script: file, interpreter },
        None => Program::Found { file, by_path },
    }
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_file: &Path) -> bool {
    true
}

/// What the first line of a script names.
fn interpreter(file: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(file).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    // A carriage return is a part of the name for the system, and stays visible.
    line.trim_matches(' ').split([' ', '\t']).next().map(str::to_owned)
}

/// Where the shell that reads the user's settings finds the program.
async fn ask_login_shell(program: &str) -> Option<String> {
    let shell = env::var_os("SHELL")?;
    let mut command = tokio::process::Command::new(shell);
    command.args(["-lc", "command -v -- \"$0\"", program]);
    command.env(depth::VARIABLE, depth::below());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(waits::stretched(SHELL_PATIENCE), command.output()).await.ok()?.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // Settings may print something of their own first.
    let line = text.lines().last()?.trim();
    (output.status.success() && line.starts_with('/')).then(|| line.to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn write(file: &Path, text: &str, mode: u32) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn command(program: impl AsRef<Path>) -> Command {
        Command { program: program.as_ref().to_str().unwrap().to_owned(), ..Command::default() }
    }

    #[test]
    fn each_reason_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let [good, plain, script] = ["good", "plain", "script"].map(|name| folder.path().join(name));
        write(&good, "#!/bin/sh\n", 0o755);
        write(&plain, "#!/bin/sh\n", 0o644);
        write(&script, "#!/no/such/interpreter -x\r\n", 0o755);
        let path = [folder.path().join("none"), folder.path().to_owned()];

        assert_eq!(locate(&command("good"), &path), Program::Found { file: good.clone(), by_path: false });
        assert_eq!(locate(&command(&good), &[]), Program::Found { file: good, by_path: true });
        assert_eq!(locate(&command("plain"), &path), Program::NotExecutable(plain));
        let interpreter = "/no/such/interpreter".to_owned();
        assert_eq!(locate(&command("script"), &path), Program::NoInterpreter { script, interpreter });
        let not_found = Program::NotFound { searched: path.to_vec(), in_login_shell: None };
        assert_eq!(locate(&command("missing"), &path), not_found);
        assert_eq!(locate(&command("/no/such"), &path), Program::NoFile("/no/such".into()));
        assert_eq!(locate(&command(folder.path()), &path), Program::NotExecutable(folder.path().to_owned()));
        let elsewhere = Command { directory: Some("/no/such".into()), ..command("good") };
        assert_eq!(locate(&elsewhere, &path), Program::NoDirectory("/no/such".into()));
    }
}
