//! What the tests of both commands share: a small study of two measurements, a category and three hospitals, and ways to run the command
//! on it. The file is a module of each package's own `common`, which names the program.

#![allow(dead_code)]

use std::path::Path;
use std::process::{Command, Output};

use super::PROGRAM;

/// The schema of [`table`].
pub(crate) const SCHEMA: &str = r#"norm_bound = 1.0
intercept = true
missing = "drop"
missing_values = ["?"]
on_out_of_range = "error"
on_unknown_category = "error"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
site = { column = "hospital" }
columns = [
  { name = "age", kind = "numeric", lower = 0, upper = 100 },
  { name = "dose", kind = "numeric", lower = 0, upper = 1 },
  { name = "blood", kind = "categorical", values = ["A", "B", "O"] },
]
"#;

/// A CSV of `n` records at the sites north, south and west, the same every time.
pub(crate) fn table(n: usize) -> String {
    let mut text = String::from("age,dose,blood,hospital,ill\n");
    // Multiplicative congruential numbers: enough to look unordered.
    let mut state: u64 = 1;
    for i in 0..n {
        state = state * 48271 % 2_147_483_647;
        let age = 20 + state % 70;
        let dose = (state / 100 % 1000) as f64 / 1000.0;
        let ill = age as f64 / 100.0 + 0.5 * dose + (state / 7 % 100) as f64 / 100.0 > 1.2;
        let (blood, site) = (["A", "B", "O"][(state / 3 % 3) as usize], ["north", "south", "west"][i % 3]);
        text += &format!("{age},{dose},{blood},{site},{}\n", if ill { "yes" } else { "no" });
    }
    text
}

/// Writes `t.csv` and `s.toml`.
pub(crate) fn write_study(folder: &Path, table: &str, schema: &str) {
    std::fs::write(folder.join("t.csv"), table).unwrap();
    std::fs::write(folder.join("s.toml"), schema).unwrap();
}

/// Runs the command in `folder`.
pub(crate) fn padmm(folder: &Path, args: &[&str]) -> Output {
    Command::new(PROGRAM).current_dir(folder).args(args).output().unwrap()
}

/// Runs the command, which must succeed, and returns its standard output.
pub(crate) fn ok(folder: &Path, args: &[&str]) -> String {
    let output = padmm(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The text of an error: exit code 2, one paragraph that starts with `error: `, nothing on standard output.
pub(crate) fn refused(folder: &Path, args: &[&str]) -> String {
    let output = padmm(folder, args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert!(text.starts_with("error: ") && text.trim_end().lines().count() == 1, "{args:?}: {text}");
    text
}

/// The promise is said in the same words everywhere: what is hidden, by how much, and under which conditions.
pub(crate) fn assert_promise(text: &str) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("&quot;", "\"");
    for part in [
        "-differential privacy for the change \"replace one record of one site by any other\"",
        "by a factor of at most e^ε = ",
        "is right at most ",
        " % of the time, where guessing is right 50 % of the time",
        "At a site every row of the file is a record, whatever its contents, and the number of rows is public.",
        "ask for the group bound",
        "The promise holds if the site runs the program as it is shipped, with exact noise. Whether ",
        "How long computations take is not covered, and neither is anybody with access to the site",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// Text as JSON.
pub(crate) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
