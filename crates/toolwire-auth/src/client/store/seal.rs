//! Sealing what is stored with a key that is in the keyring of the system.
//!
//! Keyrings hold little, some no more than two kilobytes, and tokens may be longer: so they have the key, and files the
//! records.

use std::{fmt, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use keyring_core::{Entry, Error};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::{StoreError, StoreErrorKind};

const KEY_BYTES: usize = 32;

/// The name of the key in the keyring, beside that of the application.
const USER: &str = "key of stored logins";

/// What sealed files are.
const VERSION: u64 = 1;

/// A key that seals.
pub(super) struct Seal(LessSafeKey);

impl Seal {
    /// The key of an application, which is made if there is none. Whoever calls this keeps others from doing the same.
    pub(super) fn of(application: &str) -> Result<Self, StoreError> {
        let failed = |error: Error| {
            let text = match error {
                Error::NoDefaultStore => {
                    "no keyring was chosen; see keyring_core::set_default_store".to_owned()
                }
                // What else it says may have the secret in it.
                Error::BadEncoding(_) | Error::BadDataFormat(..) => "its entry cannot be read".to_owned(),
                error => error.to_string(),
            };
            StoreError::new(StoreErrorKind::Failed, format!("the keyring cannot be used: {text}"))
        };
        let entry = Entry::new(application, USER).map_err(failed)?;
        match entry.get_secret() {
            Ok(key) => Self::new(&Zeroizing::new(key)),
            Err(Error::NoEntry) => {
                let mut key = Zeroizing::new([0; KEY_BYTES]);
                getrandom::fill(&mut *key).map_err(|error| {
                    StoreError::new(StoreErrorKind::Failed, format!("no key can be made: {error}"))
                })?;
                entry.set_secret(&*key).map_err(failed)?;
                // Without a lock, another program may have written its own meanwhile: the one that is there counts.
                Self::new(&Zeroizing::new(entry.get_secret().map_err(failed)?))
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn new(key: &[u8]) -> Result<Self, StoreError> {
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| {
            let text = "what the keyring has under the name of this application is not a key";
            StoreError::new(StoreErrorKind::Unreadable, text)
        })?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals what is to be in a file. It cannot be opened in a file of another name.
    pub(super) fn close(&self, path: &Path, text: &str) -> Result<String, StoreError> {
        let failed = |why: &dyn fmt::Display| {
            StoreError::new(StoreErrorKind::Failed, format!("{} cannot be sealed: {why}", path.display()))
        };
        // Random nonces are good for some billion writes with one key.
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| failed(&error))?;
        let mut sealed = Zeroizing::new(text.as_bytes().to_vec());
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), name(path), &mut *sealed)
            .map_err(|_| failed(&"it is too long"))?;
        let bytes = [&nonce[..], &sealed].concat();
        Ok(json!({ "version": VERSION, "sealed": BASE64_STANDARD.encode(bytes) }).to_string())
    }

    /// What was sealed in a file.
    pub(super) fn open(&self, path: &Path, text: &[u8]) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let refused =
            |why: &str| Err(StoreError::new(StoreErrorKind::Unreadable, format!("{} {why}", path.display())));
        let Some(sealed) = sealed(text) else {
            return refused("is not sealed, though what is stored has to be; log out and in again");
        };
        let bytes = BASE64_STANDARD.decode(sealed).ok();
        let Some((nonce, sealed)) = bytes.as_deref().and_then(<[u8]>::split_first_chunk::<NONCE_LEN>) else {
            return refused("is not what was sealed");
        };
        let mut sealed = Zeroizing::new(sealed.to_vec());
        match self.0.open_in_place(Nonce::assume_unique_for_key(*nonce), name(path), &mut sealed) {
            Ok(opened) => Ok(Zeroizing::new(opened.to_vec())),
            Err(_) => refused("was sealed with another key, or changed; log out and in again"),
        }
    }
}

