//! "Did you mean".

/// The one of `valid` that is spelt most like `word`, if any is close enough to be worth saying.
pub(crate) fn nearest<'v>(word: &str, valid: &[&'v str]) -> Option<&'v str> {
    if word.len() > 64 {
        return None;
    }
    valid
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        // A third of the letters may be wrong, and always two: `usec` for `us`, `elsp_acept` for `elsp.accept`.
        .filter(|(distance, candidate)| {
            *distance <= (candidate.len() / 3).max(2) && *distance < candidate.len().max(word.len())
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
