//! Forwarders of UDP packets between neighbours, which a test can cut.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A link between two sites: each has an address at which it finds the other.
struct Link {
    ends: [SocketAddr; 2],
    is_cut: Arc<AtomicBool>,
    forwarded: Arc<AtomicU64>,
}

/// The links of a network. They end when this is dropped.
pub(crate) struct Links {
    links: Mutex<BTreeMap<(usize, usize), Link>>,
    is_over: Arc<AtomicBool>,
}

impl Links {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { links: Mutex::default(), is_over: Arc::new(AtomicBool::new(false)) }
    }

    /// Where the site `from` finds the site `to`; both with the port that they listen on.
    pub(crate) fn address(&self, from: (usize, u16), to: (usize, u16)) -> String {
        let (low, high) = if from.0 < to.0 { (from, to) } else { (to, from) };
        let mut links = self.links.lock().unwrap();
        let link = links.entry((low.0, high.0)).or_insert_with(|| self.make([low.1, high.1]));
        link.ends[usize::from(from.0 > to.0)].to_string()
    }

    /// What comes to one end from its site leaves from the other end to the other site.
    fn make(&self, ports: [u16; 2]) -> Link {
        let sockets: [UdpSocket; 2] = super::free_ports(2)
            .into_iter()
            .map(|port| UdpSocket::bind(("127.0.0.1", port)).unwrap())
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        let ends = [0, 1].map(|k| sockets[k].local_addr().unwrap());
        let (is_cut, forwarded) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        for k in [0, 1] {
            let (here, there) = (sockets[k].try_clone().unwrap(), sockets[1 - k].try_clone().unwrap());
            let (is_cut, forwarded) = (Arc::clone(&is_cut), Arc::clone(&forwarded));
            let is_over = Arc::clone(&self.is_over);
            let to = SocketAddr::from(([127, 0, 0, 1], ports[1 - k]));
            // Only so that the thread sees its end.
            here.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            std::thread::spawn(move || {
                let mut packet = [0; 65536];
                while !is_over.load(Ordering::Relaxed) {
                    let Ok((n, _)) = here.recv_from(&mut packet) else { continue };
                    if !is_cut.load(Ordering::Relaxed) {
                        forwarded.fetch_add(1, Ordering::Relaxed);
                        // A site that is not there gets nothing.
                        let _ = there.send_to(&packet[..n], to);
                    }
                }
            });
        }
        Link { ends, is_cut, forwarded }
    }

    /// The pairs of sites that are linked.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        self.links.lock().unwrap().keys().copied().collect()
    }

    /// Cuts a link, or mends it.
    pub(crate) fn cut(&self, pair: (usize, usize), is_cut: bool) {
        self.links.lock().unwrap()[&pair].is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Packets that went through a link.
    pub(crate) fn forwarded(&self, pair: (usize, usize)) -> u64 {
        self.links.lock().unwrap()[&pair].forwarded.load(Ordering::Relaxed)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
