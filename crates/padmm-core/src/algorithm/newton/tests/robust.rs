//! Data on which a method that learns its metric could break. On none of it is the model much worse than the base rate, where the rule
//! calls the noise bearable, and more budget never makes it worse.

use padmm_privacy::{Budget, gdp_mu};

use super::*;

/// Sites of equal size.
const SITES: f64 = 5.0;
const SEEDS: u64 = 20;

/// What is special about the records of a case.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    /// How often each categorical column is repeated.
    copies: usize,
    /// How strong the signal is.
    strength: f64,
    /// What is added to every margin.
    shift: f64,
    /// The part of the labels that is turned round.
    flipped: f64,
    /// Columns that are the same in every record.
    constants: usize,
    /// Categories of one more column.
    categories: usize,
    /// Numbers that are mostly zero.
    words: usize,
    is_separable: bool,
}

/// Numbers without a pattern (Steele, Lea and Flood's SplitMix).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    /// Between 0 and 1.
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((b ^ (b >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// As good as normal.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

impl Case {
    fn records(self, n: usize) -> (Dataset, FeatureSpace) {
        let mut rng = Numbers(11);
        let widths = [2, 3, 5, 8];
        let n_numeric = 2 + self.constants + self.words;
        let mut groups: Vec<Range<usize>> = (0..n_numeric).map(|j| j..j + 1).collect();
        let mut next = n_numeric;
        let mut group = |width: usize| {
            groups.push(next..next + width);
            next += width;
            next - width
        };
        let starts: Vec<Vec<usize>> =
            widths.iter().map(|w| (0..self.copies.max(1)).map(|_| group(*w)).collect()).collect();
        let constant = (self.constants > 0).then(|| group(4));
        let wide = (self.categories > 0).then(|| group(self.categories));
        let p = next + 1;
        let slopes: Vec<f64> = (0..p).map(|_| self.strength * rng.normal()).collect();
        let hot = widths.len() * self.copies.max(1)
            + usize::from(constant.is_some())
            + usize::from(wide.is_some())
            + 1;
        let mut data = Dataset::new(p, n_numeric, hot, 1.0);
        for _ in 0..n {
            let mut numbers: Vec<f64> = (0..2).map(|_| rng.uniform()).collect();
            numbers.resize(2 + self.constants, 0.37);
            numbers.extend((0..self.words).map(|k| f64::from(rng.uniform() < 2.0 / (k as f64 + 4.0))));
            let mut margin: f64 = numbers.iter().zip(&slopes).take(2).map(|(v, s)| (v - 0.5) * s).sum();
            margin += numbers[2 + self.constants..].iter().zip(&slopes).map(|(v, s)| v * s).sum::<f64>();
            let mut ones = vec![];
            for (width, starts) in widths.iter().zip(&starts) {
                let value = (rng.uniform() * *width as f64) as usize;
                margin += 0.5 * slopes[starts[0] + value];
                ones.extend(starts.iter().map(|start| (start + value) as u32));
            }
            ones.extend(constant.map(|start| start as u32));
            if let Some(start) = wide {
                // The first values are the most frequent.
                let value = (rng.uniform().powi(2) * self.categories as f64) as usize;
                margin += slopes[start + value];
                ones.push((start + value) as u32);
            }
            ones.push(p as u32 - 1);
            margin += self.shift;
            let chance =
                if self.is_separable { f64::from(margin > 0.0) } else { 1.0 / (1.0 + (-margin).exp()) };
            let is_positive = (rng.uniform() < chance) != (rng.uniform() < self.flipped);
            ones.sort_unstable();
            data.push(&numbers, &ones, if is_positive { 1.0 } else { -1.0 });
        }
        let names = (0..p).map(|j| format!("column {j}")).collect();
        (data, FeatureSpace { names, groups, intercept: Some(p - 1), n_numeric })
    }
}

#[test]
fn nothing_breaks_it() {
    let usual = Case { strength: 1.0, ..Case::default() };
    let cases = [
        ("usual", usual),
        ("no signal", Case::default()),
        ("every category six times", Case { copies: 6, ..usual }),
        ("one positive in a hundred", Case { shift: -5.5, ..usual }),
        ("one positive in a thousand", Case { shift: -8.0, ..usual }),
        ("a thousand categories", Case { categories: 1000, ..usual }),
        ("three hundred words", Case { words: 300, strength: 0.5, ..usual }),
        ("separable", Case { is_separable: true, strength: 3.0, ..usual }),
        ("constant columns", Case { constants: 3, ..usual }),
        ("three labels in ten turned round", Case { is_separable: true, flipped: 0.3, ..usual }),
    ];
    for (name, case) in cases {
        let (records, space) = case.records(4000);
        let n_positive = records.rows().filter(|row| row.label > 0.0).count();
        let rate = n_positive as f64 / records.n_records() as f64;
        let base = -rate * rate.ln() - (1.0 - rate) * (1.0 - rate).ln();
        let term = RegularizerTerm::new(&Regularizer::L2 { strength: 1e-3 }, &space, 1.0 / SITES);
        let none = RegularizerTerm::none();
        let parts = [Part::mean(&records)];
        let objective = Objective::new(&parts, Loss::Logistic, &none, &[], 0.0);
        // As if each record stood for five: so many hospitals have.
        let noise_factor = SITES.sqrt() / (5.0 * records.n_records() as f64);
        let mean_loss = |epsilon: f64| {
            let mu = gdp_mu(Budget::new(epsilon, 1e-4).unwrap()).value();
            let rehearsal = Rehearsal {
                records: &records,
                space: &space,
                loss: Loss::Logistic,
                regularizer: &term,
                noise_factor,
                mu,
                rounds: None,
            };
            let of_seed = |seed: u64| {
                let mut rng = Numbers(1000 * seed);
                let model = rehearsal.run(&mut || rng.normal());
                objective.value(&model, &mut ObjectiveBuffers::default())
            };
            let mean = (1..=SEEDS).map(of_seed).sum::<f64>() / SEEDS as f64;
            (mean, picked(space.n_features(), noise_factor, mu).1)
        };
        let found = [1.0, 5.0].map(mean_loss);
        println!("{name}: base rate {base:.4}, epsilon 1 {:.4}, epsilon 5 {:.4}", found[0].0, found[1].0);
        for (loss, noise_level) in found {
            assert!(noise_level > 0.3 || loss <= 1.05 * base, "{name}: {loss}, base rate {base}");
        }
        assert!(found[1].0 <= found[0].0 * 1.001, "{name}: {found:?}");
    }
}
