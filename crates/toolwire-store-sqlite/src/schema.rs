//! Opening the file, and what is in it.

use std::{
    cell::Cell,
    fs,
    hash::{BuildHasher as _, RandomState},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use toolwire_store::StoreError;

use crate::{
    SqliteOptions,
    error::{failed, to_sql},
};

/// The migrations, in order. The number of those that were applied is the `user_version` of the file.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001.sql")];

/// How long a write waits for one of another process, which may itself wait for the disk. Below the time that any
/// operation has.
const BUSY: Duration = Duration::from_secs(4);

/// How long it waits before it tries again: shorter than the time for which a writer without turns leaves the lock to others.
const PAUSE: Duration = Duration::from_micros(200);

/// How long what can be done later waits for other processes.
const BRIEF: Duration = Duration::from_millis(100);

/// How large the log of writes may become before the writer waits until it can be shortened.
pub(crate) const LARGEST_LOG: u64 = 64 * 1024 * 1024;

/// How many statements each connection keeps prepared.
const STATEMENTS: usize = 64;

/// Opens the file for the writer: makes it if it is not there, and brings it up to date. Without migrations, a file that is
/// no store stays as it is.
pub(crate) fn open_writer(options: &SqliteOptions) -> Result<Connection, StoreError> {
    if !options.migrate {
        expect_migrated(&options.path)?;
    }
    make_private(&options.path).map_err(|error| {
        StoreError::unavailable(format!("{} cannot be made: {error}", options.path.display()))
    })?;
    let mut connection = open(options)?;
    migrate(&mut connection, options.migrate)?;
    Ok(connection)
}

/// Opens the file once more.
pub(crate) fn open(options: &SqliteOptions) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&options.path, flags).map_err(failed)?;
    connection.busy_handler(Some(wait_for_others)).map_err(failed)?;
    let sync = if options.power_loss_safe { "FULL" } else { "NORMAL" };
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(StoreError::unavailable(
            "this file system cannot be used: SQLite needs shared memory on it",
        ));
    }
    let pragmas = format!(
        "PRAGMA synchronous = {sync}; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY; \
         PRAGMA foreign_keys = OFF; PRAGMA cache_size = -16384; PRAGMA journal_size_limit = {LARGEST_LOG};"
    );
    connection.execute_batch(&pragmas).map_err(failed)?;
    if let Some(pages) = options.max_pages {
        let sql = format!("PRAGMA max_page_count = {pages}");
        connection.query_row(&sql, [], |_| Ok(())).map_err(failed)?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

thread_local! {
    /// Since when this thread has waited for the write that it waits for.
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    /// For how long it waits.
    static PATIENCE: Cell<Duration> = const { Cell::new(BUSY) };
}

/// Waits a moment for the write of another process, and returns whether to try again.
///
/// The handler of SQLite itself waits longer and longer, up to a tenth of a second. Where several processes write all
/// the time, whoever has waited longest then has the smallest chance.
fn wait_for_others(tries: i32) -> bool {
    if tries == 0 {
        SINCE.set(Some(Instant::now()));
    }
    let waited = SINCE.get().map_or(BUSY, |since| since.elapsed());
    if waited >= PATIENCE.get() {
        return false;
    }
    thread::sleep(jittered(PAUSE));
    true
}

/// From half of the pause to one and a half. One that paused for as long as the others write would find the lock taken each time.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) % 1024;
    pause / 2 + pause * u32::try_from(random).unwrap_or_default() / 1024
}

/// Does something that is better not done than waited for.
pub(crate) fn briefly<T>(act: impl FnOnce() -> T) -> T {
    PATIENCE.set(BRIEF);
    let done = act();
    PATIENCE.set(BUSY);
    done
}

/// Makes the file so that nobody else can read it. SQLite gives the files beside it the same mode.
fn make_private(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Refuses a file that is not there, or has not had all migrations, without a change to it.
fn expect_migrated(path: &Path) -> Result<(), StoreError> {
    if !path.exists() {
        return Err(StoreError::unavailable(format!(
            "there is no file {}, and migrations are turned off: run `toolwire store migrate` with its URL",
            path.display()
        )));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    let applied: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if usize::try_from(applied).is_ok_and(|applied| applied < MIGRATIONS.len()) { Err(old()) } else { Ok(()) }
}

fn old() -> StoreError {
    StoreError::unavailable(
        "the schema of the store is old, and migrations are turned off: run `toolwire store migrate` with its URL",
    )
}

fn migrate(connection: &mut Connection, allowed: bool) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let applied: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let applied = usize::try_from(applied).unwrap_or(usize::MAX);
    let missing = MIGRATIONS.get(applied..).unwrap_or_default();
    if missing.is_empty() {
        // A newer version may have added to it; that leaves this one able to work.
        return Ok(());
    }
    if !allowed {
        return Err(old());
    }
    for migration in missing {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", to_sql(MIGRATIONS.len() as u64)).map_err(failed)?;
    transaction.commit().map_err(failed)
}
