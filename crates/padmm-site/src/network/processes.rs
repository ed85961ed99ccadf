//! The site processes of a network on one machine: started, watched, killed and started again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{MultiProgress, ProgressBar};
use padmm_commands::progress;

use super::{LocalSite, Network, RUN};
use crate::test_hooks::TestHooks;

/// What a site said or did.
enum News {
    /// A line of its log.
    Line(usize, String),
    /// It has closed its log: it is about to end.
    Closed(usize),
}

/// Longest time without any news before all sites are given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs all sites to their end, killing and restarting some `kills` times.
pub(super) fn run(network: &Network, kills: u32, show: bool, hooks: &TestHooks) -> anyhow::Result<()> {
    let (sender, news) = channel();
    let start = |site: usize| start(network, site, hooks, &sender);
    let mut children = (0..network.sites.len()).map(start).collect::<anyhow::Result<Vec<Child>>>()?;
    let result = watch(network, &mut children, kills, show, &news, &start);
    if result.is_err() {
        for child in &mut children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    result
}

fn start(network: &Network, site: usize, hooks: &TestHooks, sender: &Sender<News>) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("this program cannot be found")?;
    let mut child = Command::new(program)
        .args(["site", "run", "--run", RUN, "--home"])
        .arg(&network.sites[site].home)
        .args(hooks.flags())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("a site's process cannot be started")?;
    let stderr = child.stderr.take().context("a site's log cannot be read")?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(News::Line(site, line)).is_err() {
                return;
            }
        }
        let _ = sender.send(News::Closed(site));
    });
    Ok(child)
}

fn watch(
    network: &Network,
    children: &mut [Child],
    kills: u32,
    show: bool,
    news: &Receiver<News>,
    start: &dyn Fn(usize) -> anyhow::Result<Child>,
) -> anyhow::Result<()> {
    let n = network.sites.len();
    let rounds = network.contract.plan().settings().rounds;
    let bars = Bars::new(network, rounds, show);
    let mut lines: Vec<Vec<String>> = vec![vec![]; n];
    let mut done = vec![false; n];
    // Kills are spread over the rounds of the whole network; a small generator with a fixed seed says whom they hit.
    let mut plan = Kills { left: kills, total: kills, state: 0x9e37_79b9_7f4a_7c15 };
    let (mut rounds_seen, mut last_news) = (0u64, Instant::now());
    while done.iter().any(|d| !d) {
        let news = match news.recv_timeout(Duration::from_secs(1)) {
            Ok(news) => news,
            Err(_) if last_news.elapsed() < PATIENCE => continue,
            Err(_) => bail!(
                "no site has said anything for {} s; their last words: {}",
                PATIENCE.as_secs(),
                last(&lines)
            ),
        };
        last_news = Instant::now();
        match news {
            News::Line(site, line) => {
                if let Some(round) = round_of(&line) {
                    rounds_seen += 1;
                    bars.round(site, round, &line);
                }
                lines[site].push(line);
                if lines[site].len() > 50 {
                    lines[site].remove(0);
                }
                let total = u64::from(rounds) * n as u64;
                if let Some(victim) = plan.next(rounds_seen, total, n).filter(|&v| !done[v]) {
                    children[victim].kill().context("a site cannot be killed")?;
                }
            }
            News::Closed(site) => {
                let status = children[site].wait()?;
                if status.success() {
                    done[site] = true;
                    bars.done(site);
                } else if status.code().is_none() {
                    bars.killed(site);
                    children[site] = start(site)?;
                } else {
                    let name = &network.sites[site].name;
                    bail!("the site {name} has stopped: {}", lines[site].last().cloned().unwrap_or_default());
                }
            }
        }
    }
    Ok(())
}

fn last(lines: &[Vec<String>]) -> String {
    lines.iter().filter_map(|l| l.last().cloned()).collect::<Vec<_>>().join(" | ")
}

/// The round of a log line that tells of one.
fn round_of(line: &str) -> Option<u64> {
    line.split_once(": round ")?.1.split(' ').next()?.parse().ok()
}

struct Kills {
    left: u32,
    total: u32,
    state: u64,
}

impl Kills {
    /// Whom to kill now, if it is time.
    fn next(&mut self, seen: u64, total: u64, n: usize) -> Option<usize> {
        let due = u64::from(self.total - self.left + 1) * total / u64::from(self.total + 1);
        if self.left == 0 || seen < due {
            return None;
        }
        self.left -= 1;
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Some((self.state >> 33) as usize % n)
    }
}

/// A line for each site that tells how far it is.
struct Bars(Vec<ProgressBar>);

impl Bars {
    fn new(network: &Network, rounds: u32, show: bool) -> Self {
        let all = MultiProgress::new();
        let bar = |site: &LocalSite| {
            let bar = progress::bar(rounds.into(), "{prefix:>14} {bar:30} round {pos:>3}/{len} {msg}", !show);
            bar.set_prefix(site.name.to_string());
            if show { all.add(bar) } else { bar }
        };
        Self(network.sites.iter().map(bar).collect())
    }

    fn round(&self, site: usize, round: u64, line: &str) {
        self.0[site].set_position(round);
        if let Some((_, epsilon)) = line.rsplit_once(", ") {
            self.0[site].set_message(epsilon.to_owned());
        }
    }

    fn killed(&self, site: usize) {
        self.0[site].set_message("killed, starting again");
    }

    fn done(&self, site: usize) {
        self.0[site].finish();
    }
}
