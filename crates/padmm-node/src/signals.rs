//! Signals of the operating system that end a site: SIGTERM and SIGINT. They are a matter of the program, not of the transport.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::mailbox::Mailbox;

/// From now on a signal to end lets the site finish what it is writing, on a thread of its own for the rest of the process.
pub fn stop_on_signal(mailbox: Arc<Mailbox>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let wait = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        mailbox.stop();
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait)?;
    Ok(())
}
