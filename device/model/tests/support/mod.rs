//! A bench for the model: memory, a GGTT, contexts, and a record of what came out.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken bench fails its test")]

use execlab_abi::csb::{self, Entry};
use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{context, ggtt, irq, lab, mi, ring};
use execlab_model::{BadAddress, Config, Env, Gpu, TraceEvent, TraceKind};
use execlab_profile::{Profile, Sampler};

/// Bytes of guest memory.
pub const MEMORY: u64 = 4 << 20;
/// GGTT addresses and guest-physical addresses differ by this, so that a missed translation shows.
pub const SHIFT: u64 = 0x10_0000;
/// Bytes of each ring.
pub const RING_SIZE: u32 = 4096;
/// GGTT address of a page for tests' own use.
pub const SCRATCH: u32 = 0xf000;

/// Memory and a record of effects.
pub struct World {
    pub bytes: Vec<u8>,
    pub interrupts: u32,
    pub trace: Vec<TraceEvent>,
    pub mirror: std::collections::HashMap<u32, u32>,
    /// Asks for a pause after every action.
    pub halting: bool,
}

impl World {
    pub fn new() -> Self {
        Self {
            bytes: vec![0; MEMORY as usize],
            interrupts: 0,
            trace: Vec::new(),
            mirror: Default::default(),
            halting: false,
        }
    }

    fn slice(&mut self, gpa: u64, len: usize) -> Result<&mut [u8], BadAddress> {
        let start = usize::try_from(gpa).map_err(|_| BadAddress)?;
        let end = start.checked_add(len).ok_or(BadAddress)?;
        self.bytes.get_mut(start..end).ok_or(BadAddress)
    }
}

impl Env for World {
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress> {
        data.copy_from_slice(self.slice(gpa, data.len())?);
        Ok(())
    }
    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress> {
        self.slice(gpa, data.len())?.copy_from_slice(data);
        Ok(())
    }
    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        assert!(gpa.is_multiple_of(4), "load at {gpa:#x}");
        self.read_u32(gpa)
    }
    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress> {
        assert!(gpa.is_multiple_of(4), "store at {gpa:#x}");
        self.write(gpa, &value.to_le_bytes())
    }
    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress> {
        assert!(gpa.is_multiple_of(8), "store at {gpa:#x}");
        self.write(gpa, &value.to_le_bytes())
    }
    fn interrupt(&mut self) {
        self.interrupts += 1;
    }
    fn wants_pause(&self) -> bool {
        self.halting
    }
    fn mirror(&mut self, offset: u32, value: u32) {
        self.mirror.insert(offset, value);
    }
    fn trace(&mut self, event: TraceEvent) {
        self.trace.push(event);
    }
}

/// A GPU with its surroundings.
pub struct Bench {
    pub gpu: Gpu,
    pub world: World,
    pub now: u64,
}

/// A context with its ring; pages lie at `lrca` (status), `+0x1000` (registers), `+0x2000` (ring).
#[derive(Debug, Clone, Copy)]
pub struct Context {
    pub lrca: u32,
    pub id: u32,
    pub tail: u32,
}

impl Context {
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(self.lrca, self.id)
    }
    pub fn ring(&self) -> u32 {
        self.lrca + 0x2000
    }
    /// GGTT address of the context's seqno, in its status page.
    pub fn seqno_address(&self) -> u32 {
        self.lrca + 0x100
    }
}

impl Bench {
    /// A bench with the delays of a profile in TOML.
    pub fn with_profile(text: &str, seed: u64) -> Self {
        let profile = Profile::parse(text, "test").unwrap();
        Self::with_sampler(Sampler::new(&profile, seed, 1.0))
    }

    /// A bench where nothing takes time.
    pub fn new() -> Self {
        Self::with_sampler(Sampler::zero())
    }

    pub fn with_sampler(sampler: Sampler) -> Self {
        let mut bench =
            Self { gpu: Gpu::new(Config { sampler, ..Default::default() }), world: World::new(), now: 0 };
        bench.init();
        bench
    }

