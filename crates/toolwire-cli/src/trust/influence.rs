//! Variables with which a file can run something else than the command that it names.

/// Variables that tell a system, a shell, an interpreter or a tool where code is, or what to run besides.
const NAMES: [&str; 44] = [
    "BASH_ENV",
    "BUN_OPTIONS",
    "CLASSPATH",
    "CORECLR_ENABLE_PROFILING",
    "CORECLR_PROFILER_PATH",
    "COR_PROFILER_PATH",
    "DENO_DIR",
    "DOCKER_HOST",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GOFLAGS",
    "HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PAGER",
    "PATH",
    "PATHEXT",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "SHELL",
    "SHELLOPTS",
    "USERPROFILE",
    "VIRTUAL_ENV",
    "VISUAL",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// The beginnings of the names of others.
const FAMILIES: [&str; 12] = [
    "BASH_FUNC_",
    "BUNDLE_",
    "CARGO_",
    "DYLD_",
    "GIT_",
    "LD_",
    "NPM_CONFIG_",
    "PIP_",
    "PYTHON",
    "RUSTUP_",
    "UV_",
    "XDG_",
];

/// Whether a variable with this name can make a program run something else.
pub(super) fn is_influential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_program_is_known_and_what_does_not_is_left_alone() {
        for name in
            ["PATH", "Path", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "GIT_SSH"]
        {
            assert!(is_influential(name), "{name}");
        }
        for name in ["TOKEN", "LANG", "API_KEY", "PORT", "LDAP_URL", "MY_PATH"] {
            assert!(!is_influential(name), "{name}");
        }
    }
}
