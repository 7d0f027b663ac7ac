//! Checks about the server's program: is it there, does it run, does it keep its output clean?

use super::{
    super::{
        case::{Case, Program},
        finding::Finding,
        problem::{Problem, Severity},
    },
    hosts::{DESKTOP_PATH, SLOW_START},
    last_words,
};
use crate::{
    failure::Code,
    target::{Address, shell_word, whole_line},
    waits,
};

/// The program can be started.
pub(super) fn there(case: &Case) -> Vec<Finding> {
    // What the system does counts, not what we think it will do.
    let failed = case.talk.as_ref().err().filter(|silence| silence.code == Code::SpawnFailed);
    let (Some(silence), Some(program), Address::Command(command)) = (failed, &case.program, &case.address)
    else {
        return Vec::new();
    };
    let name = &command.program;
    vec![match program {
        Program::NotFound { .. } | Program::NoFile(_) if whole_line(command).is_some() => {
            let summary = format!("`{name}` is a whole command line, and not a program");
            let finding = Finding::new(Problem::ProgramNotFound, summary);
            finding.fix(format!("in the configuration: {}", whole_line(command).unwrap_or_default()))
        }
        Program::NotFound { searched, in_login_shell } => {
            let mut searched: Vec<_> = searched.iter().map(|folder| folder.display().to_string()).collect();
            searched.dedup();
            let finding = Finding::new(Problem::ProgramNotFound, format!("`{name}` is not in PATH"));
            let finding = finding.evidence([format!("searched: {}", searched.join(", "))]);
            match in_login_shell {
                Some(file) => finding
                    .evidence([format!("your login shell finds it: {file}")])
                    .fix(format!("use the full path: \"command\": \"{file}\"")),
                None => finding.fix(install(name)).fix("or give its full path: \"command\": \"/path/to/it\""),
            }
        }
        Program::NoFile(file) => {
            Finding::new(Problem::ProgramNotFound, format!("there is no file {}", file.display()))
                .evidence([silence.text.as_str()])
                .fix("check the path; a host may start it in another folder, so give it from the root")
        }
        Program::NotExecutable(file) => {
            let summary = format!("{} may not be run", file.display());
            Finding::new(Problem::ProgramNotExecutable, summary)
                .evidence([silence.text.as_str()])
                .fix(format!("chmod +x {}", shell_word(&file.display().to_string())))
        }
        Program::NoInterpreter { script, interpreter } => {
            let summary = format!("the interpreter of {} is not there", script.display());
            Finding::new(Problem::InterpreterMissing, summary)
                .evidence([format!("its first line names {interpreter:?}")])
                .fix("install the interpreter, or make the environment of the script anew")
        }
        Program::NoDirectory(folder) => {
            let summary = format!("the working folder {} does not exist", folder.display());
            Finding::new(Problem::DirectoryMissing, summary).fix("mend \"cwd\" in the configuration")
        }
        Program::Found { .. } => Finding::new(Problem::SpawnFailed, format!("`{name}` cannot be started"))
            .evidence([silence.text.as_str()])
            .fix("is it made for this system? try to run it by hand"),
    }]
}

/// How the usual starters of servers are installed.
fn install(program: &str) -> String {
    match program {
        "npx" | "npm" | "node" => "install Node.js: https://nodejs.org".to_owned(),
        "uvx" | "uv" => "install uv: https://docs.astral.sh/uv".to_owned(),
        "docker" => "install Docker: https://docs.docker.com/get-docker".to_owned(),
        "python" => "install Python, or use python3".to_owned(),
        other => format!("install `{other}`"),
    }
}

/// Hosts on the desktop find the program as well.
pub(super) fn path(case: &Case) -> Vec<Finding> {
    let Some(Program::Found { file, by_path: false }) = &case.program else { return Vec::new() };
    let usual = file.parent().is_some_and(|folder| DESKTOP_PATH.iter().any(|usual| folder.ends_with(usual)));
    if usual || cfg!(windows) {
        return Vec::new();
    }
    let summary = "hosts that are started from the desktop may not find the program";
    let finding = Finding::new(Problem::PathDiffers, summary);
    let finding = finding.evidence([format!("it is {}, which is not in their PATH", file.display())]);
    vec![finding.fix(format!("in their configuration: \"command\": \"{}\"", file.display()))]
}

/// The program does not end before it answers.
pub(super) fn ends(case: &Case) -> Vec<Finding> {
    let Some(ending) = case.child.ending.filter(|_| case.talk.is_err()) else { return Vec::new() };
    let meaning = last_words::cause(&case.child.stderr);
    let summary = match &meaning {
        Some(meaning) => format!("the program ends before it answers: {}", meaning.what),
        None => "the program ends before it answers".to_owned(),
    };
    let finding = Finding::new(Problem::ExitsAtOnce, summary).evidence([format!("it {ending}")]);
    let finding = match case.child.stderr.as_slice() {
        [] => finding.evidence(["it wrote nothing to standard error"]),
        lines => finding.evidence(tail(lines)),
    };
    let finding = match case.child.junk.as_slice() {
        [] => finding,
        lines => finding.evidence(tail(lines).map(|line| format!("on standard output: {line}"))),
    };
    vec![match meaning {
        Some(meaning) => finding.fix(meaning.fix),
        None => finding.fix(format!("run it by hand and see what it wants: {}", case.address)),
    }]
}

/// The last few lines.
fn tail(lines: &[String]) -> impl Iterator<Item = String> {
    const LINES: usize = 6;
    lines.iter().skip(lines.len().saturating_sub(LINES)).cloned()
}

/// Standard output has only messages.
pub(super) fn junk(case: &Case) -> Vec<Finding> {
    if case.child.junk_count == 0 || case.child.ending.is_some() {
        return Vec::new();
    }
    let count = case.child.junk_count;
    let summary = match count {
        1 => "a line on standard output is not an MCP message".to_owned(),
        _ => format!("{count} lines on standard output are not MCP messages"),
    };
    let finding = Finding::new(Problem::JunkOnStdout, summary).evidence(&case.child.junk);
    vec![
        finding.fix("log to standard error: standard output belongs to the protocol, and many hosts give up"),
    ]
}

/// The server answers soon enough for every host.
pub(super) fn start(case: &Case) -> Vec<Finding> {
    let Some(talk) = case.talk() else { return Vec::new() };
    // The time that a client waits for an answer in vain is not that of the start.
    let first = if talk.silent_on_discover { talk.took } else { talk.first };
    let limit = waits::stretched(SLOW_START);
    if first <= limit {
        return Vec::new();
    }
    let slow = talk.took > limit;
    let summary = if slow {
        format!("the first answer took {:.1} s", talk.took.as_secs_f64())
    } else {
        format!(
            "the first start took {:.1} s, the second {:.1} s",
            first.as_secs_f64(),
            talk.took.as_secs_f64()
        )
    };
    let severity = if slow { Severity::Warning } else { Severity::Note };
    let finding = Finding::new(Problem::SlowStart, summary).severity(severity);
    let finding = finding.evidence(["hosts give up after 10 to 60 s, and a busy machine is slower than now"]);
    let fetched = matches!(&case.address, Address::Command(command) if is_fetcher(&command.program));
    vec![if fetched {
        finding.fix("install the package instead of fetching it at every start, and pin its version")
    } else {
        finding.fix("answer first, load later")
    }]
}

fn is_fetcher(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    matches!(name.split('.').next(), Some("npx" | "uvx" | "bunx" | "pnpm" | "pipx" | "docker"))
}