/// What was sealed, as text, if anything was.
fn sealed(text: &[u8]) -> Option<String> {
    let mut document: Value = serde_json::from_slice(text).ok()?;
    let known = document.get("version").and_then(Value::as_u64) == Some(VERSION);
    match document.get_mut("sealed").map(Value::take) {
        Some(Value::String(sealed)) if known => Some(sealed),
        _ => None,
    }
}

fn name(path: &Path) -> Aad<Vec<u8>> {
    Aad::from(
        path.file_name().map(|name| name.to_string_lossy().into_owned().into_bytes()).unwrap_or_default(),
    )
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use super::{super::*, *};
    use crate::client::store::FileStore;

    const TEXT: &[u8] = br#"{"version":1,"generation":1,"token":{"access":"mArK3d"}}"#;

    fn record() -> Record {
        Record::from_json(TEXT).unwrap()
    }

    /// One test, because the keyring is one for the whole process.
    #[tokio::test]
    async fn what_is_stored_is_opened_only_with_the_key_of_the_keyring() {
        let folder = tempfile_folder();
        let application = format!("toolwire-test-{}", std::process::id());
        let sealed = |name: &str| FileStore::at(&folder).sealed_by_keyring(name);
        let none = sealed(&application).unwrap_err().to_string();
        assert!(none.contains("no keyring was chosen"), "{none}");
        keyring_core::set_default_store(store());

        let one = sealed(&application).unwrap();
        let (key, other) =
            (Key::credential("https://one.example", ""), Key::credential("https://two.example", ""));
        one.save(&key, record(), 0).await.unwrap();
        let text = fs::read_to_string(one.path(&key)).unwrap();
        assert!(!text.contains("mArK3d") && !text.contains("access"), "{text}");
        // Another program finds the same key.
        let again = sealed(&application).unwrap();
        assert_eq!(again.load(&key).await.unwrap().unwrap().to_json(), record().to_json());
        assert!(again.credentials().unwrap()[0].1.is_ok());

        let refused = |error: StoreError| {
            assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
            assert!(!format!("{error:?}").contains("mArK3d"));
        };
        refused(FileStore::at(&folder).load(&key).await.unwrap_err());
        refused(sealed(&format!("{application}-other")).unwrap().load(&key).await.unwrap_err());
        // It belongs to its file.
        fs::copy(one.path(&key), one.path(&other)).unwrap();
        refused(one.load(&other).await.unwrap_err());
        for spoiled in
            [&text.replace("sealed\":\"", "sealed\":\"AAAA"), "{}", "{\"version\":1,\"sealed\":\"AA==\"}"]
        {
            fs::write(one.path(&key), spoiled).unwrap();
            refused(one.load(&key).await.unwrap_err());
        }
        fs::write(one.path(&key), TEXT).unwrap();
        refused(one.load(&key).await.unwrap_err());

        for name in [application.clone(), format!("{application}-other")] {
            let entry = Entry::new(&name, USER).unwrap();
            assert_eq!(entry.get_secret().unwrap().len(), KEY_BYTES, "all that the keyring has");
            entry.set_secret(b"short").unwrap();
            assert_eq!(sealed(&name).unwrap_err().kind(), StoreErrorKind::Unreadable);
            entry.delete_credential().unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    fn tempfile_folder() -> std::path::PathBuf {
        std::env::temp_dir().join(format!("toolwire-seal-{}", std::process::id()))
    }

    /// The keyring of the kernel, or one in memory where there is none or it may not be used, as in some containers.
    fn store() -> Arc<keyring_core::CredentialStore> {
        #[cfg(target_os = "linux")]
        {
            let kernel = linux_keyutils_keyring_store::Store::new().unwrap();
            keyring_core::set_default_store(kernel.clone());
            let entry = Entry::new("toolwire-test", "probe").unwrap();
            if entry.set_secret(b"probe").and_then(|()| entry.delete_credential()).is_ok() {
                return kernel;
            }
        }
        keyring_core::mock::Store::new().unwrap()
    }
}
