//! The examples of the attributes are all compiled.

use std::fs;

#[test]
fn every_example_is_a_documentation_test() {
    let root = env!("CARGO_MANIFEST_DIR");
    let tests = fs::read_to_string(format!("{root}/src/lib.rs")).unwrap();
    let examples = fs::read_dir(format!("{root}/../toolwire-macros/docs")).unwrap();
    let names: Vec<String> =
        examples.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.is_empty());
    for name in names {
        assert!(tests.contains(&format!("/docs/{name}\")")), "{name} is not in src/lib.rs");
    }
}
