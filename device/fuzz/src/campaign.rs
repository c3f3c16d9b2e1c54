//! Running many cases: rounds, jobs, the watchdog, and having one case again.
//!
//! Cases are numbered. A *round* of [`ROUND`] consecutive cases starts from the target's seed inputs with a random
//! stream of its own and grows its own corpus. So rounds can run on any job in any order, and a case can be had
//! again by running at most one round.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Reached, Runner, Target, Verdict, catch, mutate};

/// Cases in a round.
pub const ROUND: u64 = 32_768;
/// Most inputs a round's corpus holds.
const CORPUS_MAX: usize = 512;
/// How often the watchdog looks, and progress is told.
const TICK: Duration = Duration::from_millis(50);

/// What to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Seed of everything random.
    pub seed: u64,
    /// Number of cases; the last round is cut short.
    pub cases: u64,
    /// Stop starting rounds, and leave running ones, after this long.
    pub time: Option<Duration>,
    /// Threads.
    pub jobs: usize,
    /// A case that takes longer hangs.
    pub case_limit: Duration,
}

/// What a campaign found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Number of the case.
    pub case: u64,
    /// What was wrong.
    pub what: String,
    /// The input, empty for a case that hangs: its thread still has it. [`replay`] makes it again.
    pub input: Vec<u8>,
}

/// How a campaign went.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Cases that ended.
    pub cases: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Everything that was reached.
    pub reached: Reached,
    /// The case that took longest, and how long. Not the same from run to run.
    pub slowest: (u64, Duration),
    /// The first thing that was wrong, if anything was.
    pub finding: Option<Finding>,
}

/// What the threads of a campaign share.
struct Shared {
    next_round: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    slots: Vec<Slot>,
    result: Mutex<Outcome>,
}

/// What the rounds have come to.
#[derive(Default)]
struct Outcome {
    reached: Reached,
    slowest: (u64, Duration),
    finding: Option<Finding>,
}

/// What one job is busy with.
#[derive(Default)]
struct Slot {
    /// Number of the case plus one; 0 between cases.
    case: AtomicU64,
    /// When it began, in nanoseconds since the campaign did.
    began: AtomicU64,
}

impl Shared {
    /// Keeps the first finding only and stops the campaign.
    fn report(&self, finding: Finding) {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.finding.get_or_insert(finding);
        self.stop.store(true, Relaxed);
    }
}

/// Runs a campaign until its cases or its time are used up or something is wrong. `progress` hears of the cases done
/// every [`TICK`].
///
/// After a hang the thread that hangs is left behind; it ends with the process.
pub fn run(target: Target, config: &Config, mut progress: impl FnMut(u64)) -> Summary {
    let start = Instant::now();
    let shared = Arc::new(Shared {
        next_round: AtomicU64::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        slots: (0..config.jobs.max(1)).map(|_| Slot::default()).collect(),
        result: Mutex::default(),
    });
    let jobs: Vec<_> = (0..shared.slots.len())
        .map(|job| {
            let (shared, config) = (Arc::clone(&shared), config.clone());
            thread::spawn(move || work(target, &config, &shared, job, start))
        })
        .collect();
    while !jobs.iter().all(thread::JoinHandle::is_finished) {
        // Not hiding a race: this is the watchdog's period.
        thread::sleep(TICK);
        progress(shared.done.load(Relaxed));
        if config.time.is_some_and(|time| start.elapsed() >= time) {
            shared.stop.store(true, Relaxed);
        }
        if let Some(case) = hanging(&shared, config.case_limit, start) {
            let what = format!("hangs: not done after {:?}", config.case_limit);
            shared.report(Finding { case, what, input: Vec::new() });
            break;
        }
    }
    let result = shared.result.lock().unwrap_or_else(PoisonError::into_inner);
    Summary {
        cases: shared.done.load(Relaxed),
        elapsed: start.elapsed(),
        reached: result.reached,
        slowest: result.slowest,
        finding: result.finding.clone(),
    }
}

/// The case, if any, that has run for longer than `limit`.
fn hanging(shared: &Shared, limit: Duration, start: Instant) -> Option<u64> {
    shared.slots.iter().find_map(|slot| {
        let case = slot.case.load(Relaxed);
        let began = Duration::from_nanos(slot.began.load(Relaxed));
        let late = start.elapsed().saturating_sub(began) > limit;
        // Read again: if it has moved on meanwhile, `began` was not this case's.
        (case != 0 && late && slot.case.load(Relaxed) == case).then(|| case - 1)
    })
}

