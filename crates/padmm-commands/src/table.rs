//! Tables without lines, as every command prints them.

use comfy_table::{CellAlignment, Row, Table, presets};

/// A table with this header and without lines.
pub fn plain(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Lets the cells of these columns, counted from 0, end where the column ends, so that digits stand below each other.
pub fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
