//! Files that are whole or absent.

use crate::DataError;
use std::io::Write;
use std::path::Path;

/// Writes `bytes` to a temporary file in the same folder and renames it, so that nobody ever sees half a file.
///
/// Without `force` an existing file is left alone and is an error. The new file can be read by its owner only,
/// because it may hold predictions about people.
pub fn write_atomically(path: &Path, force: bool, bytes: &[u8]) -> Result<(), DataError> {
    let wrong = |problem| DataError::Write { path: path.to_owned(), problem };
    refuse_existing(path, force)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = (tempfile::Builder::new().prefix(".padmm-").tempfile_in(folder))
        .map_err(|error| wrong(error.kind().into()))?;
    file.write_all(bytes).map_err(wrong)?;
    file.as_file().sync_all().map_err(wrong)?;
    let renamed = if force { file.persist(path) } else { file.persist_noclobber(path) };
    match renamed {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(DataError::Exists { path: path.to_owned() })
        }
        Err(error) => Err(wrong(error.error)),
    }
}

/// Says so if a file would be overwritten that must not be.
pub(crate) fn refuse_existing(path: &Path, force: bool) -> Result<(), DataError> {
    if !force && path.symlink_metadata().is_ok() {
        return Err(DataError::Exists { path: path.to_owned() });
    }
    Ok(())
}
