//! How neighbours are reached at this moment, for people who look at the site: read-only, and nothing depends on it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use iroh::TransportAddr;
use iroh::endpoint::{Connection, WeakConnectionHandle};
use padmm_core::message::SiteIndex;

use super::udp::from_engine;

/// The way that packets to a neighbour take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Whether they go to the neighbour itself, and not through a relay.
    pub is_direct: bool,
    /// Where they go: its address, or the relay's.
    pub address: String,
    /// How long a packet and its answer take.
    pub round_trip: Duration,
}

impl Route {
    /// The way that a connection uses now; none while it has none.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let paths = connection.paths();
        let path = paths.iter().find(|path| path.is_selected()).or_else(|| paths.iter().next())?;
        let address = match path.remote_addr() {
            TransportAddr::Ip(address) => address.to_string(),
            TransportAddr::Relay(relay) => relay.to_string(),
            TransportAddr::Custom(address) => from_engine(address)?.to_string(),
            _ => "an address of another kind".to_owned(),
        };
        Some(Self { is_direct: !path.is_relay(), address, round_trip: path.rtt() })
    }
}

/// The newest connection of each neighbour. It is not kept open by being here.
#[derive(Default)]
pub(super) struct Routes(Mutex<BTreeMap<SiteIndex, WeakConnectionHandle>>);

impl Routes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SiteIndex, WeakConnectionHandle>> {
        self.0.lock().expect("nobody panics while holding the routes")
    }

    pub(super) fn put(&self, site: SiteIndex, connection: &Connection) {
        self.lock().insert(site, connection.weak_handle());
    }

    /// Of those that are open.
    pub(super) fn now(&self) -> BTreeMap<SiteIndex, Route> {
        let route = |handle: &WeakConnectionHandle| {
            let connection = handle.upgrade().filter(|c| c.close_reason().is_none())?;
            Route::of(&connection)
        };
        self.lock().iter().filter_map(|(&site, handle)| Some((site, route(handle)?))).collect()
    }
}
