//! Tables and aims. An aim that is not met is information, never a failure: the machine may be the reason.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

/// What the project wants a figure to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Aim {
    /// Whether the figure is what we want.
    #[must_use]
    pub fn met_by(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(least) => figure >= least,
            Self::AtMost(most) => figure <= most,
        }
    }

    /// `aim ≥ 3.5: met`.
    #[must_use]
    pub fn verdict(self, figure: f64) -> String {
        let (sign, bound) = match self {
            Self::AtLeast(least) => ('≥', least),
            Self::AtMost(most) => ('≤', most),
        };
        format!("aim {sign} {}: {}", number(bound), if self.met_by(figure) { "met" } else { "not met" })
    }
}

/// An empty table with these headings, as Markdown, which a README can take over; every column but the first is one of numbers.
#[must_use]
pub fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(headings.iter().copied());
    for place in 1..headings.len() {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Three or four digits that mean something, with thousands separated.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => return grouped(value),
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if digits > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `-` where there is nothing to tell.
#[must_use]
pub fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

fn grouped(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (place, digit) in text.chars().enumerate() {
        if place > 0 && (text.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_mean_something() {
        for (value, text) in [
            (1_234_567.8, "1,234,568"),
            (-1000.0, "-1,000"),
            (238.4, "238"),
            (15.72, "15.7"),
            (3.5, "3.5"),
            (0.166_7, "0.17"),
            (0.05, "0.05"),
            (0.0, "0"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn an_aim_is_met_on_its_bound() {
        assert!(Aim::AtLeast(3.5).met_by(3.5) && Aim::AtMost(1.3).met_by(1.3));
        assert_eq!(Aim::AtLeast(3.5).verdict(3.4), "aim ≥ 3.5: not met");
        assert_eq!(Aim::AtMost(0.05).verdict(0.01), "aim ≤ 0.05: met");
    }
}
