//! Each mistake is reported on the words that are wrong, with what to write instead. One file per
//! mistake, named for it; only errors of the macro itself, because the compiler words its own anew
//! with every release. `TRYBUILD=overwrite cargo test -p haft --test ui` writes the expectations.

#[test]
fn every_mistake_is_reported_where_it_stands_and_a_strict_crate_compiles() {
    // One set of cases, because each would build the dependencies for itself.
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}
