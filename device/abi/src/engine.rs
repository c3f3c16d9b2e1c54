//! The engines of the lab's part and where their registers lie.

/// An engine: the first instance of each gen9 class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Engine {
    /// Render (RCS).
    Rcs0 = 0,
    /// Copy, "blitter" (BCS).
    Bcs0 = 1,
    /// Video decode, "BSD" (VCS0).
    Vcs0 = 2,
    /// Video enhancement (VECS).
    Vecs0 = 3,
}

/// Number of engines.
pub const ENGINE_COUNT: usize = 4;

impl Engine {
    /// All engines, in index order.
    pub const ALL: [Self; ENGINE_COUNT] = [Self::Rcs0, Self::Bcs0, Self::Vcs0, Self::Vecs0];

    /// Position in [`Engine::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// MMIO base of the engine's registers (`RENDER_RING_BASE`, `BLT_RING_BASE`, `GEN6_BSD_RING_BASE`,
    /// `VEBOX_RING_BASE`).
    #[must_use]
    pub const fn mmio_base(self) -> u32 {
        match self {
            Self::Rcs0 => 0x2000,
            Self::Bcs0 => 0x2_2000,
            Self::Vcs0 => 0x1_2000,
            Self::Vecs0 => 0x1_a000,
        }
    }

    /// The name i915 prints (`rcs0`, `bcs0`, `vcs0`, `vecs0`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rcs0 => "rcs0",
            Self::Bcs0 => "bcs0",
            Self::Vcs0 => "vcs0",
            Self::Vecs0 => "vecs0",
        }
    }

    /// The engine of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.name() == name)
    }

    /// The engine that owns the register at `offset`, and the register's offset from the engine's base. Each
    /// engine owns the 4 KiB (RCS: from 0x2000 to 0x2fff) behind its base.
    #[must_use]
    pub const fn decode(offset: u32) -> Option<(Self, u32)> {
        let engine = match offset & !0xfff {
            0x2000 => Self::Rcs0,
            0x2_2000 => Self::Bcs0,
            0x1_2000 => Self::Vcs0,
            0x1_a000 => Self::Vecs0,
            _ => return None,
        };
        Some((engine, offset & 0xfff))
    }

    /// Offset of a per-engine register, given relative to the base as in [`crate::ring`].
    #[must_use]
    pub const fn reg(self, relative: u32) -> u32 {
        self.mmio_base() + relative
    }
}
