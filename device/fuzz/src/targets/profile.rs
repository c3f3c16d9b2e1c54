//! Text into the profile reader.

use execlab_abi::engine::Engine;
use execlab_profile::{MAX_DELAY_NS, Point, Profile, ProfileError, Sampler};

use crate::{Reached, Target, Verdict};

/// Bytes as the text of a profile: as they are, or each byte as a word of the language.
pub const TARGET: Target = Target {
    name: "profile",
    about: "text into the profile reader, samples out of what it accepts",
    max_len: 4096,
    labels: &LABELS,
    seeds,
    runner: || Box::new(run),
};

/// Parts of error messages, and an accepted profile.
const LABELS: [&str; 20] = [
    "accepted",
    "accepted with a delay",
    "unknown key",
    "unknown point",
    "unknown engine",
    "unknown kind of delay",
    "unknown unit",
    "did you mean",
    "not a length of time",
    "negative",
    "no unit",
    "absurd",
    "finer than one nanosecond",
    "exponent",
    "above the longest",
    "mixture of nothing",
    "nested more than",
    "weight must be",
    "given twice",
    "expected",
];

/// Words of the language, one for each byte value (modulo their number).
const WORDS: &[&str] = &[
    "\n",
    " ",
    "=",
    "\"",
    ",",
    "[",
    "]",
    "{",
    "}",
    ".",
    "#",
    "-",
    "name",
    "source",
    "[bus]\n",
    "[delay]\n",
    "mmio_read",
    "forcewake",
    "[engine.rcs0.delay]\n",
    "engine",
    "\"elsp.accept\" = ",
    "csb.visible = ",
    "\"irq.deliver\"",
    "elsp",
    "{ uniform = [\"",
    "\", \"",
    "\"] }\n",
    "{ mixture = [",
    "{ weight = ",
    ", delay = ",
    "] }\n",
    "} ",
    "1",
    "9",
    "0",
    ".5",
    "20us",
    "ns",
    "us",
    "ms",
    "s",
    "µs",
    "nan",
    "inf",
    "-1",
    "1e9",
    "99999999999999999999",
    "0x10",
    "true",
    "2018-06-28",
    "'''",
    "\\u0000",
    "60s",
    "rcs1",
    "uniform",
    "mixture",
];

/// Short texts, each near another refusal.
const TEXTS: [&str; 9] = [
    "delay.elsp.accept = \"1.5us\"\n",
    "[delay]\n\"csb.visible\" = { uniform = [\"20us\", \"30us\"] }\n",
    "[delay]\n\"csb.visible\" = \"-1us\"\n",
    "[delay]\n\"csb.visible\" = \"0.5ns\"\n",
    "[engine.vecs0.delay]\nbatch.execute = \"1e3us\"\n",
    "[engine.rcs.delay]\narbitration = \"60.1s\"\n",
    "[delay]\n\"csb.visible\" = \"1ns\"\ncsb.visible = \"1ns\"\n",
    "delay.\"irq.deliver\" = { mixture = [{ weight = nan, delay = \"1us\" }] }",
    "delay.\"irq.deliver\" = { mixture = [{ delay = { mixture = [{ delay = { mixture = [{ delay = { mixture = [{ \
     delay = { mixture = [] } }] } }] } }] } }] }",
];

fn seeds() -> Vec<Vec<u8>> {
    let texts = Profile::builtin_names().filter_map(Profile::builtin_text).chain(TEXTS);
    let mut seeds: Vec<_> = texts.map(|text| [b"\0", text.as_bytes()].concat()).collect();
    seeds.push((1..=255).collect());
    seeds
}

fn run(input: &[u8]) -> Verdict {
    let text = match input.split_first() {
        Some((mode, words)) if mode & 1 == 1 => {
            words.iter().map(|byte| WORDS[usize::from(*byte) % WORDS.len()]).collect()
        }
        Some((_, bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        None => String::new(),
    };
    let mut reached = Reached::default();
    match Profile::parse(&text, "fuzz.toml") {
        Ok(profile) => accepted(&profile, &mut reached)?,
        Err(error) => refused(&error, &text, &mut reached)?,
    }
    Ok(reached)
}

/// Whatever is accepted must sample within its range and within reason.
fn accepted(profile: &Profile, reached: &mut Reached) -> Result<(), String> {
    reached.name(0);
    let mut sampler = Sampler::new(profile, 1, 1.0);
    for (point, engine) in Point::ALL.into_iter().flat_map(|p| Engine::ALL.map(|e| (p, e))) {
        let delay = profile.delay(point, engine);
        let (low, high) = delay.map_or((0, 0), execlab_profile::Distribution::range);
        let drawn = sampler.draw(point, engine);
        if !(low..=high).contains(&drawn) || high > MAX_DELAY_NS {
            return Err(format!("{} drew {drawn}, range {low}..={high}", point.name()));
        }
        if delay.is_some() {
            reached.name(1);
            reached.hash(high.leading_zeros().into());
        }
    }
    Ok(())
}

/// Whatever is refused must be refused in one line that points into the text.
fn refused(error: &ProfileError, text: &str, reached: &mut Reached) -> Result<(), String> {
    let ProfileError::Invalid { line, column, reason, .. } = error else {
        return Err(format!("not a refusal of the text: {error:?}"));
    };
    let shown = error.to_string();
    if shown.chars().any(char::is_control) || reason.is_empty() || shown.len() > 600 {
        return Err(format!("not one readable line: {shown:?}"));
    }
    let width = text.split('\n').nth(line.wrapping_sub(1)).map(|line| line.chars().count());
    if !width.is_some_and(|width| (1..=width + 1).contains(column)) {
        return Err(format!("{line}:{column} is outside the text: {shown}"));
    }
    for (label, words) in LABELS.iter().enumerate().skip(2).filter(|(_, words)| reason.contains(**words)) {
        reached.name(label);
        reached.hash(words.len() as u64);
    }
    // The reader's own messages have no list here; their lengths tell them apart well enough.
    reached.count(0, reason.len() as u64);
    Ok(())
}
