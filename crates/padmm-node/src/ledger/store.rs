//! How entries reach the disk: SQLite with a write-ahead log that is forced to the disk at every commit.

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::FORMAT;
use super::chain::{Links, Row, StoredEntry};
use super::error::LedgerError;
use super::head::Head;
use super::state::State;

/// "padm": marks the file as ours, for us and for the command `file`.
const APPLICATION: i32 = 0x7061_646d;

/// The triggers keep accidents out, and the index a second payload. Who means harm can drop both: the chain is for them.
const TABLES: &str = "
CREATE TABLE entries(
  seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL, payload BLOB,
  previous BLOB NOT NULL, hash BLOB NOT NULL);
CREATE UNIQUE INDEX one_charge_a_round ON entries(json_extract(body, '$.run'), json_extract(body, '$.round'))
  WHERE kind IN ('release', 'forfeited');
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never deleted'); END;
CREATE TRIGGER entries_do_not_change BEFORE UPDATE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END;
CREATE TABLE received(
  run TEXT NOT NULL, sender TEXT NOT NULL, stage INTEGER NOT NULL, turn INTEGER NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY(run, sender, stage, turn));
";

/// Files of earlier versions get it when they are opened.
const ANNOUNCED: &str = "
CREATE TABLE IF NOT EXISTS announced(
  run TEXT NOT NULL, sender TEXT NOT NULL, ledger BLOB NOT NULL, entry INTEGER NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY(run, sender));
";

/// The path of the file `<path>.<what>` beside a ledger.
pub(super) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// Files are made for their owner alone.
pub(super) fn for_owner(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// An error of the operating system, in words that say what to do.
pub(super) fn io(path: &Path, error: &std::io::Error) -> LedgerError {
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => LedgerError::Full { path },
        ErrorKind::ReadOnlyFilesystem => LedgerError::ReadOnly { path },
        ErrorKind::PermissionDenied | ErrorKind::NotFound | ErrorKind::NotADirectory => {
            LedgerError::NoAccess { path, reason }
        }
        _ => LedgerError::Failed { path, reason },
    }
}

/// An error of SQLite, in words that say what to do.
pub(super) fn sql(path: &Path) -> impl Fn(rusqlite::Error) -> LedgerError + '_ {
    move |error| {
        let (path, reason) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => LedgerError::Full { path },
            Some(ErrorCode::ReadOnly) => LedgerError::ReadOnly { path },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                LedgerError::NoAccess { path, reason }
            }
            Some(ErrorCode::NotADatabase) => LedgerError::NotALedger { path, reason },
            Some(ErrorCode::DatabaseCorrupt) => LedgerError::Damaged { path, reason },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                LedgerError::InUse { lock: path.clone(), path }
            }
            _ => LedgerError::Failed { path, reason },
        }
    }
}

/// Takes the lock that keeps a second process out. It is let go when the file is closed, by a crash as well.
pub(super) fn lock(path: &Path) -> Result<File, LedgerError> {
    let lock = beside(path, "lock");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    for_owner(&mut options);
    let file = options.open(&lock).map_err(|error| io(&lock, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LedgerError::InUse { path: path.to_owned(), lock }),
        Err(TryLockError::Error(error)) => {
            Err(LedgerError::UnsafePlace { path: path.to_owned(), reason: format!("no locks: {error}") })
        }
    }
}

/// Makes the tables and writes the first entry.
pub(super) fn begin(connection: &Connection, path: &Path, first: &Row) -> Result<(), LedgerError> {
    let make = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", FORMAT)?;
        connection.execute_batch(TABLES)?;
        connection.execute_batch(ANNOUNCED)?;
        insert(connection, first)
    };
    make().map_err(sql(path))
}

/// Writes one entry, within the caller's transaction.
pub(super) fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    statement.execute(params![row.seq, row.kind, row.at, row.body, row.payload, row.previous, row.hash])?;
    Ok(())
}

