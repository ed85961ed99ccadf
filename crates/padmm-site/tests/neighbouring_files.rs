//! Two files that differ in one record: whether a site accepts a plan, and whether it starts, must not differ. Others see both, and no noise is
//! paid for them.

use crate::common;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use common::{SCHEMA, ok, padmm, refused};
use padmm_node::identity::SiteName;
use padmm_node::site::Site;

const HEADER: &str = "age,dose,blood,hospital,ill";
const N: usize = 200;

/// The schema of these tests: strict about everything, with listed sites.
fn schema() -> String {
    SCHEMA.replace("column = \"hospital\"", "column = \"hospital\", values = [\"north\", \"south\"]")
}

/// Records of which one, in row 2, is positive.
fn rows() -> Vec<Vec<u8>> {
    let row = |i: usize| format!("{},0.{},{},north,no", 20 + i % 70, i % 10, ["A", "B", "O"][i % 3]);
    let mut rows: Vec<Vec<u8>> = (0..N).map(|i| row(i).into_bytes()).collect();
    rows[0] = b"50,0.5,A,north,yes".to_vec();
    rows
}

fn write(at: &Path, rows: &[Vec<u8>]) {
    let mut bytes = HEADER.as_bytes().to_vec();
    for row in rows {
        bytes.push(b'\n');
        bytes.extend(row);
    }
    std::fs::write(at.join("north.csv"), bytes).unwrap();
}

/// Two homes; north's file has `rows`.
fn study(at: &Path, rows: &[Vec<u8>]) {
    std::fs::write(at.join("s.toml"), schema()).unwrap();
    write(at, rows);
    std::fs::create_dir(at.join("cards")).unwrap();
    for site in ["north", "south"] {
        let cap = ["--cap-epsilon", "12", "--cap-delta", "1e-3", "--data", "north.csv"];
        ok(at, &[&["site", "init", "--home", site, "--name", site], &cap[..]].concat());
        std::fs::copy(at.join(site).join("card.toml"), at.join(format!("cards/{site}.toml"))).unwrap();
    }
}

fn plan(at: &Path, name: &str, records: usize) {
    let (north, south) = (format!("cards/north.toml:{records}"), format!("cards/south.toml:{N}"));
    let args = ["plan", "new", "--name", name, "--schema", "s.toml", "--graph", "path", "--force"];
    ok(at, &[&args[..], &["--out", &format!("{name}.toml"), "--card", &north, "--card", &south]].concat());
}

fn accept(at: &Path, name: &str) -> Output {
    let file = format!("{name}.toml");
    padmm(at, &["plan", "accept", &file, "--home", "north", "--cards", "cards", "--yes"])
}

/// All that anybody outside the site can know of an acceptance: how the command ended, what it says, and the files that may be sent.
#[derive(PartialEq)]
struct Outcome {
    code: Option<i32>,
    said: Vec<u8>,
    acceptance: Option<Vec<u8>>,
    plan: Option<Vec<u8>>,
}

fn outcome(at: &Path, name: &str) -> Outcome {
    let folder = at.join("north/runs").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    let output = accept(at, name);
    let file = |name: &str| std::fs::read(folder.join(name)).ok();
    let (acceptance, plan) = (file("north.accept"), file("plan.toml"));
    Outcome { code: output.status.code(), said: output.stdout, acceptance, plan }
}

/// Whether the site would start the run, and with how many records.
fn start(at: &Path, name: &str) -> Result<usize, String> {
    let run = SiteName::new(name).unwrap();
    let prepared = Site::read(&at.join("north"), &run, SystemTime::now()).map_err(|e| e.to_string())?;
    prepared.records().map(|records| records.n_records()).map_err(|e| e.to_string())
}

/// A record with each kind of problem.
const OTHERS: [(&[u8], &str); 13] = [
    (b"50,0.5,A,north,no", "same class"),
    (b"?,0.5,A,north,yes", "column `age`: the cell is missing"),
    (b"50,0.5,A,north,?", "column `ill`: the cell is missing"),
    (b"50,0.5,A,?,yes", "column `hospital`: the cell is missing"),
    (b"fifty,0.5,A,north,yes", "not a finite number"),
    (b"120,0.5,A,north,yes", "outside the schema's bounds"),
    (b"50,0.5,AB,north,yes", "not one of the schema's `values`"),
    (b"50,0.5,A,north,perhaps", "neither `positive` nor `negative`"),
    (b"50,0.5,A,elsewhere,yes", "site `values`"),
    (b"50,0.5,A,north", "has 4 cells"),
    (b"50,0.5,A,north,yes,yes", "has 6 cells"),
    (b"50,0.5,\xff,north,yes", "not UTF-8"),
    (b"\0", "has 1 cells"),
];

