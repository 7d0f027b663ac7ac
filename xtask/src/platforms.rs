//! Everything is compiled for Windows and macOS, on Linux: the only thing that can be said of code for a machine that
//! nobody here has.
//!
//! Debian has a compiler whose sources of the standard library are a package, and so can build that library for a
//! target it brings nothing for. The C in our dependencies is compiled by MinGW, and by zig, which has Apple's headers.
//! Nothing is linked and nothing is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::debian::Package;
use crate::process::Program;
use crate::steps::{Outcome, Stop};
use crate::workspace::{Workspace, root};

/// A first build has the standard library and every dependency to check.
const LIMIT: Duration = Duration::from_mins(45);
/// Downloads may be slow.
const INSTALL_LIMIT: Duration = Duration::from_mins(15);

/// Debian's compiler. Never the one in the path, which has no sources of the standard library.
const RUSTC: &str = "/usr/bin/rustc";
const SOURCES: &str = "/usr/lib/rustlib/src/rust/library/Cargo.lock";
const MINGW: &str = "/usr/bin/x86_64-w64-mingw32-gcc";

pub(crate) const PACKAGES: [Package; 3] = [
    Package { name: "rustc-web", find: || file(RUSTC) },
    Package { name: "rust-web-src", find: || file(SOURCES) },
    Package { name: "gcc-mingw-w64-x86-64", find: || file(MINGW) },
];

/// The package of PyPI with zig in it.
const ZIG: &str = "ziglang==0.17.0";

/// A compiler for macOS under the name that build scripts are told. What Apple's compiler knows and zig does not, or
/// says with `-target`, is dropped.
const COMPILER: &str = r#"#!/bin/sh
for argument do
    shift
    case "$argument" in
    -arch | arm64 | -gfull | -mmacosx-version-min=* | --target=*) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "$(dirname "$0")/venv/bin/python" -m ziglang cc -target aarch64-macos "$@"
"#;

const TARGETS: &[&str] = &["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

pub(crate) fn prepare() -> Result<(), String> {
    compilers().map(drop).map_err(Stop::into_reason)
}

pub(crate) fn run() -> Outcome {
    let compiler = compilers()?;
    for target in TARGETS {
        check(target, &compiler)?;
    }
    Ok(())
}

fn check(target: &str, compiler: &Path) -> Outcome {
    let place = Workspace::read(&root())?.target.join("platforms");
    let build = ["check", "--workspace", "--all-features", "-Zbuild-std", "--target", target];
    let build = Program::cargo(&root(), LIMIT)
        .args(build)
        .env("CARGO_TARGET_DIR", &place.display().to_string())
        .env("RUSTC", RUSTC)
        // The one door to building the standard library with a released compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-Zwarnings"])
        .env("CARGO_BUILD_WARNINGS", "deny")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CC_aarch64_apple_darwin", &compiler.display().to_string())
        .env("AR_aarch64_apple_darwin", "ar");
    Ok(build.run()?)
}

fn file(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(path)).filter(|path| path.exists())
}

/// Installs the compiler for macOS, and returns where it is, unless one of the others is missing.
fn compilers() -> Result<PathBuf, Stop> {
    if !cfg!(target_os = "linux") {
        return Err(Stop::skipped("other platforms are compiled for on Debian only: run this there"));
    }
    for package in PACKAGES {
        package.require()?;
    }
    let place = Workspace::read(&root())?.target.join("tools").join(ZIG.replace("==", "-"));
    let compiler = place.join("cc");
    if !compiler.exists() {
        install_zig(&place, &compiler).map_err(Stop::skipped)?;
    }
    Ok(compiler)
}

fn install_zig(place: &Path, compiler: &Path) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("{}: {error}", place.display());
    fs::create_dir_all(place).map_err(explain)?;
    let python = |program: &Path, arguments: &[&str]| {
        Program::new(program, INSTALL_LIMIT).args(arguments).directory(place).run()
    };
    python(Path::new("python3"), &["-m", "venv", "--clear", "venv"])?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", ZIG];
    python(&place.join("venv/bin/python"), &install)?;
    // Last, because its being there says that everything is.
    let script = compiler.with_extension("new");
    fs::write(&script, COMPILER).map_err(explain)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(explain)?;
    }
    fs::rename(script, compiler).map_err(explain)
}
