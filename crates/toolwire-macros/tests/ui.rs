//! What the compiler says to somebody who uses the attributes, rightly or wrongly.
//!
//! The messages are pinned in `ui/fail/*.stderr`; `TRYBUILD=overwrite` writes them anew.

#[test]
fn right_use_compiles_and_runs() {
    trybuild::TestCases::new().pass("tests/ui/pass/*.rs");
}

#[test]
fn wrong_use_gives_one_clear_error() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
