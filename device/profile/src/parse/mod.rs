//! From TOML text to a [`Profile`].
//!
//! The parsed tree is walked by hand instead of through derived types, because every refusal must name the line,
//! the column and the nearest valid word; a derived reader only knows that "some variant did not match".

mod delay;
mod doc;
mod quantity;

use std::time::Duration;

use execlab_abi::engine::Engine;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{Bus, Distribution, MAX_BUS_NS, MAX_DELAY_NS, Point, Profile, ProfileError};
use doc::{Doc, Key, Value};

/// Keys of the file itself.
const KEYS: &[&str] = &["name", "description", "source", "bus", "delay", "engine"];
/// Keys of `[bus]`.
const BUS_KEYS: &[&str] = &["mmio_read", "mmio_write", "forcewake"];
/// Keys of `[engine.X]`.
const ENGINE_KEYS: &[&str] = &["delay"];

impl Profile {
    /// Reads a profile. `file` is what errors call the text; without a `name` key, its stem names the profile.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] with the place of the first offence and the reason.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        let doc = Doc { text, file };
        let root = DeTable::parse(text).map_err(|e| {
            // The reader's span for a text that ends too soon is its end.
            doc.fail(e.span().unwrap_or(text.len()..text.len()), e.message())
        })?;
        let stem = std::path::Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned());
        let mut profile = Self { name: stem.unwrap_or_default(), ..Self::default() };
        for (key, value) in doc::entries(root.get_ref()) {
            match key.get_ref().as_ref() {
                "name" => profile.name = name(doc, value)?,
                "description" => profile.description = doc.string(value)?.to_owned(),
                "source" => profile.source = doc.string(value)?.to_owned(),
                "bus" => profile.bus = bus(doc, value)?,
                "delay" => delays(doc, "", doc.table(value)?, &mut profile.delays)?,
                "engine" => engines(doc, doc.table(value)?, &mut profile)?,
                _ => return Err(doc.unknown_key(key, KEYS)),
            }
        }
        Ok(profile)
    }
}

fn name(doc: Doc<'_>, value: &Spanned<DeValue<'_>>) -> Result<String, ProfileError> {
    let name = doc.string(value)?;
    // It ends up in file names and `key=value` lines.
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        let reason = "a name is 1 to 64 letters, digits, `-`, `_` or `.`";
        return Err(doc.fail(value.span(), reason));
    }
    Ok(name.to_owned())
}

fn bus(doc: Doc<'_>, value: &Value<'_>) -> Result<Bus, ProfileError> {
    let mut bus = Bus::default();
    for (key, value) in doc::entries(doc.table(value)?) {
        let cost = match key.get_ref().as_ref() {
            "mmio_read" => &mut bus.read,
            "mmio_write" => &mut bus.write,
            "forcewake" => &mut bus.forcewake,
            _ => return Err(doc.unknown_key(key, BUS_KEYS)),
        };
        *cost = Duration::from_nanos(doc.quantity(value, MAX_BUS_NS)?);
    }
    Ok(bus)
}

fn engines(doc: Doc<'_>, table: &DeTable<'_>, profile: &mut Profile) -> Result<(), ProfileError> {
    for (key, value) in doc::entries(table) {
        let Some(engine) = Engine::from_name(key.get_ref()) else {
            return Err(doc.unknown("engine", key, &Engine::ALL.map(Engine::name)));
        };
        for (key, value) in doc::entries(doc.table(value)?) {
            match key.get_ref().as_ref() {
                "delay" => delays(doc, "", doc.table(value)?, &mut profile.overrides[engine.index()])?,
                _ => return Err(doc.unknown_key(key, ENGINE_KEYS)),
            }
        }
    }
    Ok(())
}

/// Reads one table of delays into `out`. `prefix` holds the words already read: TOML takes an unquoted
/// `elsp.accept` for a table in a table, and it is accepted as the same point.
fn delays(
    doc: Doc<'_>,
    prefix: &str,
    table: &DeTable<'_>,
    out: &mut [Option<Distribution>; Point::COUNT],
) -> Result<(), ProfileError> {
    for (key, value) in doc::entries(table) {
        let full = format!("{prefix}{}", key.get_ref());
        if let Some(point) = Point::from_name(&full) {
            if out[point.index()].is_some() {
                return Err(doc.fail(key.span(), format!("`{full}` is given twice")));
            }
            out[point.index()] = Some(delay::read(doc, value, MAX_DELAY_NS)?);
        } else if let (true, DeValue::Table(inner)) = (prefix.is_empty(), value.get_ref()) {
            let head = format!("{full}.");
            if !Point::ALL.iter().any(|p| p.name().starts_with(&head)) {
                return Err(unknown_point(doc, key, &full));
            }
            delays(doc, &head, inner, out)?;
        } else {
            return Err(unknown_point(doc, key, &full));
        }
    }
    Ok(())
}

fn unknown_point(doc: Doc<'_>, key: &Key<'_>, full: &str) -> ProfileError {
    doc.unknown_at(key.span(), "point", full, &Point::ALL.map(Point::name))
}
