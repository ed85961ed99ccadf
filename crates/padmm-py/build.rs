//! An extension module takes Python's symbols from the interpreter that loads it, which some linkers have to be told.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
