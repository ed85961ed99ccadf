//! Progress on standard error, for people who wait.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of this length; with `hidden`, one that is never drawn.
///
/// # Panics
/// A template that is not well formed.
pub fn bar(length: u64, template: &str, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    ProgressBar::new(length).with_style(style)
}