/// One job: takes rounds until there are none.
fn work(target: Target, config: &Config, shared: &Arc<Shared>, job: usize, start: Instant) {
    loop {
        let first = shared.next_round.fetch_add(1, Relaxed) * ROUND;
        if first >= config.cases || shared.stop.load(Relaxed) {
            return;
        }
        let (shared_, seed, cases) = (Arc::clone(shared), config.seed, ROUND.min(config.cases - first));
        // A thread for each round: what cannot be caught, such as the end of the stack, kills the process with
        // the thread's name on its lips.
        let round = thread::Builder::new()
            .name(format!("{} {seed}:{first}", target.name))
            .spawn(move || round(target, seed, first, cases, &shared_, job, start));
        match round.map(thread::JoinHandle::join) {
            Ok(Ok(())) => {}
            Ok(Err(_)) => shared.report(Finding {
                case: first,
                what: "the harness itself failed in the round that begins here".to_owned(),
                input: Vec::new(),
            }),
            Err(error) => {
                let what = format!("cannot start a thread: {error}");
                shared.report(Finding { case: first, what, input: Vec::new() });
            }
        }
    }
}

/// Runs one round and reports what it found.
fn round(target: Target, seed: u64, first: u64, cases: u64, shared: &Shared, job: usize, start: Instant) {
    let slot = &shared.slots[job];
    let mut round = Round::new(target, seed, first);
    let mut slowest = (first, Duration::ZERO);
    for case in first..first + cases {
        if shared.stop.load(Relaxed) {
            break;
        }
        let began = start.elapsed();
        slot.began.store(began.as_nanos() as u64, Relaxed);
        slot.case.store(case + 1, Relaxed);
        let (input, verdict) = round.step();
        slot.case.store(0, Relaxed);
        shared.done.fetch_add(1, Relaxed);
        slowest = longer(slowest, (case, start.elapsed() - began));
        if let Err(what) = verdict {
            shared.report(Finding { case, what, input });
            break;
        }
    }
    let mut result = shared.result.lock().unwrap_or_else(PoisonError::into_inner);
    result.reached.join(&round.reached);
    result.slowest = longer(result.slowest, slowest);
}

/// The one of two cases that took longer.
fn longer(a: (u64, Duration), b: (u64, Duration)) -> (u64, Duration) {
    if b.1 > a.1 { b } else { a }
}

/// A round under way.
struct Round {
    target: Target,
    rng: Xoshiro256PlusPlus,
    corpus: Vec<Vec<u8>>,
    reached: Reached,
    run: Runner,
    /// Seed inputs that have not yet been run as they are.
    fresh: usize,
}

impl Round {
    fn new(target: Target, seed: u64, first: u64) -> Self {
        let corpus = (target.seeds)();
        Self {
            target,
            // Multiplying by an odd number keeps nearby rounds and seeds apart.
            rng: Xoshiro256PlusPlus::seed_from_u64(
                seed ^ (first / ROUND + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ),
            fresh: corpus.len(),
            corpus,
            reached: Reached::default(),
            run: (target.runner)(),
        }
    }

    /// The next input.
    fn input(&mut self) -> Vec<u8> {
        if self.fresh > 0 {
            self.fresh -= 1;
            return self.corpus[self.fresh].clone();
        }
        mutate::next(&mut self.rng, &self.corpus, self.target.max_len)
    }

    /// Runs the next case.
    fn step(&mut self) -> (Vec<u8>, Verdict) {
        let input = self.input();
        let verdict = catch::case(&mut self.run, &input);
        if let Ok(reached) = &verdict
            && self.reached.join(reached)
            && self.corpus.len() < CORPUS_MAX
        {
            self.corpus.push(input.clone());
        }
        (input, verdict)
    }
}

/// Makes the input of one case again, running the cases of its round before it, and runs it. `before` sees the
/// number and the input of the case before it is run.
pub fn replay(target: Target, seed: u64, case: u64, before: impl FnOnce(&[u8])) -> Verdict {
    let first = case / ROUND * ROUND;
    let mut round = Round::new(target, seed, first);
    for _ in first..case {
        let _ = round.step();
    }
    let input = round.input();
    before(&input);
    catch::case(&mut round.run, &input)
}
