//! Every code of the language's reference: a program that earns it, and one beside it that does not.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use haft_concerto::manifest::Manifest;
use haft_concerto::{Connections, Options, Source, check};

fn options() -> Options {
    Options {
        connections: Connections::Known(vec!["desk".to_owned()]),
        ..Options::default()
    }
}

fn codes(text: &str) -> Vec<String> {
    let checked = check(&Source::new("t.conc", text), &options());
    let codes = checked.diagnostics.iter().map(|it| it.code.to_string());
    codes.collect()
}

#[track_caller]
fn earns(code: &str, text: &str) {
    assert_eq!(codes(text), [code], "{text}");
}

#[track_caller]
fn fine(text: &str) {
    let checked = check(&Source::new("t.conc", text), &options());
    assert_eq!(checked.render(), "", "{text}");
}

#[test]
fn e001_e002_what_cannot_be_read() {
    earns("E001", "let a = 99999999999999999999; println(a);");
    earns("E002", "let = 1;");
}

#[test]
fn e010_undefined_names() {
    earns("E010", "println(nobody);");
    earns("E010", "nobody();");
    earns("E010", "std::math::abss(1);");
    earns("E010", "use std::nothing; println(1);");
    earns("E010", "let p = P { x: 1 }; println(p);");
    earns("E010", "struct P { x: Int } println(P { y: 1 });");
    earns("E010", "enum E { A } match E::A { E::B => 1, _ => 2 }");
    earns("E010", "fn f() { self.x; } f();");
    earns("E010", "{ let a = 1; println(a); } println(a);");
    earns("E010", "mod missing;");
    earns("E010", "impl Nobody { fn f(self) {} }");
    earns(
        "E010",
        "model M { provider: desk } M.execute_with_schema<Nothing>(\"x\");",
    );
    earns("E010", "tool T { fn f() {} } T.g();");
    fine("fn f() { g(); } fn g() {} mod m { pub fn h() { top(); } } fn top() {} f(); m::h();");
    fine(
        "use std::json; use std::string::{trim, len}; println(json::parse(trim(\"1\")), len(\"a\"));",
    );
    fine("use std::collections::Set; println(Set::from([1]).len());");
    fine(
        "trait Named { fn name(self) -> String { \"x\" } } struct P {} impl Named for P {} println(P::name(P {}), P::Named::name(P {}), Named::name(P {}));",
    );
    fine(
        "type Q = P; struct P { x: Int } impl P { fn new() -> P { P { x: 1 } } } println(Q::new());",
    );
}

#[test]
fn e011_things_that_are_there_twice() {
    earns("E011", "fn f() {} fn f() {} f();");
    earns("E011", "struct S { a: Int, a: Int }");
    earns("E011", "fn f(_a: Int, _a: Int) {} f(1, 2);");
    earns("E011", "enum E { A, A }");
    earns("E011", "model M { provider: desk, provider: desk }");
    fine("mod a { pub fn f() {} } mod b { pub fn f() {} } a::f(); b::f();");
}

#[test]
fn e012_what_does_not_change() {
    earns("E012", "let a = 1; a = 2; println(a);");
    earns("E012", "const C: Int = 1; C = 2;");
    earns("E012", "let a = [1]; a[0] = 2; println(a);");
    earns("E012", "let a = [1]; a.push(2);");
    earns("E012", "fn f(a: Int) { a += 1; } f(1);");
    earns(
        "E012",
        "struct C { n: Int } impl C { fn bump(mut self) { self.n += 1; } } let c = C { n: 0 }; c.bump();",
    );
    earns(
        "E012",
        "struct C { n: Int } impl C { fn bump(self) { self.n += 1; } } println(C { n: 1 });",
    );
    earns("E012", "let a; a = 1; a = 2; println(a);");
    fine("let mut a = 1; a += 2; println(a); let b; b = 1; println(b);");
    fine("let a; if true { a = 1; } else { a = 2; } println(a);");
    fine("let mut g = [[1]]; g[0][0] = 9; g.push([2]); println(g);");
}

