//! The time of day. It dates entries, log lines and certificates and decides nothing about rounds, which go by a clock that never
//! jumps. It is asked here alone, so that a test program can run a site whose clock is wrong.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

static SHIFT: OnceLock<i64> = OnceLock::new();

/// Sets the clock forward by this many seconds, or back, for the rest of the process. For test programs; the first shift stays.
pub fn shift(seconds: i64) {
    let _ = SHIFT.set(seconds);
}

/// The time by this machine's clock.
pub fn now() -> SystemTime {
    let (now, shift) = (SystemTime::now(), SHIFT.get().copied().unwrap_or(0));
    let by = Duration::from_secs(shift.unsigned_abs());
    let shifted = if shift < 0 { now.checked_sub(by) } else { now.checked_add(by) };
    shifted.unwrap_or(now)
}
