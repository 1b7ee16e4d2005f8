//! mdfsck.
fn main() {}