#[test]
fn e013_types_that_do_not_fit() {
    earns("E013", "let a: Int = \"x\"; println(a);");
    earns("E013", "let mut a = 1; a = \"x\"; println(a);");
    earns("E013", "fn f() -> Int { return \"x\"; } f();");
    earns("E013", "fn f() -> Int { \"x\" } f();");
    earns("E013", "const C: Int = 1.5; println(C);");
    earns("E013", "let a: Array<Int> = [\"x\"]; println(a);");
    fine(
        "let a: Float = 1; let b: Option<Int> = nil; let c: Result<Int, String> = 1; println(a, b, c);",
    );
    fine(
        "let a: Any = 1; let b: Array<Float> = [1, 2]; let m: Map<String, Int> = {}; println(a, b, m);",
    );
    fine("let mut best = nil; best = 3; println(best); let u: \"a\" | \"b\" = \"a\"; println(u);");
}

#[test]
fn e014_operators() {
    earns("E014", "println(\"a\" + 1);");
    earns("E014", "println(true * 2);");
    earns("E014", "println(-\"a\");");
    earns("E014", "println(\"a\" < 1);");
    earns("E014", "for i in 0..\"a\" { println(i); }");
    fine("println(1 + 2.5, \"a\" + \"b\", 1 == \"a\", \"a\" < \"b\", !1, nil && 2, 7 % 2);");
    fine("fn f(x: Any) { println(\"a\" + x, x - 1); } f(1);");
}

#[test]
fn e015_conditions() {
    earns("E015", "if 1 { println(1); }");
    earns("E015", "while \"x\" { break; }");
    earns("E015", "match 1 { x if x => 1, _ => 2 }");
    fine("fn f(x: Any) { if x { println(1); } } f(1);");
}

#[test]
fn e016_how_many_arguments() {
    earns("E016", "fn f(a: Int) { println(a); } f();");
    earns("E016", "fn f(a: Int) { println(a); } f(1, 2);");
    earns("E016", "fn f(a: Int) { println(a); } f(b: 1, a: 2);");
    earns("E016", "fn f(a: Int) { println(a); } f(1, a: 2);");
    earns("E016", "fn f(a: Int) { println(a); } 1 |> f(2);");
    earns("E016", "std::math::abs(1, 2);");
    earns("E016", "enum E { A(Int) } println(E::A(1, 2));");
    earns("E016", "assert_eq(1);");
    earns(
        "E016",
        "tool T { fn f(self, a: Int) { println(a); } } T::f();",
    );
    fine(
        "fn f(a: Int, b: Int = 2, c: Int = 3) { println(a, b, c); } f(1); f(1, c: 4); 1 |> f(2); 1 |> f; f(b: 1, a: 2);",
    );
    fine(
        "struct P { x: Int } impl P { fn m(self, a: Int) { println(self.x, a); } } P::m(P { x: 1 }, 2); let p = P { x: 1 }; p.m(3);",
    );
}

#[test]
fn e017_outside_of_a_loop() {
    earns("E017", "break;");
    earns("E017", "loop { let f = || continue; f(); }");
    fine("loop { if true { break; } else { continue; } }");
}

#[test]
fn e018_nobody_takes_what_is_raised() {
    earns("E018", "throw \"x\";");
    earns("E018", "fn f() { Ok(1)?; } f();");
    earns("E018", "fn f() -> Option<Int> { throw \"x\"; } f();");
    earns(
        "E018",
        "fn f() -> Result<Int, String> { let g = || Ok(1)?; g(); Ok(1) } f();",
    );
    earns("E018", "1 |> Ok()?;");
    fine(
        "fn f() -> Result<Int, String> { throw \"x\"; } fn g() -> Option<Int> { Some(Some(1)?) } println(f(), g());",
    );
    fine("try { throw 1; } catch Int(e) { println(e); } @test fn t() { Ok(1)?; }");
    fine(
        "pipeline P { stage s(x: Int) -> Int { throw x; } } fn f() -> Result<Int, String> { 1 |> Ok()? |> Ok() } println(f());",
    );
}

