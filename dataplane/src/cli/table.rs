//! What people read: columns as wide as what stands in them.

/// A line for the head and one for each row, with two spaces between the columns.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let head = head.map(str::to_owned);
    let all = || std::iter::once(&head).chain(rows);
    let width = |i: usize| all().map(|row| row[i].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let row = ["long", "x", "a"].map(str::to_owned);
        assert_eq!(table(["ID", "X", "FOR"], &[row]), "ID    X  FOR\nlong  x  a\n");
    }
}
