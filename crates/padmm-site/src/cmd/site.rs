//! `padmm site`: who this site is, and who the others are.

use crate::status::{self, server};
use crate::test_hooks::TestHooks;
use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use padmm_commands::cmd::OWN_EYES;
use padmm_commands::cmd::own::comparison_text;
use padmm_commands::terminal::{FAILED, print, print_json, warn};
use padmm_core::own::{NEVER_SENT, OwnFit};
use padmm_data::write_atomically;
use padmm_node::clock;
use padmm_node::identity::{Cap, Card, Expiry, Home, Imported, InitRequest, SiteName};
use padmm_node::journal::{Journal, Level};
use padmm_node::mailbox::Mailbox;
use padmm_node::signals::stop_on_signal;
use padmm_node::site::{
    DataChoice, Ended, OWN_MODEL, Outputs, RunOptions, Site, accepted_runs, own_model, status_of,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, SystemTime};

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Make a site's folder, with new keys and its card
    Init(Init),
    /// Run an accepted plan with the other sites, or continue it
    Run(Run),
    /// Say how far a run is, whom it waits for and what it has cost; also while it is going, and when it is over
    Status {
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// The name of the run; without it, the one that is going, or the only one
        #[arg(long, value_name = "NAME")]
        run: Option<SiteName>,
    },
    /// Fit again what this site makes of a finished run's model for itself, from the records that it has now
    Own {
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// The name of the finished run
        #[arg(long, value_name = "NAME")]
        run: SiteName,
    },
    /// Show a card and its fingerprint: one from a file, or this site's own
    Card {
        /// The card file of any site
        #[arg(required_unless_present = "home", conflicts_with = "home")]
        file: Option<PathBuf>,
        /// The site's folder, for its own card
        #[arg(long, value_name = "DIR")]
        home: Option<PathBuf>,
    },
    /// Import the card of another site
    AddCard {
        /// The card file of the other site
        file: PathBuf,
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// Accept another identity under a known name, after comparing fingerprints with its owner
        #[arg(long)]
        replace: bool,
    },
    /// Change the transport key, or the whole identity, and make a new card
    Rotate {
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// A new identity too: plans that name the old one must be made again
        #[arg(long)]
        identity: bool,
        /// Days that the new certificate is valid, unless an authority issued the site's
        #[arg(long, value_name = "N", default_value_t = InitRequest::VALID_DAYS)]
        valid_days: u32,
    },
    /// Say where others reach this site from now on, and make a new card
    Move {
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// Where others reach this site, as HOST:PORT (UDP); may be given several times
        #[arg(long = "address", value_name = "HOST:PORT", required_unless_present = "relay")]
        addresses: Vec<String>,
        /// URL of a relay; without it the site has none from now on
        #[arg(long, value_name = "URL")]
        relay: Option<String>,
    },
    /// Write a certificate request for a consortium's authority
    Csr {
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// Where to write it; without it, standard output
        #[arg(long, value_name = "FILE.pem")]
        out: Option<PathBuf>,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Install the certificate that an authority issued, and make a new card
    Certify {
        /// The certificate, as PEM
        certificate: PathBuf,
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// Intermediate certificates, as PEM
        #[arg(long, value_name = "FILE.pem")]
        chain: Option<PathBuf>,
    },
}

#[derive(ClapArgs)]
struct Run {
    /// The site's home: its folder of keys, plans and ledgers
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    /// The name of the accepted plan
    #[arg(long, value_name = "NAME")]
    run: SiteName,
    #[command(flatten)]
    records: WhichRecords,
    /// Leave as soon as the model is there, even if a neighbour may still need a message
    #[arg(long)]
    leave_when_done: bool,
    /// Do not fit a model for use inside this site when the run is over
    #[arg(long)]
    no_own_model: bool,
    /// Serve a read-only status page, /metrics and /health at this address of this machine, such as 127.0.0.1:9100
    #[arg(long, value_name = "IP:PORT")]
    status: Option<SocketAddr>,
    /// Allow an address for --status that other machines can reach: everybody who reaches it may read the page
    #[arg(long, requires = "status")]
    status_open: bool,
}

/// What a person says about records that no ledger of the site knows; `plan accept` and `site run` ask alike.
#[derive(ClapArgs)]
pub(crate) struct WhichRecords {
    /// The records have changed since the ledger of this name was begun: continue it, what was spent stays spent
    #[arg(long, value_name = "LEDGER", conflicts_with = "new_data")]
    data_updates: Option<String>,
    /// The records are of other people than those of every ledger here: begin a ledger of this name
    #[arg(long, value_name = "LEDGER")]
    new_data: Option<String>,
}

