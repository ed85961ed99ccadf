//! The folder that a run writes to: made before the run, so that hours of work are not lost to a typing error, and taken
//! away again if the run leaves nothing to put into it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A folder that can be written to. Dropped before [`OutFolder::keep`], it takes away the folders it made, if they are
/// still empty.
pub struct OutFolder {
    path: PathBuf,
    /// Folders that were not there before, the innermost first.
    made: Vec<PathBuf>,
}

impl OutFolder {
    /// The folder at `path`, made where it is missing.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err();
        let made = path.ancestors().take_while(missing).map(Path::to_owned).collect();
        let folder = Self { path: path.to_owned(), made };
        std::fs::create_dir_all(path)
            .with_context(|| format!("--out: the folder '{}' cannot be made", path.display()))?;
        tempfile::Builder::new()
            .prefix(".padmm-")
            .tempfile_in(path)
            .with_context(|| format!("--out: nothing can be written to the folder '{}'", path.display()))?;
        Ok(folder)
    }

    /// A new folder `runs/<name>-<n>` with the smallest number that is free.
    pub fn numbered(name: &str) -> anyhow::Result<Self> {
        let runs = Path::new("runs");
        let made_runs = if runs.exists() { vec![] } else { vec![runs.to_owned()] };
        std::fs::create_dir_all(runs)
            .context("the folder 'runs' cannot be made here: name another one with --out DIR")?;
        let mut folder = Self { path: runs.to_owned(), made: made_runs };
        for n in 1..=u32::MAX {
            let path = runs.join(format!("{name}-{n}"));
            // Making it is the test whether it is free, so that two runs at once do not share a folder.
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    folder.made.insert(0, path.clone());
                    folder.path = path;
                    return Ok(folder);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("--out: the folder '{}' cannot be made", path.display()));
                }
            }
        }
        bail!("there is no free number for a folder 'runs/{name}-<n>': name one with --out DIR")
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says that the folder is now in use.
    pub fn keep(mut self) -> PathBuf {
        self.made.clear();
        std::mem::take(&mut self.path)
    }
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        // A folder with something in it cannot be removed this way, and should not be.
        self.made.iter().take_while(|folder| std::fs::remove_dir(folder).is_ok()).for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_folders_go_unless_kept_or_used() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        drop(OutFolder::at(&deep).unwrap());
        assert!(!root.path().join("a").exists());
        OutFolder::at(&deep).unwrap().keep();
        assert!(deep.exists());
        drop(OutFolder::at(&deep).unwrap());
        assert!(deep.exists(), "it was there before");
        let used = root.path().join("used");
        let folder = OutFolder::at(&used).unwrap();
        std::fs::write(folder.path().join("x"), "x").unwrap();
        drop(folder);
        assert!(used.join("x").exists());
        assert!(OutFolder::at(&used.join("x/y")).is_err(), "a file is no folder");
        assert!(root.path().join("used/x").exists());
    }
}
