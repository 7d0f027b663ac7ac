//! Which file a command would really run: a file of the project may say where programs are.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{
    config::{Pending, Places},
    private_file,
    target::Command,
};

/// What a command would run, if its file has a say in that.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// A file of the project.
    Own(PathBuf),
    /// A file elsewhere, found by the PATH of the file.
    Elsewhere(PathBuf),
    /// Nothing that is there now.
    Nothing,
    /// That depends on variables.
    Depends,
}

/// What a command would run, unless that is what the user's own PATH finds outside of the project.
pub(super) fn runs(command: &Command, pending: &Pending, places: &Places) -> Option<Runs> {
    let known = |text: &str| known(text, &pending.folder, places);
    let own = command.env.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
    let by_path = Path::new(&command.program).components().count() <= 1;
    let folder = match &command.directory {
        Some(folder) => {
            let written = folder.strip_prefix(&pending.folder).unwrap_or(folder);
            match known(&written.display().to_string()) {
                Some(folder) => pending.folder.join(folder),
                None => return Some(Runs::Depends),
            }
        }
        None => places.current().to_owned(),
    };
    let Some(program) = known(&command.program) else { return Some(Runs::Depends) };
    let files = if by_path {
        let path = match own {
            Some((_, path)) => match known(path) {
                Some(path) => path,
                None => return Some(Runs::Depends),
            },
            None => places.variable("PATH").unwrap_or_default().to_owned(),
        };
        // An entry that is relative, or empty, is about the folder that the program is started in.
        env::split_paths(&path).map(|entry| folder.join(entry).join(&program)).collect()
    } else {
        vec![folder.join(&program)]
    };
    let file = files.into_iter().flat_map(endings).find(|file| is_program(file));
    // That of the file, which may have been named from elsewhere.
    let root = private_file::real(places.seen_from(pending.folder.clone()).root());
    match file.map(|file| file.canonicalize().unwrap_or(file)) {
        Some(file) if file.starts_with(&root) => Some(Runs::Own(file)),
        Some(file) if own.is_some() && by_path => Some(Runs::Elsewhere(file)),
        None if own.is_some() && by_path => Some(Runs::Nothing),
        _ => None,
    }
}

/// A text with the variables that cannot be secrets; none if others are left.
fn known(text: &str, folder: &Path, places: &Places) -> Option<String> {
    let folder = folder.display().to_string();
    let home = places.home("").map(|home| home.display().to_string().trim_end_matches('/').to_owned());
    let mut text = text.to_owned();
    for (name, value) in [
        ("${workspaceFolder}", Some(folder.as_str())),
        ("${workspaceRoot}", Some(folder.as_str())),
        ("${/}", Some(std::path::MAIN_SEPARATOR_STR)),
        ("${pathSeparator}", Some(std::path::MAIN_SEPARATOR_STR)),
        ("${userHome}", home.as_deref()),
        ("${HOME}", home.as_deref()),
        ("${env:HOME}", home.as_deref()),
        ("${PATH}", places.variable("PATH")),
        ("${env:PATH}", places.variable("PATH")),
    ] {
        if let Some(value) = value {
            text = text.replace(name, value);
        }
    }
    (!text.contains('$')).then_some(text)
}

fn endings(file: PathBuf) -> Vec<PathBuf> {
    if cfg!(windows) {
        let with = |ending: &str| {
            let mut name = file.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        vec![with(".exe"), with(".cmd"), with(".bat"), file.clone()]
    } else {
        vec![file]
    }
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}
