//! Where inputs come from.

use rand::Rng;

/// Numbers that sit on an edge of some field: signs, page sizes, all ones, the first and last of a 32-bit range.
const EDGES: [u32; 16] = [
    0,
    1,
    2,
    4,
    7,
    8,
    0xfff,
    0x1000,
    0x1001,
    0x1f_ffff,
    0x20_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_f000,
    0xffff_fff8,
    0xffff_ffff,
];

/// The next input: fresh bytes, or a changed member of `corpus`. Never longer than `max_len`.
pub fn next(rng: &mut impl Rng, corpus: &[Vec<u8>], max_len: usize) -> Vec<u8> {
    if corpus.is_empty() || rng.random_ratio(1, 16) {
        let mut fresh = vec![0; rng.random_range(0..=max_len)];
        rng.fill_bytes(&mut fresh);
        return fresh;
    }
    let mut input = corpus[rng.random_range(0..corpus.len())].clone();
    for _ in 0..1 << rng.random_range(0..4) {
        let other = &corpus[rng.random_range(0..corpus.len())];
        change(rng, &mut input, other, max_len);
    }
    input.truncate(max_len);
    input
}

/// One small change.
fn change(rng: &mut impl Rng, input: &mut Vec<u8>, other: &[u8], max_len: usize) {
    if input.is_empty() {
        input.push(rng.random());
        return;
    }
    let at = rng.random_range(0..input.len());
    let len = 1 + rng.random_range(0..32).min(input.len() - at - 1);
    match rng.random_range(0..10) {
        0 => input[at] ^= 1 << rng.random_range(0..8),
        1 => input[at] = rng.random(),
        2 => input[at] = input[at].wrapping_add(rng.random_range(1..=16)),
        3 => overwrite(input, at & !3, &EDGES[rng.random_range(0..EDGES.len())].to_le_bytes()),
        4 => overwrite(input, at, &EDGES[rng.random_range(0..EDGES.len())].to_le_bytes()),
        5 => drop(input.drain(at..at + len)),
        6 if input.len() + len <= max_len => {
            let again = input[at..at + len].to_vec();
            let to = rng.random_range(0..=input.len());
            input.splice(to..to, again);
        }
        7 if input.len() + len <= max_len => {
            let mut fresh = vec![0; len];
            rng.fill_bytes(&mut fresh);
            input.splice(at..at, fresh);
        }
        8 if !other.is_empty() => {
            let from = rng.random_range(0..other.len());
            let len = rng.random_range(1..=other.len() - from);
            overwrite(input, at, &other[from..from + len]);
        }
        _ => input[at..at + len].reverse(),
    }
}

/// Writes over `input` from `at` on, as far as it goes.
fn overwrite(input: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in input[at..].iter_mut().zip(bytes) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::next;

    #[test]
    fn inputs_stay_within_the_longest_length() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let corpus = [vec![], vec![1], vec![7; 64], (0..64).collect()];
        let longest = (0..10_000).map(|_| next(&mut rng, &corpus, 64).len()).max();
        assert_eq!(longest, Some(64));
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let make = || {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
            (0..100).map(|_| next(&mut rng, &[vec![1, 2, 3]], 64)).collect::<Vec<_>>()
        };
        assert_eq!(make(), make());
    }
}
