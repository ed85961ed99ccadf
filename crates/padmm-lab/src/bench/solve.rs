//! The local solve, cold and warm, against scikit-learn's solvers on the same records, problem and gradient norm.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::case::{Answer, Case, TOLERANCE, Work};
use super::peers::{Environment, number};
use super::runs::{best_of, to_limit};
use super::{Bench, Report, Row, Target};

/// Times that ours is to be faster.
const COLD: f64 = 5.0;
const WARM: f64 = 10.0;
/// Largest relative difference of coefficients that passes for the same model.
const AGREEMENT: f64 = 1e-5;

/// A peer's way of doing it, and its times.
struct Peer {
    what: &'static str,
    solver: &'static str,
    sparse: bool,
    threads: usize,
}

impl Peer {
    fn name(&self) -> String {
        let form = if self.sparse { "CSR" } else { "dense" };
        format!("scikit-learn {} {form}, {} threads", self.solver, self.threads)
    }
}

fn peers(what: &'static str, solvers: &[&'static str]) -> Vec<Peer> {
    let forms = [(false, 1), (false, 2), (true, 1), (true, 2)];
    let one = |&solver: &&'static str| forms.map(|(sparse, threads)| Peer { what, solver, sparse, threads });
    // liblinear has no threads, and of lbfgs, which is the slowest by far, the threads decide nothing.
    let is_asked = |p: &Peer| p.threads == 1 || p.solver == "newton-cholesky";
    solvers.iter().flat_map(one).filter(is_asked).collect()
}

/// Cold, cold with the regulariser alone, and warm.
pub fn solve(bench: &Bench<'_>) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let folder = bench.problem("solve")?;
    let case = Case { work: Work::Solve, repeat: bench.repeat(5, 15), limit: true, ..Case::default() };
    (bench.watch)("our local solves");
    let exported = Case { export: Some(std::path::absolute(&folder)?), ..case.clone() };
    let mut ours = vec![exported.in_child()?];
    let mut alone = vec![Case { threads: 1, ..case.clone() }.in_child()?];
    let all = ["newton-cholesky", "lbfgs", "liblinear"];
    let questions = [
        ("cold", peers("cold", &all)),
        ("cold-flat", peers("cold", &all)),
        ("warm", peers("warm", &["newton-cholesky", "lbfgs"])),
    ];
    let mut answers = vec![];
    for (problem, peers) in &questions {
        for peer in peers {
            (bench.watch)(&format!("{problem}: {}", peer.name()));
            let answer = ask(bench, &folder, peer, problem, &ours[0])?;
            answers.push((*problem, peer.name(), answer));
        }
        // Before and after the peers, so that a machine that changes its pace changes it for all.
        (bench.watch)("our local solves again");
        ours.push(case.in_child()?);
        alone.push(Case { threads: 1, ..case.clone() }.in_child()?);
    }
    let peak = ours[0].peak_bytes;
    let mut described = Map::new();
    let mut worst_norm = 0.0f64;
    for (problem, key, bound) in [
        ("cold", "ratio_to_best_peer_cold", COLD),
        ("cold-flat", "ratio_to_best_peer_cold_without_proximal_term", COLD),
        ("warm", "ratio_to_best_peer_warm", WARM),
    ] {
        // The faster number of threads counts, as of the peers.
        let (two, one) = (best_of(&ours, problem)?, best_of(&alone, problem)?);
        let (seconds, fastest_of) = if two < one { (two, &ours) } else { (one, &alone) };
        let passes = if problem == "warm" { f64::from(case.rounds - 1) } else { 1.0 };
        let own = answers.iter().filter(|(p, ..)| *p == problem);
        let solved = own.clone().filter(|(_, _, a)| a["solved"] == json!(true));
        let times = solved.map(|(_, name, a)| Ok((name, number(a, "seconds")?, number(a, "peak_bytes")?)));
        let times = times.collect::<anyhow::Result<Vec<_>>>()?;
        let fastest = times.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let (name, peer_seconds, peer_peak) =
            fastest.ok_or_else(|| anyhow::anyhow!("no peer solved '{problem}'"))?;
        let words = match problem {
            "cold" => "local solve of Adult/5 to 1e-8, cold",
            "cold-flat" => "the same without the proximal term, cold",
            _ => "local solves of rounds 2 to 50, warm",
        };
        let row = Row::ours(words, seconds, peak)
            .alone(one)
            .to_limit(to_limit(fastest_of, problem, passes)?)
            .against(name.as_str(), *peer_seconds, Some(*peer_peak));
        report.note(key, row.ratio_to_best_peer);
        report.row(row.at_least(bound));
        worst_norm = worst_norm.max(ours[0].fact(&format!("gradient_norm {problem}"))?);
        for (_, name, answer) in own {
            let mut answer = answer.clone();
            answer.as_object_mut().map(|a| a.remove("coefficients"));
            described.insert(format!("{problem}: {name}"), answer);
        }
    }
    let difference = largest_difference(&answers, &ours[0]);
    report.row(
        Row::number("models of all peers, relative difference from ours", difference)
            .target(Target::at_most(difference, AGREEMENT)),
    );
    report.note("gradient_norm", worst_norm);
    report.note("peers", described);
    Ok(report)
}

fn ask(bench: &Bench<'_>, folder: &Path, peer: &Peer, problem: &str, ours: &Answer) -> anyhow::Result<Value> {
    let request = json!({
        "what": peer.what,
        "solver": peer.solver,
        "sparse": peer.sparse,
        "threads": peer.threads,
        "curvature": ours.fact(&format!("curvature {problem}"))?,
        "tolerance": TOLERANCE,
        "repeat": bench.repeat(3, 9),
    });
    bench.ask(Environment::Science, folder, &request)
}

/// Of the models of peers that solved a problem from ours.
fn largest_difference(answers: &[(&str, String, Value)], ours: &Answer) -> f64 {
    let solved = answers.iter().filter(|(_, _, a)| a["solved"] == json!(true));
    let of_one = |(problem, _, answer): &(&str, String, Value)| {
        let theirs = answer["coefficients"].as_array().into_iter().flatten().filter_map(Value::as_f64);
        let square = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>();
        let ours = &ours.points[*problem];
        (square(&mut ours.iter().zip(theirs).map(|(a, b)| a - b)) / square(&mut ours.iter().copied())).sqrt()
    };
    solved.map(of_one).fold(0.0, f64::max)
}
