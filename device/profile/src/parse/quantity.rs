//! A length of time with its unit: `"20us"`, `"1.5 ms"`, `"300ns"`, `"2s"`.

/// The units and their length in nanoseconds. Both code points of the letter mu are in use.
const UNITS: &[(&str, u64)] =
    &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("µs", 1_000), ("μs", 1_000)];

/// The units as errors list them.
const UNIT_NAMES: [&str; 4] = ["ns", "us", "ms", "s"];

/// The whole nanoseconds in `text`, in `0..=max`.
///
/// # Errors
/// The reason, ready to be shown.
pub(super) fn nanoseconds(text: &str, max: u64) -> Result<u64, String> {
    let trimmed = text.trim();
    let shown = || trimmed.chars().take(40).collect::<String>().escape_debug().to_string();
    if let Some(rest) = trimmed.strip_prefix('-') {
        return Err(match rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            true => format!("`{}` is negative; a length of time is 0 or more", shown()),
            false => not_a_quantity(&shown()),
        });
    }
    let number_end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..number_end], trimmed[number_end..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || number.ends_with('.') || !digits(fraction) {
        return Err(not_a_quantity(&shown()));
    }
    if unit.is_empty() {
        return Err(format!("`{}` has no unit; write for example `{}us`", shown(), shown()));
    }
    let mut letters = unit.chars();
    if letters.next().is_some_and(|c| "eE".contains(c))
        && letters.next().is_some_and(|c| c.is_ascii_digit() || "+-".contains(c))
    {
        return Err(format!("`{}` has an exponent; write the number out", shown()));
    }
    let Some(&(_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let unit: String = unit.chars().take(40).collect();
        let near = crate::nearest(&unit.to_lowercase(), &UNIT_NAMES)
            .map(|near| format!("did you mean `{near}`?"))
            .unwrap_or_else(|| format!("valid units: {}", UNIT_NAMES.join(", ")));
        return Err(format!("unknown unit `{}`; {near}", unit.escape_debug()));
    };
    let too_long =
        || format!("`{}` is absurd; the longest that makes sense here is {}", shown(), shorten(max));
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let whole = whole.checked_mul(scale).filter(|ns| *ns <= max).ok_or_else(too_long)?;
    let fraction = fraction_of(fraction, scale)
        .ok_or_else(|| format!("`{}` is finer than one nanosecond, the smallest step", shown()))?;
    let total = whole + fraction;
    if total > max { Err(too_long()) } else { Ok(total) }
}

/// The decimals `digits` of a unit of `scale` nanoseconds, `None` if they are no whole number of nanoseconds.
fn fraction_of(digits: &str, scale: u64) -> Option<u64> {
    let mut step = scale;
    let mut total = 0;
    for digit in digits.trim_end_matches('0').bytes() {
        if !step.is_multiple_of(10) {
            return None;
        }
        step /= 10;
        total += u64::from(digit - b'0') * step;
    }
    Some(total)
}

fn not_a_quantity(shown: &str) -> String {
    format!("`{shown}` is not a length of time; write a number and a unit, such as `20us`")
}

/// A length in the largest unit that keeps it whole.
pub(super) fn shorten(ns: u64) -> String {
    let (unit, scale) =
        UNITS[..4].iter().rev().find(|(_, scale)| ns.is_multiple_of(*scale)).unwrap_or(&UNITS[0]);
    format!("{}{unit}", ns / scale)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    const MAX: u64 = crate::MAX_DELAY_NS;

    #[test]
    fn every_unit_is_read_exactly() {
        for (text, ns) in [
            ("0ns", 0),
            ("300ns", 300),
            ("20us", 20_000),
            ("1.5 ms", 1_500_000),
            (" 2s ", 2_000_000_000),
            ("2.5µs", 2_500),
            ("2.5μs", 2_500),
            ("0.000000001s", 1),
            ("1.000ns", 1),
            ("60s", MAX),
            ("00000000000000000001us", 1_000),
        ] {
            assert_eq!(nanoseconds(text, MAX), Ok(ns), "{text}");
        }
    }

    #[test]
    fn each_kind_of_nonsense_has_its_reason() {
        for (text, reason) in [
            ("", "`` is not a length of time; write a number and a unit, such as `20us`"),
            ("us", "`us` is not a length of time; write a number and a unit, such as `20us`"),
            ("1.us", "`1.us` is not a length of time; write a number and a unit, such as `20us`"),
            (".5us", "`.5us` is not a length of time; write a number and a unit, such as `20us`"),
            ("1.2.3us", "`1.2.3us` is not a length of time; write a number and a unit, such as `20us`"),
            ("NaN us", "`NaN us` is not a length of time; write a number and a unit, such as `20us`"),
            ("-inf us", "`-inf us` is not a length of time; write a number and a unit, such as `20us`"),
            ("-5us", "`-5us` is negative; a length of time is 0 or more"),
            ("-0.1us", "`-0.1us` is negative; a length of time is 0 or more"),
            ("20", "`20` has no unit; write for example `20us`"),
            ("20 usec", "unknown unit `usec`; did you mean `us`?"),
            ("20MS", "unknown unit `MS`; did you mean `ms`?"),
            ("1e3us", "`1e3us` has an exponent; write the number out"),
            ("3 weeks", "unknown unit `weeks`; valid units: ns, us, ms, s"),
            ("0.5ns", "`0.5ns` is finer than one nanosecond, the smallest step"),
            ("1.0001us", "`1.0001us` is finer than one nanosecond, the smallest step"),
            ("61s", "`61s` is absurd; the longest that makes sense here is 60s"),
            ("60.000000001s", "`60.000000001s` is absurd; the longest that makes sense here is 60s"),
            (
                "99999999999999999999ns",
                "`99999999999999999999ns` is absurd; the longest that makes sense here is 60s",
            ),
        ] {
            assert_eq!(nanoseconds(text, MAX), Err(reason.to_owned()), "{text}");
        }
    }
}