#[test]
fn e019_await() {
    earns("E019", "fn f() { await 1; } f();");
    earns("E019", "fn f() { g().await; } fn g() {} f();");
    fine(
        "async fn f() { await 1; } tool T { fn m(self) { await 1; } } @test fn t() { await f(); } f();",
    );
}

#[test]
fn e020_for_over_what_has_no_parts() {
    earns("E020", "for x in 5 { println(x); }");
    earns("E020", "for x in Some([1]) { println(x); }");
    fine(
        "for x in [1] { println(x); } for c in \"ab\" { println(c); } for i in 0..3 { println(i); } for (k, v) in {a: 1} { println(k, v); }",
    );
}

#[test]
fn e021_parameters_have_types() {
    earns("E021", "fn f(a) { println(a); } f(1);");
    fine("let f = |a| a; f(1);");
}

#[test]
fn e022_e023_connections() {
    earns("E022", "model M { provider: dsk, base: \"x\" }");
    earns("E023", "model M { base: \"x\" }");
    fine("model M { provider: desk, base: \"x\", temperature: 0, system_prompt: \"a\" + \"b\" }");
    let any = Options {
        connections: Connections::Any,
        ..Options::default()
    };
    assert!(
        check(&Source::new("t.conc", "model M { provider: other }"), &any)
            .diagnostics
            .is_empty()
    );
    let manifest =
        "[project]\nname = \"a\"\n[connections.own]\nprovider = \"mock\"\n[mcp.Web]\nurl = \"x\"\n";
    let manifest = Options {
        manifest: Some(Manifest::read(manifest).unwrap()),
        ..Options::default()
    };
    let text = "model M { provider: own, tools: [Web] } M.with_tools([Web]).execute(\"x\"); Web::find(q: 1);";
    assert!(
        check(&Source::new("t.conc", text), &manifest)
            .diagnostics
            .is_empty()
    );
}

#[test]
fn e024_e025_w004_what_a_model_reads_of_a_tool() {
    earns("E024", "tool T { pub fn f() {} }");
    earns(
        "E025",
        "tool T { @describe(\"d\") @param(\"b\", \"x\") pub fn f(a: Int) { println(a); } }",
    );
    earns(
        "E025",
        "tool T { @describe(\"d\") @param(\"a\") pub fn f(a: Int) { println(a); } }",
    );
    earns(
        "E025",
        "tool T { @describe(\"d\") @param(\"a\", \"x\") pub fn f(@param(\"y\") a: Int) { println(a); } }",
    );
    earns(
        "E025",
        "tool T { @describe(\"d\") pub fn f(@param(1) a: Int) { println(a); } }",
    );
    earns(
        "W004",
        "tool T { @describe(\"d\") pub fn f(@param(\"x\") a: Int, b: Int) { println(a, b); } }",
    );
    fine(
        "tool T { description: \"x\", @describe(\"d\") pub fn f(a: Int) { println(a); } fn g() {} }",
    );
}

#[test]
fn e026_e027_what_is_bound() {
    let given = "tool T { fn f() {} } model M { provider: desk, tools: [T] } fn g() {} ";
    earns("E026", &format!("{given} M.with_tools(T).execute(\"x\");"));
    earns(
        "E026",
        &format!("{given} M.with_tools([\"T\"]).execute(\"x\");"),
    );
    earns(
        "E026",
        &format!("{given} M.with_tools([g]).execute(\"x\");"),
    );
    earns("E026", &format!("{given} M.with_tools().execute(\"x\");"));
    earns(
        "E026",
        &format!("{given} M.without_tools(1).execute(\"x\");"),
    );
    earns("E027", "model M { provider: desk, tools: [Nobody] }");
    earns("E027", "model M { provider: desk, tools: \"T\" }");
    fine(&format!(
        "{given} let ts = [T]; M.with_tools(ts).without_tools().with_tools([]).execute(\"x\");"
    ));
}

