//! What agents of one run need not compute each for itself, where several of them are in one process.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::message::StateDigest;

/// The last result of work on public numbers, for whichever agent of the same run asks for it next. A site that is alone in its process
/// shares with nobody.
///
/// Agents that heard the same compute the same, so a simulation of 100 sites would do it 100 times. Only functions of releases and of
/// the plan are shared, never anything of a site's records.
#[derive(Clone, Default)]
pub struct SharedWork {
    last: Arc<Mutex<Option<Kept>>>,
}

/// The key, and the result as long as some agent has it.
type Kept = (StateDigest, Weak<dyn Any + Send + Sync>);

impl fmt::Debug for SharedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedWork")
    }
}

impl SharedWork {
    /// What `work` gives, which must be a function of the plan and of what `key` is a digest of.
    ///
    /// Whoever comes while it is being done waits for it. So `work` must not start tasks of the pool that agents run in: a thread that
    /// waits for them may be given one that waits here.
    pub(crate) fn once<T: Send + Sync + 'static>(
        &self,
        key: StateDigest,
        work: impl FnOnce() -> Option<T>,
    ) -> Option<Arc<T>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = last.as_ref().filter(|(of, _)| *of == key).and_then(|(_, kept)| kept.upgrade());
        if let Some(kept) = kept.and_then(|kept| kept.downcast().ok()) {
            return Some(kept);
        }
        let made = Arc::new(work()?);
        let weak: Weak<T> = Arc::downgrade(&made);
        *last = Some((key, weak));
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_for_a_key_and_as_long_as_somebody_has_it() {
        let (shared, mut n) = (SharedWork::default(), 0);
        let mut ask = |key: u8| {
            shared.clone().once([key; 32], || {
                n += 1;
                Some(n)
            })
        };
        let first = ask(1).unwrap();
        assert_eq!((*first, *ask(1).unwrap()), (1, 1));
        assert_eq!(*ask(2).unwrap(), 2);
        // Only the last is kept, and not for its own sake.
        assert_eq!(*ask(1).unwrap(), 3);
        assert_eq!(*ask(1).unwrap(), 4);
        assert_eq!(*first, 1);
    }
}
