//! What a case has reached: the harness's stand-in for code coverage.

/// Named members, which the report lists.
const NAMED: usize = 128;
/// Words of the set: the named members, then a hashed part for whatever has no name.
const WORDS: usize = 18;

/// A set of things that a case made happen: an error of some kind, an event, a counter that passed a power of two.
/// An input that reaches something new is kept and changed further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reached {
    words: [u64; WORDS],
}

impl Reached {
    /// Adds the member that [`Target::labels`](crate::Target::labels) names at `label`.
    pub fn name(&mut self, label: usize) {
        debug_assert!(label < NAMED);
        self.set(label % NAMED);
    }

    /// Adds a member without a name, such as a pair of states.
    pub fn hash(&mut self, value: u64) {
        // Fibonacci hashing: the upper bits of the product are the mixed ones.
        let hashed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        self.set(NAMED + hashed as usize);
    }

    /// Adds that the counter `which` had about `count`, in powers of two. From 256 on all counts are alike: to reward
    /// still more would fill the corpus with loops.
    pub fn count(&mut self, which: u8, count: u64) {
        let count = count.min(256);
        self.hash(u64::from(which) << 8 | u64::from(64 - count.leading_zeros()));
    }

    /// Whether the label is a member.
    #[must_use]
    pub fn has(&self, label: usize) -> bool {
        label < NAMED && self.words[label / 64] & (1 << (label % 64)) != 0
    }

    /// Takes in all members of `other`; says whether one of them was new.
    pub fn join(&mut self, other: &Self) -> bool {
        let before = *self;
        for (word, more) in self.words.iter_mut().zip(other.words) {
            *word |= more;
        }
        *self != before
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn set(&mut self, member: usize) {
        self.words[member / 64] |= 1 << (member % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::Reached;

    #[test]
    fn joining_says_whether_something_was_new() {
        let mut all = Reached::default();
        let mut one = Reached::default();
        one.name(127);
        one.hash(u64::MAX);
        one.count(3, 0);
        assert!(all.join(&one));
        assert!(!all.join(&one));
        assert!(all.has(127) && !all.has(0));
        assert_eq!(all.len(), 3);
    }
}