#[test]
fn e028_e029_names_on_the_wire() {
    earns("E028", "tool T { fn f() {} } mcp T { url: \"x\" }");
    earns("E028", "mcp a__b { url: \"x\" }");
    earns("E028", "mcp haft { url: \"x\" }");
    let long = "x".repeat(70);
    earns(
        "E029",
        &format!("tool T {{ @describe(\"d\") pub fn {long}() {{}} }}"),
    );
    earns(
        "E029",
        "tool A { @describe(\"d\") pub fn b__c() {} } tool A__b { @describe(\"d\") pub fn c() {} }",
    );
    fine("mcp Web_search { url: \"x\" } tool A { @describe(\"d\") pub fn b() {} fn c() {} }");
}

#[test]
fn e030_e031_tests() {
    earns(
        "E030",
        "model M { provider: desk } fn f() { mock M { response: \"x\" } } f();",
    );
    earns(
        "E030",
        "fn f() {} @test fn t() { mock f { response: \"x\" } }",
    );
    earns("E031", "@test fn t() {} t();");
    earns("E031", "@test fn t(_a: Int) {}");
    earns("E031", "@test fn t() -> Int { 1 }");
    earns("E031", "@expect_fail fn t() {}");
    earns("E031", "@test struct S {}");
    earns("E031", "@test(1) fn t() {}");
    fine(
        "model M { provider: desk } @test(\"x\") @expect_fail(\"y\") fn t() { mock M { error: \"x\" } }",
    );
}

#[test]
fn e032_e033_w003_pipelines() {
    earns("E032", "pipeline P { stage a(x: Int) { x } }");
    earns(
        "E033",
        "pipeline P { stage a(x: Int) -> Int { x } stage b(x: String) -> String { x } }",
    );
    earns(
        "E033",
        "pipeline P(x: String) { stage a(x: Int) -> Int { x } }",
    );
    earns(
        "E033",
        "pipeline P -> String { stage a(x: Int) -> Int { x } }",
    );
    earns("W003", "pipeline P { }");
    fine(
        "pipeline P(x: Int) -> Float { stage a(x: Float) -> Result<Int, String> { println(x); Ok(1) } stage b(x: Float) -> Any { x } }",
    );
}

#[test]
fn e034_statements_beside_main() {
    earns("E034", "fn main() {} println(1);");
    let files = BTreeMap::from([("m.conc".to_owned(), "println(1);".to_owned())]);
    let source = Source::new("t.conc", "mod m;").with(&files);
    let checked = check(&source, &options());
    assert_eq!(checked.diagnostics[0].code.to_string(), "E034");
}

#[test]
fn w001_unused_variables() {
    earns("W001", "let a = 1;");
    earns("W001", "fn f(a: Int) {} f(1);");
    earns("W001", "match 1 { x => 2 }");
    fine("let _a = 1; match 1 { _x => 2 } struct S {} impl S { fn f(self) {} } println(S {});");
}

#[test]
fn w002_a_match_that_leaves_something_out() {
    earns("W002", "match 1 { 1 => 2 }");
    earns("W002", "enum E { A, B } match E::A { E::A => 1 }");
    earns("W002", "match Ok(1) { Ok(x) => x }");
    fine(
        "enum E { A, B } match E::A { E::A => 1, E::B => 2 } match Ok(1) { Ok(x) => x, Err(_) => 0 } match Some(1) { Some(x) => x, None => 0 }",
    );
    fine(
        "match [1] { [] => 0, [h, ..] => h } match true { true => 1, false => 2 } match 1 { 1 => 1, n => n }",
    );
}

#[test]
fn w005_w006_w007_servers_types_agents() {
    earns("W005", "mcp Web { timeout: 3 }");
    earns("W006", "fn f(_a: Strng) {} f(1);");
    earns(
        "W007",
        "agent A { command: \"coder\" } tool T { fn f() {} } A.with_tools([T]).execute(\"x\");",
    );
    earns("W007", "agent A { command: \"coder\", tools: [] }");
    fine(
        "mcp Web { command: \"x\" } agent A { command: \"coder\" } A.with_context(1).execute(\"x\");",
    );
}

