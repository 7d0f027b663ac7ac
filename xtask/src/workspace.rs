//! What cargo says about this workspace: its crates, what they depend on, and where builds go.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::process::Program;

/// Cargo only reads manifests here, but it may have to wait for another cargo that holds the package cache.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);

/// The workspace as `cargo metadata` describes it.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) target: PathBuf,
}

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Where its manifest is, from the root of the workspace.
    pub(crate) folder: PathBuf,
    /// Whether others can depend on it.
    pub(crate) published: bool,
    pub(crate) programs: Vec<Binary>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Sorted, `default` included.
    pub(crate) features: Vec<String>,
}

/// One program of a crate.
#[derive(Debug, PartialEq)]
pub(crate) struct Binary {
    pub(crate) name: String,
    /// True if it has documentation of its own.
    pub(crate) documented: bool,
}

/// One line of a `[dependencies]` table.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// What a dependency is needed for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// The folder that holds the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns the folder that keeps results between runs, for all checkouts of this user.
pub(crate) fn cache() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("toolwire"))
}

impl Workspace {
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let arguments = ["metadata", "--format-version", "1", "--no-deps"];
        let text = Program::cargo(root, LIMIT).args(arguments).successful_output()?;
        Self::parse(&text).ok_or_else(|| "cargo metadata answered in a form we do not know".to_owned())
    }

    fn parse(text: &str) -> Option<Self> {
        let metadata: Value = serde_json::from_str(text).ok()?;
        let packages = metadata["packages"].as_array()?.iter().map(Package::parse).collect::<Option<_>>()?;
        Some(Self { packages, target: metadata["target_directory"].as_str()?.into() })
    }

    pub(crate) fn package(&self, name: &str) -> Result<&Package, String> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.ok_or_else(|| format!("the workspace has no crate `{name}`"))
    }
}

impl Package {
    fn parse(value: &Value) -> Option<Self> {
        let dependencies =
            value["dependencies"].as_array()?.iter().map(Dependency::parse).collect::<Option<_>>()?;
        let mut features: Vec<String> = value["features"].as_object()?.keys().cloned().collect();
        features.sort();
        let programs = value["targets"].as_array()?.iter().filter(|target| target["kind"][0] == "bin");
        let programs = programs.map(Binary::parse).collect::<Option<_>>()?;
        let manifest = Path::new(value["manifest_path"].as_str()?);
        let folder = manifest.parent()?;
        let folder = folder.strip_prefix(root()).unwrap_or(folder).to_path_buf();
        // A list of registries; an empty one means none.
        let published = value["publish"].as_array().is_none_or(|registries| !registries.is_empty());
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            folder,
            published,
            programs,
            dependencies,
            features,
        })
    }
}

impl Binary {
    fn parse(value: &Value) -> Option<Self> {
        Some(Self { name: value["name"].as_str()?.to_owned(), documented: value["doc"] == true })
    }
}

impl Dependency {
    fn parse(value: &Value) -> Option<Self> {
        let kind = match value["kind"].as_str() {
            None => Kind::Normal,
            Some("build") => Kind::Build,
            Some("dev") => Kind::Dev,
            Some(_) => return None,
        };
        Some(Self { name: value["name"].as_str()?.to_owned(), kind })
    }
}

/// Names of all crates in a package's tree of normal dependencies, itself included.
pub(crate) fn tree(root: &Path, package: &str, features: &[&str]) -> Result<Vec<String>, String> {
    let features = features.join(",");
    let arguments = ["tree", "-p", package, "--no-default-features", "--features", &features];
    let format = ["-e", "normal", "--prefix", "none", "--format", "{p}"];
    let text = Program::cargo(root, LIMIT).args(arguments).args(format).successful_output()?;
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::{Kind, Workspace, root, tree};

    #[test]
    fn cargo_metadata_is_understood() {
        let text = r#"{"target_directory":"/t","packages":[{"name":"p","manifest_path":"/p/Cargo.toml","targets":[{"kind":["bin"],"name":"q","doc":true},{"kind":["bin"],"name":"r","doc":false}],"features":{"b":[],"a":[]},
            "dependencies":[{"name":"x","kind":null},{"name":"y","kind":"dev"},{"name":"z","kind":"build"}]}]}"#;
        let workspace = Workspace::parse(text).unwrap();
        let package = workspace.package("p").unwrap();
        assert_eq!(package.features, ["a", "b"]);
        assert!(package.published);
        let programs: Vec<(&str, bool)> =
            package.programs.iter().map(|program| (program.name.as_str(), program.documented)).collect();
        assert_eq!(programs, [("q", true), ("r", false)]);
        let kinds: Vec<Kind> = package.dependencies.iter().map(|dependency| dependency.kind).collect();
        assert_eq!(kinds, [Kind::Normal, Kind::Dev, Kind::Build]);
        assert!(workspace.package("q").is_err());
    }

    #[test]
    fn a_tree_names_direct_and_indirect_dependencies() {
        let names = tree(&root(), "xtask", &[]).unwrap();
        for name in ["xtask", "serde_json", "itoa"] {
            assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
        }
    }
}
