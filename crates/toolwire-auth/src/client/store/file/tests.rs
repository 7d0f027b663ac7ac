use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("toolwire-auth-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn store(&self) -> FileStore {
        FileStore::at(self.0.join("auth"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key() -> Key {
    Key::credential("https://files.example/mcp", "")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[tokio::test]
async fn files_are_made_for_their_owner_alone_and_kept_so() {
    let folder = Folder::new("modes");
    let store = folder.store();
    store.save(&key(), Record::empty().after(0), 0).await.unwrap();
    store.lock(&key()).await.unwrap().unwrap();
    let path = store.path(&key());
    assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(store.folder())), (0o600, 0o700, 0o700));
    assert_eq!(mode(&store.lock_path(&key())), 0o600);
    store.save(&key(), Record::empty().after(1), 1).await.unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(store.load(&key()).await.unwrap().unwrap().generation(), 2);
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_and_an_issuer_with_the_same_address_have_locks_of_their_own() {
    let folder = Folder::new("locks");
    let (store, address) = (folder.store(), "https://files.example/");
    let _server = store.lock(&Key::credential(address, "")).await.unwrap().unwrap();
    let _issuer = store.lock(&Key::client(address)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_file_that_others_can_read_or_a_link_is_refused() {
    let folder = Folder::new("exposed");
    let store = folder.store();
    store.save(&key(), Record::empty().after(0), 0).await.unwrap();
    let path = store.path(&key());
    for open in [0o644, 0o640, 0o604, 0o660] {
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        assert_eq!(store.load(&key()).await.unwrap_err().kind(), StoreErrorKind::Exposed, "{open:o}");
        // Neither is it replaced, because whoever wrote it may have been somebody else.
        let saved = store.save(&key(), Record::empty().after(1), 1).await;
        assert_eq!(saved.unwrap_err().kind(), StoreErrorKind::Exposed);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let elsewhere = folder.0.join("elsewhere.json");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(store.load(&key()).await.unwrap_err().kind(), StoreErrorKind::Exposed);
}

#[tokio::test]
async fn a_folder_that_others_can_write_to_is_refused() {
    let folder = Folder::new("folder");
    let store = folder.store();
    store.save(&key(), Record::empty().after(0), 0).await.unwrap();
    let parent = store.path(&key()).parent().unwrap().to_owned();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o777)).unwrap();
    let saved = store.save(&key(), Record::empty().after(1), 1).await;
    assert_eq!(saved.unwrap_err().kind(), StoreErrorKind::Exposed);
}

#[tokio::test]
async fn a_record_of_the_future_is_refused_and_not_overwritten() {
    let folder = Folder::new("future");
    let store = folder.store();
    store.save(&key(), Record::empty().after(0), 0).await.unwrap();
    let path = store.path(&key());
    fs::write(&path, r#"{"version":9,"generation":1}"#).unwrap();
    assert_eq!(store.load(&key()).await.unwrap_err().kind(), StoreErrorKind::Unreadable);
    assert!(store.save(&key(), Record::empty().after(1), 1).await.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"version":9,"generation":1}"#);
}

#[tokio::test]
async fn a_file_or_a_folder_of_another_user_is_refused_even_by_root() {
    let folder = Folder::new("owner");
    let store = folder.store();
    store.save(&key(), Record::empty().after(0), 0).await.unwrap();
    let path = store.path(&key());
    let own = rustix::process::geteuid().as_raw();
    for (place, forbidden) in [(path.as_path(), 0o077), (path.parent().unwrap(), 0o022)] {
        let metadata = fs::metadata(place).unwrap();
        assert!(examine_as(own, place, &metadata, forbidden).is_ok());
        for other in [0, own ^ 1, u32::MAX].into_iter().filter(|other| *other != own) {
            let refused = examine_as(other, place, &metadata, forbidden).unwrap_err();
            assert_eq!(refused.kind(), StoreErrorKind::Exposed, "{other}");
            assert!(refused.to_string().ends_with("belongs to another user"), "{refused}");
        }
    }
    if own == 0 {
        // Only root can give files away.
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        assert_eq!(store.load(&key()).await.unwrap_err().kind(), StoreErrorKind::Exposed);
        let saved = store.save(&key(), Record::empty().after(1), 1).await;
        assert_eq!(saved.unwrap_err().kind(), StoreErrorKind::Exposed);
    }
}

#[tokio::test]
async fn a_write_that_fails_leaves_the_old_record_whole() {
    let folder = Folder::new("fails");
    let store = folder.store();
    store.save(&key(), Record::empty().after(0), 0).await.unwrap();
    let path = store.path(&key());
    let before = fs::read(&path).unwrap();
    // The disk is full after the first half.
    let failed = replace_by(&path, |file| {
        file.write_all(br#"{"version":1,"#)?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read(&path).unwrap(), before);
    // The new file has nowhere to go: its place is a folder with something in it.
    let other = store.path(&Key::credential("https://other.example/", ""));
    fs::create_dir_all(other.join("x")).unwrap();
    assert!(replace(&other, b"{}").is_err());
    let names: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{names:?}");
    assert_eq!(store.load(&key()).await.unwrap().unwrap().generation(), 1);
    replace_by(&path, |file| file.write_all(&before)).unwrap();
    assert_eq!(store.load(&key()).await.unwrap().unwrap().generation(), 1);
}

#[tokio::test]
async fn clients_are_listed_without_those_that_cannot_be_read() {
    let folder = Folder::new("clients");
    let store = folder.store();
    for issuer in ["https://a.example", "https://b.example"] {
        store.save(&Key::client(issuer), Record::empty().after(0), 0).await.unwrap();
    }
    fs::write(store.path(&Key::client("https://a.example")), "{").unwrap();
    assert_eq!(store.clients().await.unwrap().len(), 1);
}

#[test]
fn the_name_of_an_application_leads_nowhere_else() {
    if std::env::var_os("TOOLWIRE_AUTH_DIR").is_some() {
        return;
    }
    for name in ["", "..", "../x", "a/b", ".hidden", "a b"] {
        assert!(FileStore::of(name).is_err(), "{name}");
    }
}
