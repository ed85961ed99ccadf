//! A matrix of one's own. Bounds are public knowledge, never taken from the rows.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use padmm::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 3,000 patients: the risk rises with age and falls with the dose.
    let patient = |k: u32| [f64::from(20 + k * 37 % 70), f64::from(k * 13 % 100) / 10.0];
    let rows: Vec<[f64; 2]> = (0..3000).map(patient).collect();
    let ill = |(k, [age, dose]): (u32, &[f64; 2])| age - 4.0 * dose + f64::from(k * 29 % 40) > 50.0;
    let labels: Vec<bool> = (0..).zip(&rows).map(ill).collect();

    let columns = [("age", 0.0, 120.0), ("dose", 0.0, 10.0)];
    let run = Simulation::new(Loaded::matrix("trial", &columns, rows, labels)?)
        .graph(GraphSpec::Complete)
        .agents(3)
        .holdout(Holdout::Fraction(0.2))
        .privacy(Budget::new(2.0, 1e-5)?)
        .run()?;
    let auc = run.auc().ok_or("a model of two classes has an AUC")?;
    println!("AUC on held-out patients {auc:.3}");
    for coefficient in run.model().coefficients() {
        println!("{:>10} {:+.3}", coefficient.name, coefficient.value);
    }
    assert!(auc > 0.7, "the noise leaves most of the signal");
    Ok(())
}