/// Makes the file of a new ledger, whole or not at all: it gets its name when it is on the disk.
pub(super) fn make_file(path: &Path, first: &Row) -> Result<(), LedgerError> {
    let draft = beside(path, "new");
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(&draft, &error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    for_owner(&mut options);
    options.open(&draft).map_err(|error| io(&draft, &error))?;
    let connection = Connection::open(&draft).map_err(sql(path))?;
    let transaction = connection.unchecked_transaction().map_err(sql(path))?;
    begin(&transaction, path, first)?;
    transaction.commit().map_err(sql(path))?;
    connection.close().map_err(|(_, error)| sql(path)(error))?;
    std::fs::rename(&draft, path).map_err(|error| io(path, &error))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let sync = |folder: &Path| File::open(folder)?.sync_all();
    sync(folder.unwrap_or(Path::new("."))).map_err(|error| io(path, &error))
}

/// Opens an existing file for writing.
pub(super) fn open_for_writing(path: &Path) -> Result<Connection, LedgerError> {
    check_mode(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sql(path))?;
    check_kind(&connection, path)?;
    // Tried at once: a file that can only be read is otherwise noticed at the first release.
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(sql(path))?;
    if mode != "wal" {
        let reason = format!("SQLite offers the journal {mode:?} in place of a write-ahead log");
        return Err(LedgerError::UnsafePlace { path: path.to_owned(), reason });
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(sql(path))?;
    if connection.is_readonly("main").map_err(sql(path))? {
        return Err(LedgerError::ReadOnly { path: path.to_owned() });
    }
    connection.execute_batch(ANNOUNCED).map_err(sql(path))?;
    Ok(connection)
}

/// Opens a file for reading, beside a process that writes it or on a medium that cannot be written.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, LedgerError> {
    exists(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = |connection: rusqlite::Result<Connection>| {
        let connection = connection.map_err(sql(path))?;
        check_kind(&connection, path).map(|()| connection)
    };
    match open(Connection::open_with_flags(path, flags)) {
        // A write-ahead log asks for a file beside it. Where none can be made and none is needed, the file is all.
        Err(LedgerError::NoAccess { .. } | LedgerError::ReadOnly { .. }) if is_without_log(path) => {
            let name = path.to_string_lossy();
            let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let uri = format!("file:{name}?immutable=1");
            open(Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI))
        }
        other => other,
    }
}

/// Refuses a path where there is no file.
pub(super) fn exists(path: &Path) -> Result<(), LedgerError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => {
            Err(LedgerError::NotALedger { path: path.to_owned(), reason: "it is not a file".to_owned() })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(LedgerError::Missing { path: path.to_owned() })
        }
        Err(error) => Err(io(path, &error)),
    }
}

fn check_mode(path: &Path) -> Result<(), LedgerError> {
    exists(path)?;
    #[cfg(unix)]
    {
        let metadata = std::fs::metadata(path).map_err(|error| io(path, &error))?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
        if mode & 0o022 != 0 {
            return Err(LedgerError::OthersMayWrite { path: path.to_owned(), mode });
        }
    }
    Ok(())
}

/// SQLite reads a last page that was cut as if it ended in zeros. With a log beside it, the log may still complete that page.
fn check_length(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let page: u64 = connection
        .pragma_query_value(None, "page_size", |row| row.get::<_, u32>(0))
        .map_err(sql(path))?
        .into();
    let length = std::fs::metadata(path).map_err(|error| io(path, &error))?.len();
    if is_without_log(path) && length % page != 0 {
        let reason = format!("its {length} bytes end within a page");
        return Err(LedgerError::Damaged { path: path.to_owned(), reason });
    }
    Ok(())
}

/// Whether everything is in the file itself.
fn is_without_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(Path::new(&log)).map_or(true, |log| log.len() == 0)
}

/// Whether the file is a ledger of a format that this program knows.
fn check_kind(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = pragma("application_id").map_err(sql(path))?;
    let format = pragma("user_version").map_err(sql(path))?;
    if application == 0 && format == 0 {
        // An empty file is an empty database. If a head file says that something was here, the ledger was cut.
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(sql(path))?;
        if let (0, Some(head)) = (tables, Head::read(path)?) {
            return Err(LedgerError::Truncated { path: path.to_owned(), entries: 0, head: head.seq });
        }
    }
    if application != i64::from(APPLICATION) {
        let reason = "it is a database of another program".to_owned();
        return Err(LedgerError::NotALedger { path: path.to_owned(), reason });
    }
    match u32::try_from(format) {
        Ok(found) if found > FORMAT => {
            Err(LedgerError::NewerFormat { path: path.to_owned(), found, known: FORMAT })
        }
        _ => check_length(connection, path),
    }
}

