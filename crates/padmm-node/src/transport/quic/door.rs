//! Who may begin a handshake. Whoever sends from an address that is not known proves first that it receives there, by QUIC's Retry, and
//! then shares a few places with all others like it. Neighbours at the addresses of their cards have places of their own, so a crowd at
//! the door does not keep them out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use padmm_core::message::SiteIndex;

/// Handshakes at once from the addresses of one neighbour.
const MOST_OF_NEIGHBOUR: usize = 4;
/// Handshakes at once of all that are not known, and of one of their addresses.
const MOST_STRANGERS: usize = 32;
const MOST_OF_ADDRESS: usize = 8;
/// How long a handshake may take. Somebody whose address is not known does not hold a place for longer than a long way takes.
const HANDSHAKE: Duration = Duration::from_secs(10);
const HANDSHAKE_OF_STRANGER: Duration = Duration::from_secs(4);

/// What is done with a packet that wants to begin a connection.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Its sender is to prove that it receives at its address. That costs us nothing to remember.
    Prove,
    /// There is no place left for such as it.
    TurnAway,
    /// The handshake begins, and may take so long.
    Begin(Place, Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Visitor {
    Neighbour(SiteIndex),
    Stranger(Option<IpAddr>),
}

#[derive(Default, Debug)]
struct Inner {
    addresses: BTreeMap<SocketAddr, SiteIndex>,
    inside: BTreeMap<Visitor, usize>,
}

/// The door of one site.
#[derive(Clone, Default, Debug)]
pub(super) struct Door(Arc<Mutex<Inner>>);

impl Door {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody panics while holding the door")
    }

    /// These are the addresses of a neighbour now, in place of those before.
    pub(super) fn know(&self, site: SiteIndex, addresses: &[SocketAddr]) {
        let mut inner = self.lock();
        inner.addresses.retain(|_, known| *known != site);
        inner.addresses.extend(addresses.iter().map(|&address| (address, site)));
    }

    /// Somebody wants to begin; from a relay, which has checked its key, there is no address.
    pub(super) fn knock(&self, from: Option<SocketAddr>, is_proved: bool) -> Verdict {
        let mut inner = self.lock();
        let known = from.and_then(|from| inner.addresses.get(&from).copied());
        let visitor = known.map_or(Visitor::Stranger(from.map(|a| a.ip())), Visitor::Neighbour);
        let count = |visitor: &Visitor| inner.inside.get(visitor).copied().unwrap_or(0);
        let (here, most, time) = match visitor {
            Visitor::Neighbour(_) => (count(&visitor), MOST_OF_NEIGHBOUR, HANDSHAKE),
            Visitor::Stranger(_) => {
                let is_stranger = |(visitor, _): &(&Visitor, _)| matches!(visitor, Visitor::Stranger(_));
                let all: usize = inner.inside.iter().filter(is_stranger).map(|(_, n)| n).sum();
                let most = if all < MOST_STRANGERS { MOST_OF_ADDRESS } else { 0 };
                (count(&visitor), most, HANDSHAKE_OF_STRANGER)
            }
        };
        // The address of a neighbour can be forged too. The first handshake from it is let in as it is, which saves a round trip.
        let needs_proof = from.is_some() && !is_proved && (known.is_none() || here > 0);
        if needs_proof {
            return Verdict::Prove;
        }
        if here >= most {
            return Verdict::TurnAway;
        }
        *inner.inside.entry(visitor).or_default() += 1;
        Verdict::Begin(Place { door: self.clone(), visitor }, time)
    }
}

/// A place in a handshake, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    door: Door,
    visitor: Visitor,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.door.lock();
        if let Some(n) = inner.inside.get_mut(&self.visitor) {
            *n -= 1;
            if *n == 0 {
                inner.inside.remove(&self.visitor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8, port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([192, 0, 2, host], port)))
    }

    fn begin(verdict: Verdict) -> Place {
        match verdict {
            Verdict::Begin(place, _) => place,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_crowd_of_strangers_leaves_neighbours_their_places() {
        let (door, neighbour) = (Door::default(), at(1, 7000));
        door.know(SiteIndex(1), &[neighbour.unwrap()]);
        assert!(matches!(door.knock(at(9, 1), false), Verdict::Prove), "an unknown address proves itself");
        let mut crowd = vec![];
        for host in 10..14 {
            crowd.extend((0..MOST_OF_ADDRESS).map(|k| begin(door.knock(at(host, k as u16), true))));
            assert!(
                matches!(door.knock(at(host, 99), true), Verdict::TurnAway),
                "one address has had its share"
            );
        }
        assert_eq!(crowd.len(), MOST_STRANGERS);
        assert!(matches!(door.knock(at(99, 1), true), Verdict::TurnAway));
        let first = begin(door.knock(neighbour, false));
        assert!(matches!(door.knock(neighbour, false), Verdict::Prove), "a second one may be forged");
        let more: Vec<Place> = (1..MOST_OF_NEIGHBOUR).map(|_| begin(door.knock(neighbour, true))).collect();
        assert!(matches!(door.knock(neighbour, true), Verdict::TurnAway));
        drop((first, more));
        begin(door.knock(neighbour, false));
        drop(crowd);
        begin(door.knock(at(99, 1), true));
    }

    #[test]
    fn an_address_that_a_neighbour_has_left_is_a_strangers() {
        let (door, old, new) = (Door::default(), at(1, 7000), at(2, 7000));
        door.know(SiteIndex(1), &[old.unwrap()]);
        door.know(SiteIndex(1), &[new.unwrap()]);
        assert!(matches!(door.knock(old, false), Verdict::Prove));
        begin(door.knock(new, false));
    }
}
