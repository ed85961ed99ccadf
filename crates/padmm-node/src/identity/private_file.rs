//! Files that only their owner may read, and files that are whole or absent.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use zeroize::Zeroizing;

use super::{IdentityError, KeyError, SecretKey, from_hex, to_hex};

/// Writes a new file with mode 0600; a file that is there already is an error.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<(), IdentityError> {
    let wrong = |problem: std::io::Error| match problem.kind() {
        ErrorKind::AlreadyExists => IdentityError::Exists { path: path.to_owned() },
        _ => IdentityError::Write { path: path.to_owned(), problem },
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(wrong)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(wrong)
}

/// The text of a file, which nobody but its owner may be able to read.
pub(super) fn read_text(path: &Path) -> Result<Zeroizing<String>, IdentityError> {
    let wrong = |problem| IdentityError::Read { path: path.to_owned(), problem };
    let mut file = File::open(path).map_err(wrong)?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata().map_err(wrong)?) & 0o777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::Permissions { path: path.to_owned(), mode });
        }
    }
    // Room for all of it from the start: text that grows leaves copies of itself behind.
    let length = file.metadata().map_err(wrong)?.len();
    let mut text = Zeroizing::new(String::with_capacity(usize::try_from(length).unwrap_or_default() + 64));
    file.read_to_string(&mut text).map_err(wrong)?;
    Ok(text)
}

/// Writes 32 secret bytes as hexadecimal digits.
pub(super) fn create_secret(path: &Path, bytes: &[u8; 32]) -> Result<(), IdentityError> {
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len() + 1));
    text.push_str(&Zeroizing::new(to_hex(bytes)));
    text.push('\n');
    create(path, text.as_bytes())
}

/// Reads 32 secret bytes from a file that only its owner can read.
pub(super) fn read_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>, IdentityError> {
    let text = read_text(path)?;
    from_hex("a secret key", text.trim()).map(Zeroizing::new).map_err(|problem| {
        // The digits of a damaged key are still nearly the key, so they are not shown.
        let problem = match problem {
            KeyError::Hex { what, expected, .. } => {
                KeyError::Hex { what, expected, found: format!("{} characters", text.trim().chars().count()) }
            }
            other => other,
        };
        IdentityError::KeyFile { path: path.to_owned(), problem }
    })
}

pub(super) fn read_key(path: &Path) -> Result<SecretKey, IdentityError> {
    read_secret(path).map(|bytes| SecretKey::from_bytes(&bytes))
}

/// Keeps `path`'s content as `kept`. A copy that is there already from an attempt that was cut short will do.
pub(super) fn keep_secret(path: &Path, kept: &Path) -> Result<(), IdentityError> {
    let bytes = read_secret(path)?;
    match create_secret(kept, &bytes) {
        Err(IdentityError::Exists { .. }) if read_secret(kept).is_ok_and(|there| there == bytes) => Ok(()),
        other => other,
    }
}

/// Closes a folder to all but its owner.
pub(super) fn close_folder(path: &Path) -> Result<(), IdentityError> {
    #[cfg(unix)]
    {
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(path, owner_only)
            .map_err(|problem| IdentityError::Write { path: path.to_owned(), problem })?;
    }
    Ok(())
}

/// Makes the entries of a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), IdentityError> {
    let wrong = |problem| IdentityError::Write { path: path.to_owned(), problem };
    #[cfg(unix)]
    File::open(path).and_then(|folder| folder.sync_all()).map_err(wrong)?;
    #[cfg(not(unix))]
    let _ = wrong;
    Ok(())
}