#[test]
fn e035_e036_fields_and_constants() {
    earns("W011", "struct P { x: Int } println(P {});");
    earns("W011", "schema S { x: Int, y: Int } println(S { x: 1 });");
    fine("struct P { a: Option<Int>, b: Int = 1, c?: Int } println(P {});");
    earns("E035", "const A: Int = A; println(A);");
    earns("E035", "const A: Int = B; const B: Int = 1; println(A);");
    fine("const B: Int = 1; const A: Int = B; println(A);");
    fine("const A: Any = || B; const B: Int = 1; println(A());");
}

#[test]
fn w008_w009_what_has_no_effect() {
    earns("W008", "@tset fn f() {} f();");
    earns("W008", "@log fn f() {} f();");
    earns("W008", "model M { provider: desk, colour: 1 }");
    earns("W008", "model M { provider: desk, base: \"a\" + \"b\" }");
    fine("@log(\"x\") @retry(5, \"none\") @timeout(3) model M { provider: desk, temperature: 0 }");
    fine("const T: Float = 0.5; model M { provider: desk, temperature: T }");
    fine("model M { provider: desk, system_prompt: \"a ${1 + 1}\" }");
    earns("W009", "fn f() -> Int { 1; } f();");
    fine("fn f() -> Int { return 1; } f();");
    fine("fn f() -> Int { } f();");
}

#[test]
fn types_are_checked_only_where_both_are_known() {
    fine("fn f(x: Any) { println(x); } f(1); f(\"a\"); f([1]);");
    fine("fn f(x: Float) { println(x); } f(1);");
    fine("fn f(x: \"a\" | \"b\") { println(x); } f(\"a\"); let y = \"b\"; f(y);");
    fine("fn f(x: Array<Float>) { println(x); } f([1, 2]); f([]); f([1, 2.5]); f(0..3);");
    fine("fn f(x: Map<String, Int>) { println(x); } f({}); f({ a: 1 }); f(Map::new());");
    fine("struct P { x: Int } fn f(p: P) { println(p.x); } f({ x: 1 }); f(nil);");
    fine("fn f(x: Result<Int, String>) { println(x); } f(1); f(Ok(1)); f(Err(\"a\"));");
    fine(
        "fn f(g: fn(Int) -> Int) { println(g(1)); } f(|x| x + 1); fn h(x: Int) -> Int { x } f(h);",
    );
    fine("let mut x = nil; x = 1; fn f(s: String) { println(s); } f(x);");
    fine("fn f(xs: Array<Int>) { for x in xs { g(x); } } fn g(n: Int) { println(n); } f([1]);");
    fine("tool T { fn f() {} } fn f(t: ToolRef, p: Prompt) { println(t, p); } f(T, \"x\");");
    fine("fn any(x: Any) -> Any { x } fn f(s: String) { println(s); } f(any(1)); f(\"a\".len());");
}

#[test]
fn a_near_name_is_proposed() {
    let text = "fn restock() {} restok();";
    let shown = check(&Source::new("t.conc", text), &options()).render();
    assert!(shown.contains("help: did you mean `restock`?"), "{shown}");
    let shown = check(
        &Source::new("t.conc", "let total = 1; println(totl, total);"),
        &options(),
    )
    .render();
    assert!(shown.contains("help: did you mean `total`?"), "{shown}");
}

#[test]
fn modules_are_files() {
    let files = BTreeMap::from([
        (
            "src/shop.conc".to_owned(),
            "mod parts; pub fn f() -> Int { parts::g() }".to_owned(),
        ),
        (
            "src/parts/mod.conc".to_owned(),
            "pub fn g() -> Int { 1 }".to_owned(),
        ),
    ]);
    let text = "mod shop; use shop::parts::g as h; println(shop::f(), h());";
    let checked = check(&Source::new("src/main.conc", text).with(&files), &options());
    assert_eq!(checked.render(), "");
    let own = BTreeMap::from([("a.conc".to_owned(), "mod a;".to_owned())]);
    let checked = check(&Source::new("a.conc", "mod a;").with(&own), &options());
    assert!(checked.render().contains("includes itself"));
}
