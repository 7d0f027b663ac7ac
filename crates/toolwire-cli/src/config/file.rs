//! Reading a file of settings, whatever is in its place.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::{
    failure::{Code, Failure, Result},
    terminal::printable_line,
};

/// How large a file of settings may be. Claude Code keeps much else in its own.
pub(crate) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The text of a file, and how it was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// Without the mark of the byte order.
    pub(crate) text: String,
    pub(crate) encoding: Encoding,
}

/// How a text was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// With the mark that some Windows programs put in front.
    Utf8WithMark,
    Utf16,
}

/// Reads a file; there may be none.
pub(crate) fn read(path: &Path) -> Result<Option<Text>> {
    read_bytes(path)?.map(|bytes| text(path, &bytes)).transpose()
}

/// The bytes of a file; there may be none.
pub(crate) fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    bytes(path, MAX_FILE_BYTES).map_err(|error| broken(path, &error.to_string()))
}

/// The text that bytes of a file are.
pub(crate) fn text(path: &Path, bytes: &[u8]) -> Result<Text> {
    decode(bytes).map_err(|why| broken(path, &why))
}

/// A failure about a whole file.
pub(crate) fn broken(path: &Path, why: &str) -> Failure {
    let text = printable_line(&format!("{}: {why}", path.display()));
    let failure = Failure::new(Code::ConfigBroken, text);
    failure.data(serde_json::json!({ "file": path }))
}

fn bytes(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if metadata.is_dir() {
        return Err(io::Error::other("is a folder, where a file was expected"));
    }
    // A pipe or a device might never end, or never begin.
    if !metadata.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= limit) {
        Ok(Some(bytes))
    } else {
        let limit = limit / 1024 / 1024;
        Err(io::Error::other(format!("is larger than {limit} MiB, which is more than settings can be")))
    }
}

/// A file below something that is no folder is as absent as one in an empty folder.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn decode(bytes: &[u8]) -> Result<Text, String> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest, Encoding::Utf8WithMark),
        _ => utf8(bytes, Encoding::Utf8),
    }
}

fn utf8(bytes: &[u8], encoding: Encoding) -> Result<Text, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Text { text: text.to_owned(), encoding }),
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.split(|byte| *byte == b'\n').count();
            Err(format!("is not UTF-8 text (line {line} is where that begins); save it as UTF-8"))
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Text, String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match text {
        Ok(text) if rest.is_empty() => Ok(Text { text, encoding: Encoding::Utf16 }),
        _ => Err("begins as UTF-16 text but is damaged; save it as UTF-8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_understood() {
        let of = |encoding| Ok(Text { text: "{é}".to_owned(), encoding });
        assert_eq!(decode("{é}".as_bytes()), of(Encoding::Utf8));
        assert_eq!(decode("\u{feff}{é}".as_bytes()), of(Encoding::Utf8WithMark));
        assert_eq!(decode(&[0xff, 0xfe, b'{', 0, 0xe9, 0, b'}', 0]), of(Encoding::Utf16));
        assert_eq!(decode(&[0xfe, 0xff, 0, b'{', 0, 0xe9, 0, b'}']), of(Encoding::Utf16));
    }

    #[test]
    fn what_is_no_text_is_told_with_its_line() {
        assert!(decode(b"{\n\n\xff}").unwrap_err().contains("line 3"));
        assert!(decode(&[0xff, 0xfe, b'{']).unwrap_err().contains("damaged"));
        assert!(decode(&[0xff, 0xfe, 0, 0xd8]).unwrap_err().contains("damaged"));
    }

    #[test]
    fn the_limit_is_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(bytes(&file, 5).unwrap().unwrap(), b"12345");
        assert!(bytes(&file, 4).unwrap_err().to_string().contains("is larger than"));
    }

    #[test]
    fn what_is_not_there_is_not_broken() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&folder.path().join("no/such/file")).unwrap(), None);
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(read(&folder.path().join("file/below")).unwrap(), None);
        let failure = read(folder.path()).unwrap_err();
        assert!(failure.message().contains("is a folder"), "{failure}");
    }

    #[test]
    #[cfg(unix)]
    fn links_that_lead_nowhere_are_absent_and_circles_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, three] = ["one", "two", "three"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&one, &two).unwrap();
        assert_eq!(read(&two).unwrap(), None);
        std::os::unix::fs::symlink(&two, &one).unwrap();
        let failure = read(&two).unwrap_err();
        assert!(failure.message().contains("symbolic link"), "{failure}");
        std::os::unix::fs::symlink("/dev/zero", &three).unwrap();
        assert!(read(&three).unwrap_err().message().contains("not a regular file"));
    }
}
