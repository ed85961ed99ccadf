//! Reading tables: one program, which is linked once and whose tests run side by side.

mod bad_input;
mod files;
mod formats;
mod mistakes;
mod shipped;
mod site_rows;
