//! Drawing lengths.

use execlab_abi::engine::{ENGINE_COUNT, Engine};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::{Distribution, Point, Profile};

/// The bus costs of a [`Sampler`] in dilated nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusNs {
    /// One MMIO read.
    pub read: u64,
    /// One MMIO write.
    pub write: u64,
    /// Taking forcewake once.
    pub forcewake: u64,
}

/// Draws lengths of delays. Each point of each engine has a random stream of its own, so a further draw at one
/// point moves no other point's sequence; the same profile, seed and order of draws at a point give the same
/// lengths. A draw does not allocate.
#[derive(Debug, Clone)]
pub struct Sampler {
    streams: [Stream; Point::COUNT * ENGINE_COUNT],
    dilation: f64,
    bus: BusNs,
}

#[derive(Debug, Clone)]
struct Stream {
    rng: SmallRng,
    delay: Distribution,
}

impl Sampler {
    /// A sampler for `profile`. `dilation` multiplies every length; it must be finite and not negative (anything
    /// else counts as 1).
    #[must_use]
    pub fn new(profile: &Profile, seed: u64, dilation: f64) -> Self {
        let dilation = if dilation.is_finite() && dilation >= 0.0 { dilation } else { 1.0 };
        let scale = |d: std::time::Duration| scale(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX), dilation);
        let bus = BusNs {
            read: scale(profile.bus.read),
            write: scale(profile.bus.write),
            forcewake: scale(profile.bus.forcewake),
        };
        let mut seeds = SmallRng::seed_from_u64(seed);
        let streams = std::array::from_fn(|i| {
            let (engine, point) = (Engine::ALL[i / Point::COUNT], Point::ALL[i % Point::COUNT]);
            Stream {
                rng: SmallRng::seed_from_u64(seeds.random()),
                delay: profile.delay(point, engine).cloned().unwrap_or(Distribution::Constant(0)),
            }
        });
        Self { streams, dilation, bus }
    }

    /// A sampler with no delay anywhere.
    #[must_use]
    pub fn zero() -> Self {
        Self::new(&Profile::default(), 0, 1.0)
    }

    /// The next delay at `point` of `engine`, in dilated nanoseconds.
    #[must_use]
    pub fn draw(&mut self, point: Point, engine: Engine) -> u64 {
        let stream = &mut self.streams[engine.index() * Point::COUNT + point.index()];
        let ns = draw(&stream.delay, &mut stream.rng);
        scale(ns, self.dilation)
    }

    /// A length in nanoseconds, dilated.
    #[must_use]
    pub fn scale(&self, ns: u64) -> u64 {
        scale(ns, self.dilation)
    }

    /// The factor by which every length is multiplied.
    #[must_use]
    pub const fn dilation(&self) -> f64 {
        self.dilation
    }

    /// What bus accesses cost, dilated.
    #[must_use]
    pub const fn bus(&self) -> BusNs {
        self.bus
    }
}

fn scale(ns: u64, dilation: f64) -> u64 {
    (ns as f64 * dilation).round() as u64
}

fn draw(delay: &Distribution, rng: &mut SmallRng) -> u64 {
    match delay {
        Distribution::Constant(ns) => *ns,
        Distribution::Uniform { low, high } => rng.random_range(*low..=*high),
        Distribution::Mixture(arms) => {
            let total: u64 = arms.iter().map(|a| u64::from(a.weight)).sum();
            let mut pick = rng.random_range(0..total.max(1));
            for arm in arms {
                if pick < u64::from(arm.weight) {
                    return draw(&arm.delay, rng);
                }
                pick -= u64::from(arm.weight);
            }
            0
        }
    }
}
