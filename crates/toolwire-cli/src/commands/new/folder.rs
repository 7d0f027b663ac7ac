//! Making a folder with files in it: all of it, or nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::failure::{Code, Explain, Failure, Result};

/// Makes a folder with these files. Nothing is left behind when that fails.
pub(super) fn create(folder: &Path, files: &[(&str, String)]) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            let text = format!("there is a folder {} already, and it is not empty", folder.display());
            return Err(Failure::new(Code::Usage, text).hint("choose another name, or move it away"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Failure::new(Code::Usage, format!("{} is in the way: {error}", folder.display())));
        }
        _ => {}
    }
    let draft = Draft::beside(folder)?;
    for (path, text) in files {
        let path = draft.0.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all).context(path.display())?;
        fs::write(&path, text).context(path.display())?;
    }
    // An empty folder makes way; one that is not there needs not.
    let _ = fs::remove_dir(folder);
    fs::rename(&draft.0, folder).context(folder.display())
}

/// A folder that is removed unless it has got its real name.
struct Draft(PathBuf);

impl Draft {
    fn beside(folder: &Path) -> Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let draft = folder.with_file_name(format!(".{name}.{}", std::process::id()));
        // Its own name is nothing that anybody has asked for.
        fs::create_dir(&draft).context(folder.display()).hint("choose a folder that you may write to")?;
        Ok(Self(draft))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After it was renamed there is nothing to remove.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn all_files_or_none() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("new");
        // A file cannot be a folder as well, so the second one fails.
        let files = [("a", "1".to_owned()), ("a/b", "2".to_owned())];
        create(&folder, &files).unwrap_err();
        assert_eq!(names(place.path()), Vec::<String>::new());
        create(&folder, &[("src/a", "1".to_owned())]).unwrap();
        assert_eq!(names(place.path()), ["new"]);
        assert_eq!(fs::read_to_string(folder.join("src/a")).unwrap(), "1");
    }

    #[test]
    fn only_an_empty_folder_is_taken_over() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("new");
        fs::create_dir(&folder).unwrap();
        create(&folder, &[("a", String::new())]).unwrap();
        assert_eq!(create(&folder, &[("b", String::new())]).unwrap_err().code(), Code::Usage);
        assert_eq!(names(&folder), ["a"]);
        let file = folder.join("a");
        assert_eq!(create(&file, &[]).unwrap_err().code(), Code::Usage);
    }
}
