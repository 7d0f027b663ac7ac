//! `toolwire new`: make a new server project that compiles and passes its tests.

mod folder;
mod name;

use std::path::{Path, PathBuf};

use clap::Args;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::{
    config::Places,
    failure::{Code, Failure, Result},
    terminal::Terminal,
    trust,
};
use name::Name;

/// Make a new server project: a tool, a tool that asks back, a prompt and their tests
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  toolwire new weather\n  cd weather && cargo test")]
pub(crate) struct Options {
    /// The name of the project and its folder
    name: String,

    /// Use the Toolwire in this folder instead of the published one
    #[arg(long, value_name = "FOLDER")]
    toolwire_path: Option<PathBuf>,
}

/// The version of this program and of the library.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The files, with what they are made from. `{{name}}`, `{{crate}}` and `{{toolwire}}` are filled in.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("template/Cargo.toml.template")),
    ("src/lib.rs", include_str!("template/lib.rs")),
    ("src/main.rs", include_str!("template/main.rs")),
    ("tests/server.rs", include_str!("template/server_test.rs")),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", include_str!("template/gitignore")),
    (".mcp.json", include_str!("template/mcp.json")),
];

/// Runs the command.
pub(crate) fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let name = Name::check(&options.name)?;
    let program = std::env::current_exe().ok();
    let checkout = program.iter().flat_map(|program| program.ancestors()).skip(1).find_map(package);
    let source = match (&options.toolwire_path, checkout) {
        (Some(path), _) => given(path)?,
        (None, Some(folder)) => Source::Folder(folder),
        (None, None) => Source::Published,
    };
    let toolwire = source.dependency()?;
    let filled = |template: &str| {
        template
            .replace("{{name}}", name.package())
            .replace("{{crate}}", &name.library())
            .replace("{{toolwire}}", &toolwire)
    };
    let files: Vec<_> = FILES.iter().map(|(path, template)| (*path, filled(template))).collect();
    folder::create(Path::new(name.package()), &files)?;
    trust_own(name.package(), &files, terminal);
    if terminal.json {
        let files: Vec<_> = FILES.iter().map(|(path, _)| path).collect();
        return terminal.print_json(&json!({ "created": name.package(), "files": files }));
    }
    terminal.print(format_args!("{} {}\n", "Made".green().bold(), name.package().bold()))?;
    for (what, line) in [
        ("look around", format!("cd {} && cargo test", name.package())),
        ("what can it do?", "toolwire tools -- cargo run --quiet".to_owned()),
        ("be asked something", "toolwire call card occasion=birthday -- cargo run --quiet".to_owned()),
    ] {
        terminal.print(format_args!("  {}\n    {line}", format_args!("# {what}").dimmed()))?;
    }
    if options.toolwire_path.is_none() {
        terminal.print(format_args!("\n{}", source.remark(name.package())))?;
    }
    terminal.print(format_args!("\nThe tools are in {}.", "src/lib.rs".bold()))
}

/// Which Toolwire a project uses.
enum Source {
    /// The one that is published.
    Published,
    /// The one in this folder.
    Folder(PathBuf),
}

impl Source {
    /// Returns the value of `toolwire =` in the manifest.
    fn dependency(&self) -> Result<String> {
        let Self::Folder(folder) = self else { return Ok(format!("\"{VERSION}\"")) };
        let folder = std::path::absolute(folder)?;
        Ok(format!("{{ path = {} }}", toml_edit::Value::from(folder.to_string_lossy().into_owned())))
    }

    /// Which one it is, where it was not said.
    fn remark(&self, name: &str) -> String {
        match self {
            Self::Published => format!(
                "It depends on the published toolwire {VERSION}. If there is none yet, use a checkout:\n  \
                 remove {name}, then: toolwire new {name} --toolwire-path FOLDER"
            ),
            Self::Folder(folder) => {
                format!("It depends on the checkout that this program is in:\n  {}", folder.display())
            }
        }
    }
}

/// What this program has just written needs nobody to look at it.
fn trust_own(folder: &str, files: &[(&str, String)], terminal: Terminal) {
    let places = Places::here();
    for (path, text) in files.iter().filter(|(path, _)| *path == ".mcp.json") {
        if let Err(failure) = trust::follow(&places, &Path::new(folder).join(path), None, text.as_bytes()) {
            terminal.warn(failure);
        }
    }
}

/// The Toolwire in a folder that was named.
fn given(path: &Path) -> Result<Source> {
    package(path).map(Source::Folder).ok_or_else(|| {
        let text = format!("--toolwire-path: {} is not where Toolwire is", path.display());
        Failure::new(Code::Usage, text).hint("give the folder that was checked out")
    })
}

/// The package in a checkout, or in its own folder.
fn package(checkout: &Path) -> Option<PathBuf> {
    let is_package = |folder: &PathBuf| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == "name = \"toolwire\"")
    };
    [checkout.to_owned(), checkout.join("crates/toolwire")].into_iter().find(is_package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_project_depends_on_is_said_and_written() {
        assert_eq!(Source::Published.dependency().unwrap(), format!("\"{VERSION}\""));
        let remark = Source::Published.remark("hello");
        assert!(remark.contains("remove hello, then: toolwire new hello --toolwire-path FOLDER"), "{remark}");
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let Ok(source) = given(&checkout) else { panic!("{} is a checkout", checkout.display()) };
        assert!(source.dependency().unwrap().starts_with("{ path = "));
        assert!(source.remark("hello").contains("crates/toolwire"));
        assert!(package(Path::new("nowhere")).is_none());
    }
}