impl WhichRecords {
    /// What the flags say about the ledger that the records belong to.
    pub(crate) fn choice(&self) -> DataChoice {
        match (&self.data_updates, &self.new_data) {
            (Some(name), _) => DataChoice::Update(name.clone()),
            (None, Some(name)) => DataChoice::New(name.clone()),
            (None, None) => DataChoice::Known,
        }
    }
}

#[derive(ClapArgs)]
struct Init {
    /// The folder to make: the site's home
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    /// The site's name: lower-case letters, digits and hyphens
    #[arg(long)]
    name: SiteName,
    /// Where others reach this site, as HOST:PORT (UDP); may be given several times
    #[arg(long = "address", value_name = "HOST:PORT")]
    addresses: Vec<String>,
    /// The UDP address to listen on
    #[arg(long, value_name = "IP:PORT", default_value = InitRequest::LISTEN)]
    listen: String,
    /// URL of a relay, for sites that cannot be reached directly
    #[arg(long, value_name = "URL")]
    relay: Option<String>,
    /// Days that the certificate is valid
    #[arg(long, value_name = "N", default_value_t = InitRequest::VALID_DAYS)]
    valid_days: u32,
    /// The records, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// ε that all runs on these records may cost together
    #[arg(long, value_name = "E", requires = "cap_delta", allow_negative_numbers = true)]
    cap_epsilon: Option<f64>,
    /// δ that all runs on these records may cost together
    #[arg(long, value_name = "D", requires = "cap_epsilon", allow_negative_numbers = true)]
    cap_delta: Option<f64>,
}

/// A run that was asked to stop before its end exits with this code.
const STOPPED: u8 = 3;

pub(crate) fn run(args: Args, hooks: &TestHooks) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Run(run) => run_site(&run, args.json, hooks),
        other => manage(other, args.json).map(|()| ExitCode::SUCCESS),
    }
}

