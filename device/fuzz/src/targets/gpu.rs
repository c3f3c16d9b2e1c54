//! What the targets into the GPU model share: the lab, its delays, and the correct guest afterwards.

use arbitrary::Unstructured;
use execlab_abi::engine::{ENGINE_COUNT, Engine};
use execlab_profile::{Profile, Sampler};

use crate::hostile::guest::{self, Recovery};
use crate::hostile::lab::Lab;
use crate::{Runner, Verdict};

/// How a target plays its bytes.
pub type Play = fn(&mut Lab, &mut Unstructured<'_>) -> Verdict;

/// A runner: the first byte chooses delays, recovery and the engine that has to serve afterwards; the rest is
/// played.
pub fn runner(play: Play) -> Runner {
    let profiles = ["kbl-2018", "tgl-late-csb"].into_iter().filter_map(Profile::builtin);
    let mut samplers = vec![Sampler::zero()];
    samplers.extend(profiles.map(|profile| Sampler::new(&profile, 1, 1.0)));
    let mut lab = Lab::default();
    Box::new(move |input| {
        let (choice, bytes) =
            input.split_first().map_or((0, input), |(first, rest)| (usize::from(*first), rest));
        let engine = Engine::ALL[choice % ENGINE_COUNT];
        let choice = choice / ENGINE_COUNT;
        let (sampler, rest) = (choice % samplers.len(), choice / samplers.len());
        // The full reset clears ten megabytes, so few cases end with it.
        let recovery = if rest == 7 { Recovery::Full } else { Recovery::Engines };
        let before = *lab.gpu.stats();
        lab.begin(samplers[sampler].clone());
        let mut reached = play(&mut lab, &mut Unstructured::new(bytes))?;
        lab.check()?;
        let after = *lab.gpu.stats();
        for (which, (before, after)) in (0..).zip(before.iter().zip(after.iter())) {
            reached.count(which, after.1 - before.1);
        }
        guest::serve(&mut lab, engine, recovery)?;
        lab.check()?;
        Ok(reached)
    })
}

/// Inputs to start from: one for each choice of the first byte, with bytes that decode to a spread of steps.
pub fn seeds() -> Vec<Vec<u8>> {
    (0..24)
        .map(|choice| {
            (0..200)
                .map(|n: u8| if n == 0 { choice } else { n.wrapping_mul(choice | 1).wrapping_add(choice) })
                .collect()
        })
        .collect()
}
