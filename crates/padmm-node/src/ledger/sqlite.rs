//! How entries reach the disk: SQLite with a write-ahead log that is forced to the disk at every commit.

use padmm_core::message::{Stage, Turn};
use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::FORMAT;
use super::announced::Announced;
use super::append::Received;
use super::chain::{Digest, Row};
use super::error::LedgerError;
use super::head::{Head, HeadFile};
use super::store::{Batch, LedgerStore};
use super::words::Word;

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

/// Made when there is something to keep.
const WORDS: &str = "
CREATE TABLE IF NOT EXISTS words(run TEXT NOT NULL, bytes BLOB NOT NULL, UNIQUE(run, bytes));
";

/// A ledger in an SQLite file.
pub(super) struct SqliteStore {
    path: PathBuf,
    connection: Connection,
    /// None for one that is read, or that has no file.
    head_file: Option<HeadFile>,
    lock: Option<File>,
}

impl SqliteStore {
    /// An existing file, for writing, by whoever holds the lock.
    pub(super) fn open(path: &Path, lock: File) -> Result<Self, LedgerError> {
        let connection = open_for_writing(path)?;
        Ok(Self { path: path.to_owned(), connection, head_file: None, lock: Some(lock) })
    }

    /// A file for reading, beside a process that writes it or on a medium that cannot be written.
    pub(super) fn read(path: &Path) -> Result<Self, LedgerError> {
        let connection = open_for_reading(path)?;
        Ok(Self { path: path.to_owned(), connection, head_file: None, lock: None })
    }

    /// One that ends with its process.
    pub(super) fn in_memory(path: &Path, first: &Row) -> Result<Self, LedgerError> {
        let connection = Connection::open_in_memory().map_err(sql(path))?;
        begin(&connection, path, first)?;
        Ok(Self { path: path.to_owned(), connection, head_file: None, lock: None })
    }

    /// Closes the file and keeps the lock.
    pub(super) fn into_lock(self) -> File {
        self.lock.expect("a file that is written is locked")
    }

    /// From now on [`LedgerStore::write_head`] writes to the head file, beginning with `head`.
    pub(super) fn keep_head(&mut self, head: Head) -> Result<(), LedgerError> {
        self.head_file = Some(HeadFile::open(&self.path, head)?);
        Ok(())
    }

    /// What SQLite itself finds wrong with the file.
    pub(super) fn complaint(&self) -> Result<Option<String>, LedgerError> {
        let found: String = self
            .connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(sql(&self.path))?;
        Ok((found != "ok").then_some(found))
    }

    /// The hash that the first entry has, right or not.
    pub(super) fn first_hash(&self) -> Option<Digest> {
        let select = "SELECT hash FROM entries WHERE seq = 1";
        let hash: Vec<u8> = self.connection.query_row(select, [], |row| row.get(0)).ok()?;
        hash.try_into().ok().map(Digest)
    }

    /// Whether the file has announcements; those of earlier versions do not until they are written to.
    pub(super) fn has_announced(&self) -> Result<bool, LedgerError> {
        self.has_table("announced")
    }

    fn has_table(&self, name: &str) -> Result<bool, LedgerError> {
        let select = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let found = self.connection.query_row(select, [name], |_| Ok(())).optional();
        Ok(found.map_err(sql(&self.path))?.is_some())
    }
}

impl LedgerStore for SqliteStore {
    fn commit(&mut self, batch: &Batch<'_>, before: &mut dyn FnMut()) -> Result<(), LedgerError> {
        let transaction = self.connection.unchecked_transaction().map_err(sql(&self.path))?;
        let fill = || -> rusqlite::Result<()> {
            if let Some(row) = batch.entry {
                insert(&transaction, row)?;
            }
            let insert = "INSERT INTO received VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut statement = transaction.prepare_cached(insert)?;
            for Received { run, sender, turn, bytes } in batch.received {
                statement.execute(params![run, sender, turn.stage.number(), turn.number, bytes])?;
            }
            let replace = "INSERT OR REPLACE INTO announced VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut statement = transaction.prepare_cached(replace)?;
            for Announced { run, sender, ledger, entry, bytes } in batch.announced {
                let entry = i64::try_from(*entry).unwrap_or(i64::MAX);
                statement.execute(params![run, sender, ledger.0, entry, bytes])?;
            }
            for Word { run, bytes } in batch.words {
                transaction.execute_batch(WORDS)?;
                transaction.execute("INSERT OR IGNORE INTO words VALUES (?1, ?2)", params![run, bytes])?;
            }
            Ok(())
        };
        fill().map_err(sql(&self.path))?;
        before();
        transaction.commit().map_err(sql(&self.path))
    }

    fn rows(&self, each: &mut dyn FnMut(Row) -> Result<(), LedgerError>) -> Result<(), LedgerError> {
        let wrong = sql(&self.path);
        let select = "SELECT seq, kind, at, body, payload, previous, hash FROM entries ORDER BY seq";
        let mut statement = self.connection.prepare(select).map_err(&wrong)?;
        let mut rows = statement.query([]).map_err(&wrong)?;
        let mut seq = 0;
        while let Some(row) = rows.next().map_err(&wrong)? {
            seq += 1;
            // A column that holds another kind of value than it was written with was changed.
            each(parse_row(row).map_err(|error| match error.sqlite_error_code() {
                None => LedgerError::Changed { path: self.path.clone(), seq },
                Some(_) => wrong(error),
            })?)?;
        }
        Ok(())
    }

