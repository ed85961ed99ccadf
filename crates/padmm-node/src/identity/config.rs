//! `site.toml`: what a site's operator decides alone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use padmm_privacy::Budget;
use serde::{Deserialize, Serialize};

use super::card::not_understood;
use super::network::{NetworkConfig, NetworkDraft};
use super::{IdentityError, SiteName};

/// What all runs on the site's data may spend together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// The most that all runs together may spend.
    pub epsilon: f64,
    /// The δ that the ε holds at.
    pub delta: f64,
}

impl Cap {
    /// The cap as a checked budget.
    pub fn budget(&self) -> Result<Budget, IdentityError> {
        Budget::new(self.epsilon, self.delta).map_err(|_| IdentityError::Setting {
            key: "cap",
            found: format!("epsilon = {}, delta = {}", self.epsilon, self.delta),
            rule: "a positive epsilon, and a delta between 0 and 1",
        })
    }
}

/// How a site writes what it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Lines that people read: time, level, site, message.
    #[default]
    Human,
    /// One JSON object a line, for programs that collect logs.
    Json,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigDraft {
    name: SiteName,
    listen: String,
    data: Option<DataDraft>,
    cap: Option<Cap>,
    ledger: Option<PathBuf>,
    #[serde(default)]
    network: NetworkDraft,
    log: Option<LogDraft>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataDraft {
    file: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogDraft {
    #[serde(default)]
    format: LogFormat,
}

/// A `site.toml` that has been read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteConfig {
    path: PathBuf,
    name: SiteName,
    listen: SocketAddr,
    data: Option<PathBuf>,
    cap: Option<Cap>,
    ledger: Option<PathBuf>,
    network: NetworkConfig,
    log: LogFormat,
}

impl SiteConfig {
    /// Reads and checks the file. Paths in it are relative to its folder.
    pub fn read(path: &Path) -> Result<Self, IdentityError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| IdentityError::Read { path: path.to_owned(), problem })?;
        let draft: ConfigDraft =
            toml::from_str(&text).map_err(|error| not_understood(path, &text, &error))?;
        let wrong = |error: IdentityError| IdentityError::Text {
            path: path.to_owned(),
            line: None,
            problem: error.to_string(),
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        let listen = parse_listen(&draft.listen).map_err(wrong)?;
        draft.cap.iter().try_for_each(|cap| cap.budget().map(|_| ())).map_err(wrong)?;
        Ok(Self {
            path: path.to_owned(),
            name: draft.name,
            listen,
            data: draft.data.map(|data| folder.join(data.file)),
            cap: draft.cap,
            ledger: draft.ledger.map(|ledger| folder.join(ledger)),
            network: draft.network.check(folder).map_err(wrong)?,
            log: draft.log.map(|log| log.format).unwrap_or_default(),
        })
    }

    /// Where it was read from, for errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As cards and plans name the site.
    pub fn name(&self) -> &SiteName {
        &self.name
    }

    /// The UDP address that the site listens on.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The file of records, or the error that says what to add.
    pub fn data(&self) -> Result<&Path, IdentityError> {
        self.data.as_deref().ok_or_else(|| IdentityError::Missing {
            path: self.path.clone(),
            what: "data file",
            example: "a line `[data]` and below it `file = \"records.csv\"`",
        })
    }

    /// What all runs on this data may spend together, or the error that says what to add.
    pub fn cap(&self) -> Result<Cap, IdentityError> {
        self.cap.ok_or_else(|| IdentityError::Missing {
            path: self.path.clone(),
            what: "privacy cap",
            example: "a line `[cap]` and below it `epsilon = 5.0` and `delta = 1e-4`, or what your data protection officer allows",
        })
    }

    /// The ledger's file, if it is not where it usually is.
    pub fn ledger(&self) -> Option<&Path> {
        self.ledger.as_deref()
    }

    /// How the site reaches the others if it can only dial out.
    pub fn network(&self) -> &NetworkConfig {
        &self.network
    }

    /// Whether the log is for people or for programs.
    pub fn log(&self) -> LogFormat {
        self.log
    }
}

pub(super) fn parse_listen(text: &str) -> Result<SocketAddr, IdentityError> {
    text.parse().map_err(|_| IdentityError::Setting {
        key: "listen",
        found: text.to_owned(),
        rule: "an IP address and a port, like 0.0.0.0:7447 or [::]:7447",
    })
}

/// The text of a new `site.toml`.
pub(super) fn draft_text(
    name: &SiteName,
    listen: SocketAddr,
    data: Option<&Path>,
    cap: Option<Cap>,
) -> String {
    let data = match data {
        Some(file) => format!("[data]\nfile = {}\n", quoted(&file.display().to_string())),
        None => "# [data]\n# file = \"records.csv\"\n".to_owned(),
    };
    let cap = match cap {
        Some(cap) => format!("[cap]\nepsilon = {:?}\ndelta = {:?}\n", cap.epsilon, cap.delta),
        None => "# [cap]\n# epsilon = 5.0\n# delta = 1e-4\n".to_owned(),
    };
    format!(
        "# The name of this site in plans and cards. It is part of the certificate: do not change it here.\n\
         name = \"{name}\"\n\n\
         # UDP address and port that this site listens on.\n\
         listen = \"{listen}\"\n\n\
         # The ledger of what was spent and released; left out, it is in the folder ledgers.\n\
         # ledger = \"/var/lib/padmm/ledger.db\"\n\n\
         # The records, as CSV or Parquet; a path is relative to this file. What the columns mean is in the plan's schema.\n\
         {data}\n\
         # What all runs on these records together may cost: the data protection officer's number. A run that would go\n\
         # beyond it is refused before anything is computed.\n\
         {cap}\n\
         # For a site that cannot be reached from outside: see the guide for hospital IT.\n\
         # [network]\n\
         # relay = \"https://relay.example.org\"         # left out, the relay on this site's card\n\
         # relay-only = true                          # no UDP: everything goes through relays\n\
         # proxy = \"http://user@proxy.example.org:3128\"\n\
         # proxy-password-file = \"proxy.password\"      # or the environment variable PADMM_PROXY_PASSWORD\n\
         # authority = \"firewall.pem\"                 # trusted in addition to the system's certificate store\n\n\
         # \"human\" for lines that people read, \"json\" for one object a line.\n\
         [log]\n\
         format = \"human\"\n"
    )
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
