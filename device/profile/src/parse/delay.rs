//! One delay: a constant, or a table with one key that names the kind of distribution.

use super::doc::{self, Doc, Value};
use crate::{Arm, Distribution, ProfileError};
use toml::de::DeValue;

/// The kinds of distribution that a table can name.
const KINDS: &[&str] = &["uniform", "mixture"];
/// Keys of one arm of a mixture.
const ARM_KEYS: &[&str] = &["weight", "delay"];
/// How many mixtures may stand inside one another; more is a mistake, and a draw's cost grows with it.
const MAX_DEPTH: usize = 4;
/// Most arms in one mixture.
const MAX_ARMS: usize = 4096;
/// Largest weight: with 2^53 steps in a random fraction, an arm of weight 1 beside it can still be drawn.
const MAX_WEIGHT: f64 = 1e12;

/// Reads the delay that `value` describes, of at most `max` nanoseconds.
pub(super) fn read(doc: Doc<'_>, value: &Value<'_>, max: u64) -> Result<Distribution, ProfileError> {
    nested(doc, value, max, 0)
}

fn nested(doc: Doc<'_>, value: &Value<'_>, max: u64, depth: usize) -> Result<Distribution, ProfileError> {
    let table = match value.get_ref() {
        DeValue::String(_) => return Ok(Distribution::Constant(doc.quantity(value, max)?)),
        DeValue::Table(table) => table,
        _ => {
            return Err(
                doc.wrong_type(value, "a delay such as \"20us\" or { uniform = [\"20us\", \"30us\"] }")
            );
        }
    };
    let entries = doc::entries(table);
    let Some((kind, body)) = entries.first() else {
        return Err(doc.fail(value.span(), format!("an empty delay; name a kind: {}", KINDS.join(", "))));
    };
    let read = match kind.get_ref().as_ref() {
        "uniform" => uniform(doc, body, max)?,
        "mixture" => mixture(doc, body, max, depth)?,
        _ => return Err(doc.unknown("kind of delay", kind, KINDS)),
    };
    match entries.get(1) {
        None => Ok(read),
        Some((second, _)) if KINDS.contains(&second.get_ref().as_ref()) => {
            let reason = format!("a delay is of one kind: `{}` or `{}`", kind.get_ref(), second.get_ref());
            Err(doc.fail(second.span(), reason))
        }
        Some((second, _)) => Err(doc.unknown("kind of delay", second, KINDS)),
    }
}

fn uniform(doc: Doc<'_>, body: &Value<'_>, max: u64) -> Result<Distribution, ProfileError> {
    let wanted = "the shortest and the longest length, such as [\"20us\", \"30us\"]";
    let Some(bounds) = body.get_ref().as_array() else {
        return Err(doc.wrong_type(body, wanted));
    };
    let mut bounds = bounds.iter();
    let (Some(first), Some(second), None) = (bounds.next(), bounds.next(), bounds.next()) else {
        return Err(doc.fail(body.span(), format!("`uniform` takes {wanted}")));
    };
    let (low, high) = (doc.quantity(first, max)?, doc.quantity(second, max)?);
    if low > high {
        let (low, high) = (super::quantity::shorten(low), super::quantity::shorten(high));
        return Err(doc.fail(first.span(), format!("the shortest length {low} is above the longest {high}")));
    }
    Ok(Distribution::Uniform { low, high })
}

fn mixture(doc: Doc<'_>, body: &Value<'_>, max: u64, depth: usize) -> Result<Distribution, ProfileError> {
    if depth == MAX_DEPTH {
        return Err(doc.fail(body.span(), format!("mixtures are nested more than {MAX_DEPTH} deep")));
    }
    let Some(values) = body.get_ref().as_array() else {
        return Err(doc.wrong_type(body, "an array of { weight = …, delay = … }"));
    };
    if values.is_empty() {
        return Err(
            doc.fail(body.span(), "a mixture of nothing; give at least one { weight = …, delay = … }")
        );
    }
    if values.len() > MAX_ARMS {
        return Err(doc.fail(body.span(), format!("a mixture of more than {MAX_ARMS} arms")));
    }
    let arms = values.iter().map(|value| arm(doc, value, max, depth)).collect::<Result<_, _>>()?;
    Ok(Distribution::Mixture(arms))
}

fn arm(doc: Doc<'_>, value: &Value<'_>, max: u64, depth: usize) -> Result<Arm, ProfileError> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err(doc.wrong_type(value, "{ weight = …, delay = … }"));
    };
    let (mut weight, mut delay) = (None, None);
    for (key, value) in doc::entries(table) {
        match key.get_ref().as_ref() {
            "weight" => weight = Some(read_weight(doc, value)?),
            "delay" => delay = Some(nested(doc, value, max, depth + 1)?),
            _ => return Err(doc.unknown_key(key, ARM_KEYS)),
        }
    }
    match (weight, delay) {
        (Some(weight), Some(delay)) => Ok(Arm { weight, delay }),
        (None, _) => Err(doc.fail(value.span(), "this arm has no `weight`")),
        (_, None) => Err(doc.fail(value.span(), "this arm has no `delay`")),
    }
}

fn read_weight(doc: Doc<'_>, value: &Value<'_>) -> Result<f64, ProfileError> {
    let number = match value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .map(|n| n as f64)
            // Only a sign or more than 64 bits can be left; either is refused below with its own words.
            .unwrap_or(if number.as_str().starts_with('-') { -1.0 } else { f64::INFINITY }),
        DeValue::Float(number) => number.as_str().parse().unwrap_or(f64::NAN),
        _ => return Err(doc.wrong_type(value, "a number above 0")),
    };
    if number.is_nan() {
        return Err(doc.fail(value.span(), "a weight must be a number"));
    }
    if number <= 0.0 {
        return Err(doc.fail(value.span(), "a weight must be above 0; leave the arm out instead"));
    }
    if number > MAX_WEIGHT {
        return Err(doc.fail(value.span(), format!("a weight above {MAX_WEIGHT:e} is absurd")));
    }
    Ok(number)
}