    fn has_hash(&self, hash: &[u8]) -> bool {
        let found = self.connection.query_row("SELECT 1 FROM entries WHERE hash = ?1", [hash], |_| Ok(()));
        found.optional().is_ok_and(|found| found.is_some())
    }

    fn payload(&self, seq: u64) -> Result<Option<Vec<u8>>, LedgerError> {
        let select = "SELECT payload FROM entries WHERE seq = ?1";
        let seq = i64::try_from(seq).unwrap_or(i64::MAX);
        let read = || -> rusqlite::Result<Option<Option<Vec<u8>>>> {
            self.connection.prepare_cached(select)?.query_row([seq], |row| row.get(0)).optional()
        };
        read().map(Option::flatten).map_err(sql(&self.path))
    }

    fn received(&self, run: &str) -> Result<Vec<Received>, LedgerError> {
        let select =
            "SELECT sender, stage, turn, bytes FROM received WHERE run = ?1 ORDER BY stage, turn, sender";
        let read = || -> rusqlite::Result<Vec<Received>> {
            let mut statement = self.connection.prepare_cached(select)?;
            let message = |row: &rusqlite::Row<'_>| {
                let stage = Stage::from_number(row.get(1)?).ok_or_else(|| {
                    let why = "there is no stage of this number".into();
                    rusqlite::Error::FromSqlConversionFailure(1, Type::Integer, why)
                })?;
                let turn = Turn { stage, number: row.get(2)? };
                Ok(Received { run: run.to_owned(), sender: row.get(0)?, turn, bytes: row.get(3)? })
            };
            statement.query_map([run], message)?.collect()
        };
        read().map_err(sql(&self.path))
    }

    fn received_in(&self, run: &str, sender: &str, turn: Turn) -> Result<Option<Vec<u8>>, LedgerError> {
        let select = "SELECT bytes FROM received WHERE run = ?1 AND sender = ?2 AND stage = ?3 AND turn = ?4";
        let read = || -> rusqlite::Result<Option<Vec<u8>>> {
            let key = params![run, sender, turn.stage.number(), turn.number];
            self.connection.prepare_cached(select)?.query_row(key, |row| row.get(0)).optional()
        };
        read().map_err(sql(&self.path))
    }

    fn received_from(&self, sender: &str, look: &mut dyn FnMut(&[u8])) -> Result<(), LedgerError> {
        let select = "SELECT bytes FROM received WHERE sender = ?1";
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(select)?;
            let mut rows = statement.query([sender])?;
            while let Some(row) = rows.next()? {
                look(row.get_ref(0)?.as_blob()?);
            }
            Ok(())
        };
        read().map_err(sql(&self.path))
    }

    fn announced_by(&self, sender: &str) -> Result<Vec<Announced>, LedgerError> {
        let select = "SELECT run, ledger, entry, bytes FROM announced WHERE sender = ?1 ORDER BY rowid DESC";
        let read = || -> rusqlite::Result<Vec<Announced>> {
            let mut statement = self.connection.prepare_cached(select)?;
            let announced = |row: &rusqlite::Row<'_>| {
                let (run, ledger, bytes) = (row.get(0)?, Digest(row.get(1)?), row.get(3)?);
                let entry = row.get::<_, i64>(2)?.unsigned_abs();
                Ok(Announced { run, sender: sender.to_owned(), ledger, entry, bytes })
            };
            statement.query_map([sender], announced)?.collect()
        };
        read().map_err(sql(&self.path))
    }

    fn words(&self, run: &str) -> Result<Vec<Vec<u8>>, LedgerError> {
        if !self.has_table("words")? {
            return Ok(vec![]);
        }
        let read = || -> rusqlite::Result<Vec<Vec<u8>>> {
            let mut statement =
                self.connection.prepare("SELECT bytes FROM words WHERE run = ?1 ORDER BY rowid")?;
            statement.query_map([run], |row| row.get(0))?.collect()
        };
        read().map_err(sql(&self.path))
    }

    fn write_head(&mut self, head: Head) -> Result<(), LedgerError> {
        self.head_file.as_mut().map_or(Ok(()), |file| file.write(head))
    }

    fn limit_pages(&mut self, pages: u32) -> Result<(), LedgerError> {
        self.connection.pragma_update(None, "max_page_count", pages).map_err(sql(&self.path))
    }
}

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
fn sql(path: &Path) -> impl Fn(rusqlite::Error) -> LedgerError + '_ {
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
fn begin(connection: &Connection, path: &Path, first: &Row) -> Result<(), LedgerError> {
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
fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
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
fn open_for_writing(path: &Path) -> Result<Connection, LedgerError> {
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
fn open_for_reading(path: &Path) -> Result<Connection, LedgerError> {
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
