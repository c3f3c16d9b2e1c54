//! `ministat`'s plot in characters.

use super::{DataSet, render::Symbols, render::line};
use crate::StatsError;

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plot {
    /// Columns between the frame's sides, at least 2.
    pub width: u16,
    /// One line of mean and deviation per set instead of one for all (`ministat -s`).
    pub separate_bars: bool,
    /// Most rows of dots to draw; `None` draws all of them, as `ministat` does. Higher stacks are cut, and a line says by how much.
    pub max_rows: Option<u16>,
}

impl Default for Plot {
    /// What `ministat` does when it does not write to a terminal.
    fn default() -> Self {
        Self { width: 74, separate_bars: false, max_rows: None }
    }
}

/// The common horizontal axis.
struct Axis {
    origin: f64,
    step: f64,
    width: usize,
}

impl Axis {
    /// `None` when all values and deviations fall on one point.
    fn over(sets: &[DataSet], width: usize) -> Option<Self> {
        let ends = sets.iter().flat_map(|set| {
            let (average, stddev) = (set.moments().average, set.moments().stddev());
            [set.min(), set.max(), average - stddev, average + stddev]
        });
        let (low, high) =
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
        let span = high - low;
        let step = span / (width as f64 - 1.0);
        (span > 0.0).then_some(Self { origin: low - 0.5 * step, step, width })
    }

    /// Column of a value; truncation towards zero as C converts.
    fn column(&self, value: f64) -> usize {
        (((value - self.origin) / self.step) as usize).min(self.width - 1)
    }
}

impl Plot {
    /// Draws the sets, frame included.
    ///
    /// # Errors
    /// A width below 2, which leaves no axis.
    pub fn draw(&self, sets: &[DataSet]) -> Result<String, StatsError> {
        let width = usize::from(self.width);
        if width < 2 {
            return Err(StatsError::Setting {
                name: "plot width",
                value: width as f64,
                expected: "at least 2",
            });
        }
        let Some(axis) = Axis::over(sets, width) else {
            return Ok("[no plot, span is zero width]\n".to_owned());
        };
        let frame = format!("+{}+", "-".repeat(width));
        let mut text = String::new();
        line(&mut text, &frame);
        let rows = dots(sets, &axis);
        let shown = self.max_rows.map_or(rows.len(), |most| rows.len().min(usize::from(most)));
        if shown < rows.len() {
            // The stacks that go on are those which fill the top row drawn.
            let cut = rows.len() - shown;
            line(&mut text, &format!("|{:<width$.width$}|", format!("... {cut} more rows")));
        }
        for cells in rows[..shown].iter().rev() {
            let row: String = cells.iter().map(|&cell| symbol(cell)).collect();
            line(&mut text, &format!("|{row}|"));
        }
        for bar in self.bars(sets, &axis) {
            let row: String = bar.into_iter().collect();
            line(&mut text, &format!("|{row}|"));
        }
        line(&mut text, &frame);
        Ok(text)
    }

    fn bars(self, sets: &[DataSet], axis: &Axis) -> Vec<Vec<char>> {
        let lines = if self.separate_bars { sets.len() } else { 1 };
        let mut bars = vec![vec![' '; axis.width]; lines];
        for (index, set) in sets.iter().enumerate() {
            let bar = &mut bars[if self.separate_bars { index } else { 0 }];
            let (average, stddev) = (set.moments().average, set.moments().stddev());
            let (from, to) = (axis.column(average - stddev), axis.column(average + stddev));
            bar[to] = '|';
            bar[from] = '|';
            for cell in bar.iter_mut().take(to).skip(from + 1).filter(|cell| **cell == ' ') {
                *cell = '_';
            }
            bar[axis.column(set.median())] = 'M';
            bar[axis.column(average)] = 'A';
        }
        bars
    }
}

/// Stacks of dots, bottom row first: a cell is the bitwise *or* of the numbers (from 1) of the sets in it.
///
/// The height is that of the *last* set's tallest stack, and a set taller than the one before it clears what stood above: so `ministat`
/// does it, and a plot is compared with one in a commit message only if it does the same.
fn dots(sets: &[DataSet], axis: &Axis) -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for (number, set) in (1_u8..).zip(sets) {
        let mut stacked = vec![0_usize; axis.width];
        let columns: Vec<usize> = set.sorted().iter().map(|&value| axis.column(value)).collect();
        for &column in &columns {
            stacked[column] += 1;
        }
        let height = stacked.iter().copied().max().unwrap_or(0);
        rows.resize(height, vec![0; axis.width]);
        for (column, &count) in stacked.iter().enumerate() {
            for row in rows.iter_mut().take(count) {
                row[column] |= number;
            }
        }
    }
    rows
}

/// Set number to character; sets that share a cell show the symbol of their numbers' *or*, so x and + make *.
fn symbol(cell: u8) -> char {
    match cell {
        0 => ' ',
        number => Symbols::ALL.get(usize::from(number) - 1).copied().unwrap_or('?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_equal_values_in_at_most_four_rows_say_how_many_rows_are_missing() {
        let mut values = vec![1.0; 30];
        values.push(2.0);
        let set = DataSet::new("a", &values).unwrap();
        let height = |max_rows| {
            Plot { width: 40, max_rows, ..Plot::default() }.draw(std::slice::from_ref(&set)).unwrap()
        };
        let cut = height(Some(4));
        // Frame, the line of what is missing, four rows, the bar, frame.
        assert_eq!(cut.lines().count(), 8, "{cut}");
        assert!(cut.lines().nth(1).unwrap().starts_with("|... 26 more rows "), "{cut}");
        assert!(cut.lines().all(|line| line.len() == 42), "{cut}");
        assert_eq!(height(None).lines().count(), 33);
        assert_eq!(height(Some(30)), height(None));
    }
}
