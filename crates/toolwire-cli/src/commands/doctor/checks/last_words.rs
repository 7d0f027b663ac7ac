//! What the last lines of a dying program mean.

/// A cause in plain words, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) what: String,
    pub(super) fix: String,
}

/// Reads the last lines on standard error.
pub(super) fn cause(lines: &[String]) -> Option<Cause> {
    READERS
        .iter()
        .find_map(|read| lines.iter().rev().find_map(|line| read(line)))
        .or_else(|| traceback(lines))
}

/// The readers, the most telling first.
const READERS: &[fn(&str) -> Option<Cause>] = &[
    node_module,
    python_module,
    npm_package,
    python_package,
    shell_command,
    port_taken,
    docker,
    network,
    variable,
    permission,
    old_node,
    panic,
    usage,
];

impl Cause {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

/// What is between quotes after `start`.
fn quoted<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let rest = line.split_once(start)?.1.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    rest.get(1..)?.split(quote).next().filter(|name| !name.is_empty())
}

fn node_module(line: &str) -> Option<Cause> {
    let name = quoted(line, "Cannot find module").or_else(|| quoted(line, "Cannot find package"))?;
    if name.starts_with(['/', '.']) || name.contains(":\\") {
        let what = format!("Node.js finds no file {name}");
        return Some(Cause::new(what, "check the path, or build the server first"));
    }
    Some(Cause::new(
        format!("the Node.js package `{name}` is missing"),
        format!("npm install {name}, in the server's folder"),
    ))
}

fn python_module(line: &str) -> Option<Cause> {
    if !line.contains("ModuleNotFoundError") && !line.contains("No module named") {
        return None;
    }
    let name = quoted(line, "No module named")
        .or_else(|| line.rsplit("No module named").next().map(str::trim))
        .filter(|name| !name.is_empty())?;
    // What is installed is the package, not what is inside of it.
    let package = name.split('.').next().unwrap_or(name);
    let fix =
        format!("install it where this Python looks: python -m pip install {package}; or start with uvx");
    Some(Cause::new(format!("the Python module `{name}` is missing"), fix))
}

fn npm_package(line: &str) -> Option<Cause> {
    let name = quoted(line, "404 ").or_else(|| quoted(line, "The requested resource"))?;
    let name = name.trim_end_matches("@*").trim_end_matches("@latest");
    let fix = "check the name of the package; private ones need a login: npm login";
    line.contains("npm").then(|| Cause::new(format!("npm knows no package `{name}`"), fix))
}

fn python_package(line: &str) -> Option<Cause> {
    let missing = line.contains("was not found in the package registry")
        || line.contains("No matching distribution found")
        || line.contains("No solution found when resolving");
    missing.then(|| {
        Cause::new("the Python package does not exist", "check the name of the package and its version")
    })
}

fn shell_command(line: &str) -> Option<Cause> {
    let missing = line.contains("command not found") || line.ends_with(": not found");
    if !missing {
        return None;
    }
    Some(Cause::new(
        format!("a program that it needs is missing ({})", line.trim()),
        "install it, or give its full path",
    ))
}

fn port_taken(line: &str) -> Option<Cause> {
    let taken = line.contains("EADDRINUSE") || line.to_ascii_lowercase().contains("address already in use");
    taken.then(|| {
        Cause::new("its port is taken", "end the other program on that port, or choose another port")
    })
}

fn docker(line: &str) -> Option<Cause> {
    (line.contains("Cannot connect to the Docker daemon") || line.contains("docker.sock"))
        .then(|| Cause::new("Docker is not running", "start Docker"))
}

fn network(line: &str) -> Option<Cause> {
    let offline = ["ENOTFOUND", "EAI_AGAIN", "getaddrinfo", "Temporary failure in name resolution"];
    (offline.iter().any(|word| line.contains(word)))
        .then(|| Cause::new("it finds no network", "check the network and the proxy"))
}