    /// What a driver does first: GGTT entries, status pages, execlists on, interrupts on.
    pub fn init(&mut self) {
        for page in 0..512_u32 {
            let pte = ggtt::pte(SHIFT + u64::from(page) * 4096);
            self.write(ggtt::pte_offset(page << 12), pte as u32);
            self.write(ggtt::pte_offset(page << 12) + 4, (pte >> 32) as u32);
        }
        for engine in Engine::ALL {
            self.write(engine.reg(ring::HWS_PGA), hwsp(engine));
            self.write(engine.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE));
            self.write(engine.reg(ring::IMR), engine.ring_imr(0xffff));
            for entry in 0..csb::ENTRIES {
                self.poke64(hwsp(engine) + Entry::hwsp_offset(entry), Entry::POISON);
            }
        }
        for bank in 0..irq::BANKS {
            self.write(irq::imr(bank), 0);
            self.write(irq::ier(bank), u32::MAX);
        }
        self.write(irq::MASTER, irq::MASTER_ENABLE);
    }

    pub fn write(&mut self, offset: u32, value: u32) {
        self.gpu.mmio_write(offset, value, self.now, &mut self.world);
    }
    pub fn read(&mut self, offset: u32) -> u32 {
        self.gpu.mmio_read(offset, self.now)
    }
    pub fn advance(&mut self, ns: u64) {
        self.now += ns;
        self.gpu.advance(self.now, &mut self.world);
    }
    /// Lets everything happen that will happen by itself, within `ns`.
    pub fn settle(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some(due) = self.gpu.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.gpu.advance(self.now, &mut self.world);
        }
    }
    pub fn poke(&mut self, ggtt: u32, value: u32) {
        self.world.write(SHIFT + u64::from(ggtt), &value.to_le_bytes()).unwrap();
    }
    pub fn poke64(&mut self, ggtt: u32, value: u64) {
        self.world.write(SHIFT + u64::from(ggtt), &value.to_le_bytes()).unwrap();
    }
    pub fn peek(&mut self, ggtt: u32) -> u32 {
        self.world.read_u32(SHIFT + u64::from(ggtt)).unwrap()
    }
    pub fn peek64(&mut self, ggtt: u32) -> u64 {
        self.world.read_u64(SHIFT + u64::from(ggtt)).unwrap()
    }

    /// Context number `n` with an empty ring.
    pub fn context(&mut self, n: u32) -> Context {
        let context = Context { lrca: 0x1_0000 + n * 0x4000, id: 0x100 + n, tail: 0 };
        let state = context.lrca + context::STATE_OFFSET;
        self.poke(state + 4 * context::RING_START as u32, context.ring());
        self.poke(state + 4 * context::RING_CTL as u32, ring::ctl(RING_SIZE));
        self.poke(state + 4 * context::RING_HEAD as u32, 0);
        self.poke(state + 4 * context::RING_TAIL as u32, 0);
        context
    }

    /// Appends commands to the ring and stores the tail into the image.
    pub fn emit(&mut self, context: &mut Context, commands: &[u32]) {
        for dword in commands {
            self.poke(context.ring() + context.tail, *dword);
            context.tail = (context.tail + 4) % RING_SIZE;
        }
        if !context.tail.is_multiple_of(8) {
            self.poke(context.ring() + context.tail, mi::NOOP);
            context.tail = (context.tail + 4) % RING_SIZE;
        }
        self.poke(context.lrca + context::STATE_OFFSET + 4 * context::RING_TAIL as u32, context.tail);
    }

    /// A request: store `seqno`, user interrupt, arbitration point.
    pub fn emit_request(&mut self, context: &mut Context, seqno: u32) {
        let address = context.seqno_address();
        self.emit(
            context,
            &[mi::FLUSH_DW_STORE, address | mi::FLUSH_DW_GGTT, 0, seqno, mi::USER_INTERRUPT, mi::ARB_CHECK],
        );
    }

    /// Four ELSP writes.
    pub fn submit(&mut self, engine: Engine, first: Descriptor, second: Descriptor) {
        for word in [second.hi, second.lo, first.hi, first.lo] {
            self.write(engine.reg(ring::ELSP), word);
        }
    }

    /// CSB entries written so far, from the trace.
    pub fn events(&self, engine: Engine) -> Vec<(u32, u32)> {
        self.world
            .trace
            .iter()
            .filter(|event| event.engine == Some(engine))
            .filter_map(|event| match event.kind {
                TraceKind::Csb { status, id, .. } => Some((status, id)),
                _ => None,
            })
            .collect()
    }

    /// The entry at `index` as the driver sees it.
    pub fn csb(&mut self, engine: Engine, index: u32) -> Entry {
        Entry::from_qword(self.peek64(hwsp(engine) + Entry::hwsp_offset(index)))
    }
}

/// GGTT address of an engine's status page.
pub fn hwsp(engine: Engine) -> u32 {
    0x1000 + 0x1000 * engine.index() as u32
}

/// Numbers for properties: SplitMix64, the same on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// 0 to `below` − 1.
    pub fn below(&mut self, below: u64) -> u64 {
        if below == 0 { 0 } else { self.next() % below }
    }
}

impl Bench {
    /// The last violation, from the registers that a guest reads: code, address, words, count.
    pub fn violation(&mut self) -> (Option<lab::Violation>, u32, [u32; 4], u32) {
        let code = lab::Violation::from_code(self.read(lab::ERROR_CODE));
        let words = [0, 4, 8, 12].map(|at| self.read(lab::ERROR_WORDS + at));
        (code, self.read(lab::ERROR_ADDR), words, self.read(lab::ERROR_COUNT))
    }
}
