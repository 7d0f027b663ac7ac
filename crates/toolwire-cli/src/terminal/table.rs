//! Columns of text, as wide as they need to be.

use std::fmt;

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthStr;

/// What is between two columns.
const GAP: &str = "  ";
/// The greatest width of a column: a cell that is wider than that widens no other.
pub(crate) const MAX_COLUMN: usize = 200;

/// Rows of cells, lined up. Cells may have colours and must not have line breaks.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table whose first row is this.
    pub(crate) fn headed(cells: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut table = Self::default();
        table.row(cells);
        table
    }

    /// Lines these columns up on their right side, as numbers are.
    pub(crate) fn right(mut self, columns: &[usize]) -> Self {
        self.right = columns.to_vec();
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
        (0..columns).map(|column| width(column).unwrap_or_default().min(MAX_COLUMN)).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let mut line = String::new();
            for (column, (cell, width_of_column)) in row.iter().zip(&widths).enumerate() {
                let fill = " ".repeat(width_of_column.saturating_sub(width(cell)));
                let gap = if column == 0 { "" } else { GAP };
                let cells = if self.right.contains(&column) { [&fill, cell] } else { [cell, &fill] };
                line.push_str(gap);
                line.extend(cells.map(String::as_str));
            }
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

/// How many columns of the terminal a text takes.
pub(crate) fn width(text: &str) -> usize {
    strip_str(text).to_string().width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::headed(["NAME", "TOOLS", "NOTE"]).right(&[1]);
        table.row(["\u{1b}[31mé\u{1b}[0m", "7", ""]);
        table.row(["日本", "12", "wide"]);
        let plain = strip_str(&table.to_string()).to_string();
        assert_eq!(plain, "NAME  TOOLS  NOTE\né         7\n日本     12  wide");
    }

    #[test]
    fn a_very_wide_cell_does_not_widen_the_others() {
        let mut table = Table::default();
        table.row(["x".repeat(1000), "end".to_owned()]);
        table.row(["y", "end"]);
        let lengths: Vec<usize> = table.to_string().lines().map(str::len).collect();
        assert_eq!(lengths, [1005, MAX_COLUMN + 5]);
    }
}
