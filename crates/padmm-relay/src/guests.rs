//! Whom the relay lets in: the sites whose cards it was given.
//!
//! A plan names identities, and a card says which transport key belongs to one; its signature is checked when it is read. Of a site with
//! several cards the newest counts, so a key that was replaced is refused. Cards are read again when somebody knocks, so a new one needs no
//! restart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::Context;
use iroh_base::EndpointId;
use iroh_relay::server::{Access, AccessControl, ClientRequest, ConnectionId};
use padmm_node::contract::Contract;
use padmm_node::identity::{Card, Fingerprint, cards_in};

use crate::log::log;

/// Strangers who knock without end do not make the relay read files without end.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Where the cards are, and which of them count.
#[derive(Clone, Debug, Default)]
pub struct GuestList {
    /// Folders of card files.
    pub cards: Vec<PathBuf>,
    /// If there are any, only sites that one of these plans names are let in.
    pub plans: Vec<PathBuf>,
}

/// The name of every key that is let in.
type Names = BTreeMap<[u8; 32], String>;

#[derive(Debug)]
struct Inner {
    names: Names,
    read_at: Instant,
    /// Why the cards could not be read the last time.
    problem: Option<String>,
    refused: u64,
}

/// The list at work.
#[derive(Debug)]
pub(crate) struct Guests {
    cards: Vec<PathBuf>,
    /// The sites of all plans; without any plan, none are left out.
    named: Option<BTreeSet<Fingerprint>>,
    inner: Mutex<Inner>,
}

impl Guests {
    pub(crate) fn new(list: GuestList) -> anyhow::Result<Self> {
        let mut named = (!list.plans.is_empty()).then(BTreeSet::new);
        for path in &list.plans {
            let plan = Contract::read(path)?;
            named.iter_mut().for_each(|all| all.extend(plan.sites().iter().map(|site| site.fingerprint)));
        }
        let names = read(&list.cards, named.as_ref())?;
        anyhow::ensure!(
            !names.is_empty(),
            "nobody could be let in: {}",
            if named.is_none() {
                "there is no card in the folders that --cards names. Put the sites' card files (card.toml of each home, under any name that ends in .toml) there"
            } else {
                "no card in the folders that --cards names is of a site in the plan"
            }
        );
        let inner = Mutex::new(Inner { names, read_at: Instant::now(), problem: None, refused: 0 });
        Ok(Self { cards: list.cards, named, inner })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while holding the list of guests")
    }

    /// The names of all that may come, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let names: BTreeSet<String> = self.lock().names.values().cloned().collect();
        names.into_iter().collect()
    }

    fn judge(&self, key: EndpointId) -> Option<String> {
        let mut inner = self.lock();
        if inner.read_at.elapsed() >= READ_AGAIN {
            inner.read_at = Instant::now();
            inner.read_again(read(&self.cards, self.named.as_ref()));
        }
        let name = inner.names.get(key.as_bytes()).cloned();
        if name.is_none() {
            inner.refused += 1;
            // A log must not be a target: each time the count has doubled.
            if inner.refused.is_power_of_two() {
                let n = inner.refused;
                let so_far = if n > 1 { format!(" ({n} such so far)") } else { String::new() };
                log(&format!("refused the key {key}, which is on no card here{so_far}"));
            }
        }
        name
    }
}

impl Inner {
    fn read_again(&mut self, found: anyhow::Result<Names>) {
        match found {
            Ok(names) => (self.names, self.problem) = (names, None),
            Err(error) => {
                let problem = format!("{error:#}");
                if self.problem.as_ref() != Some(&problem) {
                    log(&format!("the list of guests stays as it was: {problem}"));
                }
                self.problem = Some(problem);
            }
        }
    }
}

fn read(folders: &[PathBuf], named: Option<&BTreeSet<Fingerprint>>) -> anyhow::Result<Names> {
    let mut newest: BTreeMap<Fingerprint, Card> = BTreeMap::new();
    for folder in folders {
        let cards = cards_in(folder).with_context(|| format!("the cards in '{}'", folder.display()))?;
        for card in cards {
            let is_named = named.is_none_or(|named| named.contains(&card.fingerprint()));
            let known = newest.get(&card.fingerprint()).map_or(0, Card::serial);
            if is_named && card.serial() > known {
                newest.insert(card.fingerprint(), card);
            }
        }
    }
    Ok(newest.values().map(|card| (card.transport().to_bytes(), card.name().to_string())).collect())
}

impl AccessControl for Guests {
    async fn on_connect(&self, request: &ClientRequest) -> Access {
        let key = request.endpoint_id();
        match self.judge(key) {
            Some(name) => {
                log(&format!("{name} came (connection {}, key {key})", request.connection_id()));
                Access::Allow
            }
            None => Access::Deny { reason: Some("no card with this key is known here".to_owned()) },
        }
    }

    fn on_disconnect(&self, key: EndpointId, connection: ConnectionId) {
        let name = self.lock().names.get(key.as_bytes()).cloned();
        let name = name.unwrap_or_else(|| "a site that is no longer listed".to_owned());
        log(&format!("{name} left (connection {connection})"));
    }
}
