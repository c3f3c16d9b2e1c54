//! Drawing lengths.

use std::time::Duration;

use execlab_abi::engine::{ENGINE_COUNT, Engine};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::draw::{Draw, scale};
use crate::{Point, Profile};

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

/// Draws lengths of delays.
///
/// Each point of each engine has a random stream of its own, so a further draw at one point moves no other
/// point's sequence; the same profile and seed give the same sequence at each point, on every machine. The
/// streams of two dilations are the same but for the factor. A draw does not allocate.
#[derive(Debug, Clone)]
pub struct Sampler {
    streams: [[Stream; Point::COUNT]; ENGINE_COUNT],
    dilation: f64,
    bus: BusNs,
}

#[derive(Debug, Clone)]
struct Stream {
    draw: Draw,
    // Not `SmallRng`, whose algorithm may change: a printed seed has to give the same run next year.
    rng: Xoshiro256PlusPlus,
}

impl Sampler {
    /// A sampler for `profile`. `dilation` multiplies every length; one that is not finite or not above 0 counts
    /// as 1.
    #[must_use]
    pub fn new(profile: &Profile, seed: u64, dilation: f64) -> Self {
        let dilation = if dilation.is_finite() && dilation > 0.0 { dilation } else { 1.0 };
        let cost = |d: Duration| scale(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX), dilation);
        let bus = BusNs {
            read: cost(profile.bus.read),
            write: cost(profile.bus.write),
            forcewake: cost(profile.bus.forcewake),
        };
        let streams = Engine::ALL.map(|engine| {
            Point::ALL.map(|point| Stream {
                draw: profile.delay(point, engine).map_or(Draw::Constant(0), |d| Draw::new(d, dilation)),
                rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ stream_id(point, engine)),
            })
        });
        Self { streams, dilation, bus }
    }

    /// A sampler with no delay anywhere.
    #[must_use]
    pub fn zero() -> Self {
        Self::new(&Profile::default(), 0, 1.0)
    }

    /// The next delay at `point` of `engine`, in dilated nanoseconds.
    #[inline]
    #[must_use]
    pub fn draw(&mut self, point: Point, engine: Engine) -> u64 {
        let Stream { draw, rng } = &mut self.streams[engine.index()][point.index()];
        // The usual case stays in the caller's code: it is asked once for every ring command.
        if let Draw::Constant(ns) = draw { *ns } else { draw.draw(rng, self.dilation) }
    }

    /// A length in nanoseconds, dilated.
    #[inline]
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

/// A number for each stream (FNV-1a of its names), so that a point added to the list later leaves the sequences
/// of the others as they were. Seeding expands it, with the seed, through SplitMix64, which parts nearby values.
fn stream_id(point: Point, engine: Engine) -> u64 {
    let bytes = engine.name().bytes().chain([b'/']).chain(point.name().bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
