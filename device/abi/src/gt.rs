//! Registers that belong to no engine.

/// GEN6_GDRST: reset domains; a set bit resets and then reads 0.
pub const GDRST: u32 = 0x941c;
/// GDRST bit 0: everything.
pub const GRDOM_FULL: u32 = 1 << 0;
/// GDRST bit 1: render.
pub const GRDOM_RENDER: u32 = 1 << 1;
/// GDRST bit 2: media (video decode).
pub const GRDOM_MEDIA: u32 = 1 << 2;
/// GDRST bit 3: blitter.
pub const GRDOM_BLT: u32 = 1 << 3;
/// GDRST bit 4: video enhancement.
pub const GRDOM_VECS: u32 = 1 << 4;
/// GDRST bit 5: GuC.
pub const GRDOM_GUC: u32 = 1 << 5;

/// First of the registers that start a TLB invalidation and clear themselves when it is done (gen8 to gen11:
/// `GEN8_RTCR`, `GEN8_M1TCR`, `GEN8_M2TCR`, `GEN8_BTCR`, `GEN8_VTCR` and their neighbour).
pub const TLB_INVALIDATE_FIRST: u32 = 0x4260;
/// Last of them.
pub const TLB_INVALIDATE_LAST: u32 = 0x4274;

/// Forcewake request registers, masked: render, media, blitter (`FORCEWAKE_*_GEN9`).
pub const FORCEWAKE: [u32; 3] = [0xa278, 0xa270, 0xa188];
/// Forcewake acknowledge registers, in the order of [`FORCEWAKE`]: the low half of the request.
pub const FORCEWAKE_ACK: [u32; 3] = [0x0d84, 0x0d88, 0x13_0044];

impl crate::engine::Engine {
    /// The engine's reset domain.
    #[must_use]
    pub const fn grdom(self) -> u32 {
        match self {
            Self::Rcs0 => GRDOM_RENDER,
            Self::Bcs0 => GRDOM_BLT,
            Self::Vcs0 => GRDOM_MEDIA,
            Self::Vecs0 => GRDOM_VECS,
        }
    }
}
