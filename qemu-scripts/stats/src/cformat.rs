//! C's `%g`, which `ministat` prints with.

/// `value` as `printf("%.{precision}g")` writes it in glibc: at most `precision` significant digits, scientific notation
/// outside 10⁻⁴ … 10^precision, no trailing zeros.
///
/// Rust rounds decimal output exactly as glibc does (ties of the exact binary value to even); only the choice of notation
/// and the trimming have to be added.
pub(crate) fn general(value: f64, precision: usize) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_nan() {
        return format!("{sign}nan");
    }
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let precision = precision.max(1);
    // The exponent after rounding decides: 999999.7 with six digits is 1e+06.
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match usize::try_from(precision as i64 - 1 - i64::from(exponent)) {
        Ok(decimals) if exponent >= -4 => trim(&format!("{value:.decimals$}")).to_owned(),
        _ => {
            let direction = if exponent < 0 { '-' } else { '+' };
            format!("{}e{direction}{:02}", trim(mantissa), exponent.unsigned_abs())
        }
    }
}

fn trim(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::general;

    /// Expected texts were printed by glibc.
    #[test]
    fn texts_equal_those_of_glibc() {
        for (value, precision, text) in [
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (100_000.0, 6, "100000"),
            (999_999.5, 6, "1e+06"),
            (999_999.4, 6, "999999"),
            (0.0001, 6, "0.0001"),
            (0.000_099_999_94, 6, "9.99999e-05"),
            (0.000_099_999_996, 6, "0.0001"),
            (1.5e300, 8, "1.5e+300"),
            (-12.5, 8, "-12.5"),
            (2.5e-7, 6, "2.5e-07"),
            (99_999_999.5, 8, "1e+08"),
            (0.5, 1, "0.5"),
            (2.5, 1, "2"),
            (3.5, 1, "4"),
            (f64::INFINITY, 6, "inf"),
            (f64::NEG_INFINITY, 6, "-inf"),
        ] {
            assert_eq!(general(value, precision), text, "{value:?} with {precision} digits");
        }
    }
}
