//! Five hospitals on a ring train one model at ε = 1. `cargo run --release -p padmm --example quickstart`
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use padmm::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let run = Simulation::new(datasets::adult()?)
        .graph(Graph::ring(5)?)
        .algorithm(PAdmm)
        .privacy(Budget::new(1.0, 1e-5)?)
        .seed(7)
        .run()?;
    println!("{}\nloss {:.4}", run.privacy().statement(), run.loss());
    let path = std::env::temp_dir().join("padmm-quickstart-model.json");
    run.model().save(&path)?;
    println!("model {}", path.display());
    Ok(())
}
