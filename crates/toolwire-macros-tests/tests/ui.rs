//! The messages of the compiler for right and wrong uses of the attributes.
//!
//! The messages are pinned in `ui/fail/*.stderr`; `TRYBUILD=overwrite` writes them anew.

#[test]
fn right_use_compiles_and_runs_and_wrong_use_gives_one_clear_error() {
    // One project for both: trybuild builds the dependencies of each project.
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
