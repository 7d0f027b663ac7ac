//! Bytes: summarised, or saved where `-o` says.

use std::path::{Path, PathBuf};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::size;
use crate::{
    failure::{Code, Explain, Failure, Result},
    terminal::printable_line,
};

/// Takes base64 with and without padding, because servers send both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes that a text in base64 stands for.
pub(crate) fn decode(data: &str) -> Result<Vec<u8>> {
    BASE64.decode(data).map_err(|error| {
        Failure::new(Code::InvalidAnswer, format!("the server sent bytes that are not base64: {error}"))
    })
}

/// Saves bytes to the file of `-o`, or to files in its folder when there are several.
#[derive(Debug)]
pub(crate) struct Saver {
    to: Option<PathBuf>,
    is_folder: bool,
    saved: usize,
}

impl Saver {
    /// A saver for this many pieces.
    pub(crate) fn new(to: Option<&Path>, pieces: usize) -> Self {
        let named = |path: &Path| path.to_string_lossy().ends_with(['/', '\\']);
        let is_folder = to.is_some_and(|path| pieces > 1 || path.is_dir() || named(path));
        Self { to: to.map(Path::to_owned), is_folder, saved: 0 }
    }

    /// Saves a piece, or says what it is and how it can be saved.
    pub(crate) fn piece(&mut self, kind: &str, mime_type: Option<&str>, data: &str) -> Result<String> {
        let bytes = decode(data)?;
        let what =
            format!("{}, {}", printable_line(mime_type.unwrap_or("of no known type")), size(bytes.len()));
        match self.save(kind, mime_type, &bytes)? {
            Some(path) => Ok(format!("{kind} saved as {}: {what}", path.display())),
            None => Ok(format!("{kind}: {what} (-o FILE saves it)")),
        }
    }

    /// Saves bytes where that is wanted, and says where.
    pub(crate) fn save(
        &mut self,
        kind: &str,
        mime_type: Option<&str>,
        bytes: &[u8],
    ) -> Result<Option<PathBuf>> {
        let Some(to) = &self.to else { return Ok(None) };
        self.saved += 1;
        let path = if self.is_folder {
            std::fs::create_dir_all(to).context(to.display())?;
            // Names that a server gives could lead anywhere, so the files are numbered.
            to.join(format!("{kind}-{}.{}", self.saved, extension(mime_type)))
        } else {
            to.clone()
        };
        let is_new = !path.exists();
        std::fs::write(&path, bytes)
            .inspect_err(|_| {
                if is_new {
                    // Half of a picture looks like a picture.
                    let _ = std::fs::remove_file(&path);
                }
            })
            .context(path.display())?;
        Ok(Some(path))
    }
}

/// The usual ending of a file of this type.
fn extension(mime_type: Option<&str>) -> &'static str {
    let mime_type = mime_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    match mime_type.to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "text/html" => "html",
        "text/csv" => "csv",
        "text/markdown" => "md",
        text if text.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_the_file_and_several_are_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.png");
        let told = Saver::new(Some(&file), 1).piece("image", Some("image/png"), "AAEC").unwrap();
        assert!(told.ends_with("x.png: image/png, 3 B"), "{told}");
        assert_eq!(std::fs::read(&file).unwrap(), [0, 1, 2]);

        let many = folder.path().join("many");
        let mut saver = Saver::new(Some(&many), 2);
        saver.piece("image", Some("image/png"), "AAEC").unwrap();
        saver.piece("audio", Some("../../evil"), "AA").unwrap();
        assert!(many.join("image-1.png").exists() && many.join("audio-2.bin").exists());
    }

    #[test]
    fn what_is_not_saved_is_summarised_and_what_is_no_base64_is_told() {
        let mut saver = Saver::new(None, 1);
        assert_eq!(
            saver.piece("image", Some("image/\u{1b}"), "AAEC").unwrap(),
            "image: image/\\x1b, 3 B (-o FILE saves it)"
        );
        assert_eq!(saver.piece("image", None, "???").unwrap_err().code(), Code::InvalidAnswer);
    }
}