/// Runs a plan until there is a model.
fn run_site(args: &Run, json: bool, hooks: &TestHooks) -> anyhow::Result<ExitCode> {
    let data = args.records.choice();
    let options = RunOptions {
        data,
        leave_when_done: args.leave_when_done,
        ledger_in_memory: hooks.ledger_in_memory(),
    };
    let site = Site::read(&args.home, &args.run, clock::now())?;
    let folder = site.folder().to_owned();
    let outputs = Arc::new(Outputs::new(&folder, site.name().as_str(), site.log_format()));
    let mailbox = site.mailbox();
    if let Some(address) = args.status {
        let bound = server::start(address, args.status_open, Arc::clone(&outputs))?;
        outputs.log(Level::Info, "status", &format!("the status page is http://{bound}/"));
    }
    stop_on_signal(Arc::clone(&mailbox))?;
    let ended = match site.run(&hooks.noise(), &options, Arc::clone(&outputs), Arc::clone(&mailbox)) {
        Ok(ended) => ended,
        Err(error) => {
            // Said once, in the log: whoever reads that by program needs nothing beside it.
            outputs.log(Level::Error, "stopped", &error.to_string());
            return Ok(ExitCode::from(FAILED));
        }
    };
    if ended == Ended::Stopped {
        outputs.log(Level::Info, "stopped", "stopped as asked; nothing is lost, start again to continue");
        return Ok(ExitCode::from(STOPPED));
    }
    // From here on nobody hears this site any more.
    let own = if args.no_own_model { None } else { own_after_run(args, &mailbox, &outputs) };
    let file = |name: &str| folder.join(name).display().to_string();
    if json {
        let text = std::fs::read_to_string(folder.join("result.json"))?;
        print_json(&serde_json::from_str::<Value>(&text)?)?;
    } else {
        print(&format!(
            "model   {}\nresult  {}\nwhat left this site  {}\n",
            file("model.json"),
            file("result.json"),
            file("egress.csv")
        ))?;
        if let Some((path, found)) = own {
            print(&format!("\n{}", own_text(&path, &found)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The own model of the run that has just ended; none if that fails or the site is asked to stop, and neither is an error of the run.
///
/// The log says no more than that there is one: logs are sent to other machines, and what was found is for the site's own eyes.
fn own_after_run(args: &Run, mailbox: &Mailbox, outputs: &Outputs) -> Option<(PathBuf, OwnFit)> {
    let (home, run) = (args.home.clone(), args.run.clone());
    let (sender, receiver) = std::sync::mpsc::channel();
    let fit = move || drop(sender.send(own_model(&home, &run)));
    std::thread::Builder::new().name("own-model".into()).spawn(fit).ok()?;
    let again = format!("`padmm-site site own --home {} --run {}` fits it", args.home.display(), args.run);
    loop {
        match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(Ok(found)) => {
                outputs.log(
                    Level::Info,
                    "own-model",
                    &format!("the site's own model is written: {OWN_MODEL}"),
                );
                return Some(found);
            }
            Ok(Err(error)) => {
                outputs.log(
                    Level::Warning,
                    "own-model",
                    &format!("there is no own model ({error}); {again}"),
                );
                return None;
            }
            Err(RecvTimeoutError::Timeout) if !mailbox.is_stopped() => {}
            Err(_) => {
                outputs.log(Level::Info, "own-model", &format!("there is no own model yet; {again}"));
                return None;
            }
        }
    }
}

fn own_text(path: &Path, found: &OwnFit) -> String {
    format!("{}\nown model  {}\n           {NEVER_SENT}\n", comparison_text(found), path.display())
}

fn manage(action: Action, json: bool) -> anyhow::Result<()> {
    let now = clock::now();
    match action {
        Action::Run(_) => unreachable!("a run is not managed"),
        Action::Own { home, run } => {
            let (path, found) = own_model(&home, &run)?;
            if json {
                warn(&format!("{OWN_EYES}\n"));
                return print_json(&json!({
                    "out": path, "joint_share": found.joint_share, "comparison": found.comparison,
                }));
            }
            print(&own_text(&path, &found))
        }
        Action::Status { home, run } => show_status(&Home::open(&home)?, run, now, json),
        Action::Init(request) => init(request, now, json),
        Action::Card { file, home } => {
            let card = match (file, home) {
                (Some(file), _) => Card::read(&file)?,
                (None, home) => Home::open(&home.unwrap_or_default())?.card().clone(),
            };
            show(&card, "", now, json)
        }
        Action::AddCard { file, home, replace } => add_card(&file, &Home::open(&home)?, replace, now, json),
        Action::Rotate { home, identity, valid_days } => {
            let mut home = Home::open(&home)?;
            let old = home.card().fingerprint();
            let said = if identity {
                home.rotate_identity(now, valid_days)?;
                format!(
                    "This site has a new identity; the old one was {old}. Plans that name the old one must be made again, and the \
                     others import the new card with `padmm-site site add-card FILE --home DIR --replace` after comparing fingerprints.\n\n"
                )
            } else {
                home.rotate_transport(now, valid_days)?;
                "This site has a new transport key. Plans stay as they are; send the new card to the others.\n\n".to_owned()
            };
            show(home.card(), &(said + &sendable(&home)), now, json)
        }
        Action::Move { home, addresses, relay } => {
            let mut home = Home::open(&home)?;
            home.move_to(addresses, relay)?;
            let said = format!(
                "This site is reached elsewhere from now on. Plans stay as they are; send the new card to the others. What it listens \
                 on is `listen` in {}.\n\n",
                home.config().path().display()
            );
            show(home.card(), &(said + &sendable(&home)), now, json)
        }
        Action::Csr { home, out, force } => csr(&Home::open(&home)?, out.as_deref(), force, json),
        Action::Certify { certificate, home, chain } => {
            let mut home = Home::open(&home)?;
            let read = |path: &Path| {
                std::fs::read_to_string(path)
                    .with_context(|| format!("the certificate '{}' cannot be read", path.display()))
            };
            let mut pem = read(&certificate)?;
            if let Some(chain) = chain {
                pem = format!("{}\n{}", pem.trim_end(), read(&chain)?);
            }
            home.certify(&pem, now)?;
            let said =
                "The certificate is installed. Plans stay as they are; send the new card to the others.\n\n";
            show(home.card(), &(said.to_owned() + &sendable(&home)), now, json)
        }
    }
}

fn show_status(home: &Home, run: Option<SiteName>, now: SystemTime, json: bool) -> anyhow::Result<()> {
    let (found, is_alive) = match run {
        Some(run) => status_of(home, &run, now)?,
        None => {
            let names = accepted_runs(home);
            anyhow::ensure!(
                !names.is_empty(),
                "this site has accepted no plan yet: `padmm-site plan accept` does that"
            );
            let statuses = names.iter().map(|name| Ok(status_of(home, &SiteName::new(name.as_str())?, now)?));
            let mut all = statuses.collect::<anyhow::Result<Vec<_>>>()?;
            let at = all.iter().position(|(_, is_alive)| *is_alive).or((all.len() == 1).then_some(0));
            let at = at.with_context(|| {
                format!("no run is going, and there are several: name one with --run ({})", names.join(", "))
            })?;
            all.swap_remove(at)
        }
    };
    if !json {
        return print(&status::text(&found, is_alive));
    }
    let mut value = serde_json::to_value(&found)?;
    value["alive"] = is_alive.into();
    print_json(&value)
}

fn init(request: Init, now: SystemTime, json: bool) -> anyhow::Result<()> {
    // A path in site.toml is relative to the home, and here it is relative to where the command runs.
    let data = request.data.map(std::path::absolute).transpose().context("--data is not a path")?;
    let cap = request.cap_epsilon.zip(request.cap_delta).map(|(epsilon, delta)| Cap { epsilon, delta });
    let missing = match (&data, &cap) {
        (None, None) => "[data] and [cap]",
        (None, _) => "[data]",
        (_, None) => "[cap]",
        _ => "",
    };
    let home = Home::init(
        &request.home,
        &InitRequest {
            name: request.name,
            addresses: request.addresses,
            listen: request.listen,
            relay: request.relay,
            valid_days: request.valid_days,
            data,
            cap,
        },
        now,
    )?;
    let mut said = format!("Made {}. Back it up: its keys are this site's identity.\n", home.dir().display());
    if !missing.is_empty() {
        said += &format!("Fill in {missing} in {}.\n", home.config().path().display());
    }
    show(home.card(), &format!("{said}{}", sendable(&home)), now, json)
}

fn sendable(home: &Home) -> String {
    format!("Send this file to the other sites: {}\n\n", home.card_path().display())
}

fn add_card(file: &Path, home: &Home, replace: bool, now: SystemTime, json: bool) -> anyhow::Result<()> {
    let card = Card::read(file)?;
    card.check(now)?;
    let (done, said) = match home.cards().import(&card, replace)? {
        Imported::New => (
            "new",
            format!(
                "Imported the card of {}. Compare its fingerprint with {} over the telephone.\n\n",
                card.name(),
                card.name()
            ),
        ),
        Imported::Unchanged => ("unchanged", format!("The card of {} was known already.\n\n", card.name())),
        Imported::Updated { from } => {
            ("updated", format!("The card of {} replaces the one with serial {from}.\n\n", card.name()))
        }
        Imported::Replaced { known } => (
            "replaced",
            format!(
                "{} has another identity from now on. Until now its fingerprint was {known}.\n\n",
                card.name()
            ),
        ),
    };
    if json {
        let mut value = describe(&card, now);
        value["import"] = done.into();
        return print_json(&value);
    }
    show(&card, &said, now, false)
}

fn csr(home: &Home, out: Option<&Path>, force: bool, json: bool) -> anyhow::Result<()> {
    let request = home.certificate_request()?;
    if let Some(out) = out {
        write_atomically(out, force, request.as_bytes())?;
    }
    match (out, json) {
        (_, true) => {
            print_json(&json!({ "request": request, "out": out, "dns_name": home.name().dns_name() }))
        }
        (None, false) => print(&request),
        (Some(out), false) => print(&format!(
            "Wrote {}. Let the authority issue a certificate for the DNS name {} from it, then: padmm-site site certify CERT.pem --home {}\n",
            out.display(),
            home.name().dns_name(),
            home.dir().display()
        )),
    }
}

fn show(card: &Card, before: &str, now: SystemTime, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&describe(card, now));
    }
    let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let until = match expiry_warning(card, now) {
        Some(warning) => format!("{} — {warning}", card.certificate().last_day()),
        None => card.certificate().last_day(),
    };
    print(&format!(
        "{before}name         {}\nserial       {}\nfingerprint  {}\naddresses    {}\nrelay        {}\nvalid until  {until}\n",
        card.name(),
        card.serial(),
        card.fingerprint(),
        list(card.addresses()),
        card.relay().unwrap_or("none"),
    ))
}

fn describe(card: &Card, now: SystemTime) -> Value {
    json!({
        "name": card.name(), "serial": card.serial(), "fingerprint": card.fingerprint(),
        "identity": card.identity(), "transport": card.transport(), "addresses": card.addresses(),
        "relay": card.relay(), "valid_until": card.certificate().last_day(),
        "expired": matches!(card.certificate().expiry(now), Expiry::Expired { .. }),
    })
}

/// What to say about a card that runs out, if it does.
pub(crate) fn expiry_warning(card: &Card, now: SystemTime) -> Option<String> {
    match card.certificate().expiry(now) {
        Expiry::Fine => None,
        Expiry::Soon { days: 0 } => Some(format!("the certificate of {} ends today: renew it", card.name())),
        Expiry::Soon { days } => {
            Some(format!("the certificate of {} ends in {days} days: renew it", card.name()))
        }
        Expiry::Expired { on } => Some(format!("the certificate of {} ended on {on}: renew it", card.name())),
    }
}
