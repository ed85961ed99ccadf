//! A network that no family describes: two clusters of hospitals and one line between them.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use padmm::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clusters = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)];
    let graph = Graph::of_edges(6, clusters.into_iter().chain([(2, 3)]))?;
    for graph in [graph, Graph::complete(6)?] {
        let edges = graph.n_edges();
        let run = Simulation::new(datasets::adult()?)
            .graph(graph)
            .split(Split::LabelSkew(0.5))
            .privacy(Budget::new(5.0, 1e-5)?)
            .rounds(30)
            .run()?;
        println!("{edges:>2} edges: loss {:.4}", run.loss());
    }
    // A graph in two pieces is not a network.
    let problem = Graph::of_edges(4, [(0, 1), (2, 3)]).unwrap_err();
    println!("{problem}");
    Ok(())
}