/// Follows the chain from its beginning and hands every entry to `each`. Returns what the entries amount to and the last of
/// them, or the first thing that is wrong.
///
/// `head` must have been read before: a process that writes brings an entry to the disk first and its head after.
pub(super) fn follow(
    connection: &Connection,
    path: &Path,
    head: Option<Head>,
    mut each: impl FnMut(StoredEntry),
) -> Result<(State, Head), LedgerError> {
    let wrong = sql(path);
    let mut statement = connection
        .prepare("SELECT seq, kind, at, body, payload, previous, hash FROM entries ORDER BY seq")
        .map_err(&wrong)?;
    let is_hash = |hash: &[u8]| {
        let found = connection.query_row("SELECT 1 FROM entries WHERE hash = ?1", [hash], |_| Ok(()));
        found.optional().is_ok_and(|found| found.is_some())
    };
    let mut links = Links::new(path);
    let (mut state, mut last): (Option<State>, Option<Head>) = (None, None);
    let mut rows = statement.query([]).map_err(&wrong)?;
    while let Some(row) = rows.next().map_err(&wrong)? {
        let seq = last.map_or(1, |last| last.seq + 1);
        // A column that holds another kind of value than it was written with was changed.
        let row = parse_row(row).map_err(|error| match error.sqlite_error_code() {
            None => LedgerError::Changed { path: path.to_owned(), seq },
            Some(_) => wrong(error),
        })?;
        let stored = links.follow(row, is_hash)?;
        if let Some(head) = head.filter(|head| head.seq == stored.seq && head.hash != stored.hash) {
            return Err(LedgerError::OtherHead { path: path.to_owned(), seq: head.seq });
        }
        match &mut state {
            None => state = Some(State::begin(path, &stored)?),
            Some(state) => state.apply(&stored)?,
        }
        last = Some(Head { seq: stored.seq, hash: stored.hash });
        each(stored);
    }
    let entries = last.map_or(0, |last| last.seq);
    match (head, state.zip(last)) {
        (Some(head), _) if head.seq > entries => {
            Err(LedgerError::Truncated { path: path.to_owned(), entries, head: head.seq })
        }
        (_, Some(found)) => Ok(found),
        (_, None) => {
            Err(LedgerError::NotALedger { path: path.to_owned(), reason: "it has no entries".to_owned() })
        }
    }
}

fn parse_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        seq: row.get(0)?,
        kind: row.get(1)?,
        at: row.get(2)?,
        body: row.get(3)?,
        payload: row.get(4)?,
        previous: row.get(5)?,
        hash: row.get(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    /// Failures that a test cannot bring about on every machine.
    #[test]
    fn failures_of_the_disk_are_told_in_words_that_say_what_to_do() {
        let path = Path::new("heart.ledger");
        for (code, needle) in [
            (ffi::SQLITE_FULL, "the disk with heart.ledger is full: nothing was released; make room"),
            (ffi::SQLITE_READONLY, "heart.ledger or its folder can only be read"),
            (ffi::SQLITE_CANTOPEN, "heart.ledger cannot be opened"),
            (ffi::SQLITE_PERM, "this user may write there"),
            (ffi::SQLITE_NOTADB, "heart.ledger is not a ledger"),
            (ffi::SQLITE_CORRUPT, "heart.ledger is cut or damaged"),
            (ffi::SQLITE_BUSY, "another process uses the ledger heart.ledger"),
            (ffi::SQLITE_IOERR, "nothing was released; mend that and start again"),
        ] {
            let text = sql(path)(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).to_string();
            assert!(text.contains(needle), "{text}");
        }
        for (kind, needle) in [
            (ErrorKind::StorageFull, "the disk with heart.ledger is full"),
            (ErrorKind::ReadOnlyFilesystem, "can only be read"),
            (ErrorKind::PermissionDenied, "this user may write there"),
            (ErrorKind::Other, "start again"),
        ] {
            let text = io(path, &std::io::Error::from(kind)).to_string();
            assert!(text.contains(needle), "{text}");
        }
    }
}