#[test]
fn one_record_decides_neither_whether_a_plan_is_accepted_nor_whether_a_site_starts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at, &rows());
    plan(at, "trial", N);
    let expected = outcome(at, "trial");
    assert_eq!(expected.code, Some(0));
    assert!(expected.acceptance.is_some() && expected.plan.is_some());
    assert_eq!(start(at, "trial"), Ok(N));
    for (other, problem) in OTHERS {
        let mut neighbour = rows();
        neighbour[0] = other.to_vec();
        write(at, &neighbour);
        assert!(outcome(at, "trial") == expected, "{problem}");
        assert_eq!(start(at, "trial"), Ok(N), "{problem}");
        // The site's own people are told, where only they see it.
        let said = String::from_utf8(accept(at, "trial").stderr).unwrap();
        assert!(said.contains(problem) && said.contains("own eyes"), "{problem}: {said}");
    }
}

#[test]
fn a_file_of_which_no_row_fits_is_accepted_with_a_loud_warning() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let nothing: Vec<Vec<u8>> = (0..N).map(|_| b"?,?,?,?,?".to_vec()).collect();
    study(at, &nothing);
    plan(at, "trial", N);
    let output = accept(at, "trial");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("200 of 200 rows (100 %) count for nothing") && said.contains("MANY RECORDS"),
        "{said}"
    );
    assert!(said.contains("NOTHING CAN BE LEARNED"), "{said}");
    assert_eq!(start(at, "trial"), Ok(N));
    // Nobody who fits everything is warned of anything.
    let mut fine = rows();
    fine[1] = b"60,0.5,B,north,yes".to_vec();
    write(at, &fine);
    assert_eq!(String::from_utf8(accept(at, "trial").stderr).unwrap(), "");
}

/// Warnings are written only where there is something to warn of; if nobody reads them any more, that must not show either.
#[test]
fn a_terminal_that_went_away_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at, &rows());
    plan(at, "trial", N);
    let mut neighbour = rows();
    neighbour[0] = b"?,?,?,?,?".to_vec();
    for rows in [rows(), neighbour] {
        write(at, &rows);
        let mut command = Command::new(common::PROGRAM);
        command.args(["plan", "accept", "trial.toml", "--home", "north", "--cards", "cards", "--yes"]);
        let mut child = command.current_dir(at).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// Two schemas that differ in what counts as missing are two questions about how many records have a value. The plan's number of records
/// is the number of rows under both, so it answers neither.
#[test]
fn the_number_of_records_does_not_depend_on_what_is_called_missing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut some = rows();
    some[10..27].fill(b"30,0.5,O,north,no".to_vec());
    study(at, &some);
    let with_o = schema();
    let without_o = schema()
        .replace("values = [\"A\", \"B\", \"O\"]", "values = [\"A\", \"B\"], missing_values = [\"O\"]");
    assert_ne!(with_o, without_o);
    let n_usable = rows_without_o(&some);
    for (name, text) in [("with-o", with_o), ("without-o", without_o)] {
        std::fs::write(at.join("s.toml"), text).unwrap();
        plan(at, name, N);
        let accepted = accept(at, name);
        assert!(accepted.status.success(), "{name}: {}", String::from_utf8_lossy(&accepted.stderr));
        assert_eq!(start(at, name), Ok(N), "{name}");
        // A plan with the number of usable records is refused by both, in the same words.
        let kept = format!("{name}-kept");
        plan(at, &kept, n_usable);
        let args =
            ["plan", "accept", &format!("{kept}.toml"), "--home", "north", "--cards", "cards", "--yes"];
        let text = String::from_utf8(padmm(at, &args).stderr).unwrap();
        let error = text.lines().last().unwrap().to_owned();
        assert!(error.contains("has 200 rows") && error.contains(&format!("says {n_usable}")), "{error}");
        assert_eq!(padmm(at, &args).status.code(), Some(2));
    }
}

fn rows_without_o(rows: &[Vec<u8>]) -> usize {
    rows.iter().filter(|row| !String::from_utf8_lossy(row).contains(",O,")).count()
}

#[test]
fn a_check_gives_the_number_for_a_plan_and_the_rest_for_the_sites_own_eyes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut some = rows();
    some[3] = b"?,0.5,A,north,no".to_vec();
    study(at, &some);
    let said = ok(at, &["schema", "check", "north.csv", "--schema", "s.toml"]);
    assert!(said.starts_with("200 rows: this is the number of records for a plan"), "{said}");
    assert!(said.contains("199 are usable, 1 lack a value") && said.contains("own eyes"), "{said}");
    some[4] = b"40,0.5,A\xff,north,no".to_vec();
    write(at, &some);
    let output = padmm(at, &["schema", "check", "north.csv", "--schema", "s.toml", "--json"]);
    let answer = common::json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(output.status.code(), Some(2), "a check is local, and may say that something is wrong");
    assert_eq!(
        (&answer["records"], &answer["usable"], &answer["dropped"], &answer["refused"]),
        (&200.into(), &198.into(), &1.into(), &1.into())
    );
    // What is not about a record is refused as before.
    std::fs::remove_file(at.join("north.csv")).unwrap();
    assert!(refused(at, &["schema", "check", "north.csv", "--schema", "s.toml"]).contains("north.csv"));
}