/// A variable that is not set: a word in capitals with an underscore, and a complaint.
fn variable(line: &str) -> Option<Cause> {
    let complaints =
        ["not set", "required", "missing", "must be set", "undefined", "not provided", "KeyError"];
    if !complaints.iter().any(|complaint| line.to_lowercase().contains(&complaint.to_lowercase())) {
        return None;
    }
    let is_variable = |word: &&str| {
        word.contains('_')
            && word.len() > 3
            && !word.starts_with("ERR_")
            && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let name = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(is_variable)?;
    Some(Cause::new(
        format!("the variable {name} is not set"),
        format!("--env {name}=…, or \"env\" in the configuration"),
    ))
}

fn permission(line: &str) -> Option<Cause> {
    let denied =
        line.contains("EACCES") || line.contains("Permission denied") || line.contains("PermissionError");
    denied.then(|| {
        Cause::new("it is not allowed to read or write something", "check the permissions of what it names")
    })
}

fn old_node(line: &str) -> Option<Cause> {
    let old = line.contains("SyntaxError: Unexpected")
        || line.contains("Unsupported engine")
        || line.contains("EBADENGINE");
    old.then(|| Cause::new("Node.js is too old for it", "install a newer Node.js: node --version"))
}

fn panic(line: &str) -> Option<Cause> {
    (line.contains("panicked at") || line.contains("Segmentation fault")).then(|| {
        Cause::new("it crashed", "that is a mistake in the server: report it to its author, with these lines")
    })
}

fn usage(line: &str) -> Option<Cause> {
    let start = line.trim_start().to_ascii_lowercase();
    (start.starts_with("usage:") || start.starts_with("error: the following required arguments")).then(|| {
        Cause::new("it wants other arguments", "give it the arguments that it asks for, after its name")
    })
}

/// The last line of a Python traceback is the error.
fn traceback(lines: &[String]) -> Option<Cause> {
    lines.iter().position(|line| line.starts_with("Traceback (most recent call last)"))?;
    let last = lines.iter().rev().find(|line| !line.trim().is_empty() && !line.starts_with(' '))?;
    Some(Cause::new(last.trim(), "that is an error inside the server; the lines above it say where"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(text: &str) -> Option<String> {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        cause(&lines).map(|cause| cause.what)
    }

    #[test]
    fn the_usual_last_words_are_understood() {
        for (words, expected) in [
            ("Error: Cannot find module 'express'\n    at x (y:1)", "package `express` is missing"),
            ("Error: Cannot find module '/a/dist/index.js'", "no file /a/dist/index.js"),
            ("ModuleNotFoundError: No module named 'mcp'", "module `mcp` is missing"),
            ("/usr/bin/python3: No module named my_server", "module `my_server` is missing"),
            ("npm error 404  '@a/b@*' is not in this registry.", "no package `@a/b`"),
            (
                "npm error 404  The requested resource '@a/b@*' could not be found\nnpm error 404",
                "no package `@a/b`",
            ),
            ("  × No solution found when resolving tool dependencies:", "package does not exist"),
            ("sh: 1: foo: not found", "a program that it needs is missing (sh: 1: foo: not found)"),
            ("Error: listen EADDRINUSE: address already in use :::3000", "port is taken"),
            ("Error: GITHUB_TOKEN environment variable is required", "GITHUB_TOKEN is not set"),
            ("KeyError: 'API_KEY'", "API_KEY is not set"),
            ("getaddrinfo EAI_AGAIN packages.example", "no network"),
            ("PermissionError: [Errno 13] Permission denied: '/x'", "not allowed"),
            ("thread 'main' panicked at src/main.rs:1:1:", "crashed"),
            ("usage: server [-h] --db DB", "other arguments"),
            ("Traceback (most recent call last):\n  File \"x\"\nValueError: bad", "ValueError: bad"),
        ] {
            let what = what(words).unwrap_or_default();
            assert!(what.contains(expected), "{words}: {what}");
        }
    }

    #[test]
    fn a_package_is_installed_and_not_a_part_of_it() {
        let lines = ["ModuleNotFoundError: No module named 'mcp.server.lowlevel'".to_owned()];
        let cause = cause(&lines).unwrap();
        assert!(
            cause.fix.contains("pip install mcp;") && cause.what.contains("mcp.server.lowlevel"),
            "{cause:?}"
        );
    }

    #[test]
    fn other_words_mean_nothing() {
        for words in
            ["", "goodbye", "listening on port 3000", "No module named", "Cannot find module '", "_ required"]
        {
            assert_eq!(what(words), None, "{words}");
        }
    }
}
