use super::*;
use crate::ast::*;
use crate::lex::lex;
use crate::source::SourceMap;

fn read(text: &str) -> (Program, Vec<Diagnostic>) {
    let mut map = SourceMap::new();
    let file = map.add("t.conc", text.to_owned()).unwrap();
    let mut diagnostics = Diagnostics::default();
    let lexed = lex(file, &mut diagnostics);
    let program = parse(file, lexed, &mut diagnostics);
    (program, diagnostics.into_sorted())
}

fn good(text: &str) -> Program {
    let (program, wrong) = read(text);
    assert!(wrong.is_empty(), "{text}: {wrong:?}");
    program
}

fn bad(text: &str) -> String {
    let wrong = read(text).1;
    let texts: Vec<_> = wrong.into_iter().map(|it| it.text).collect();
    texts.join("; ")
}

/// The statements of a script with every bracket that the parser understood.
fn shape(text: &str) -> String {
    let program = good(text);
    let shown = program.parts.iter().map(|part| match part {
        Part::Stmt(stmt) => stmt_shape(stmt),
        Part::Item(_) => "item".to_owned(),
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn stmt_shape(stmt: &Stmt) -> String {
    match &stmt.kind {
        StmtKind::Expr(expr) => show(expr),
        StmtKind::Let { value, .. } => {
            format!("let {}", value.as_ref().map(show).unwrap_or_default())
        }
        StmtKind::Mock(config) => format!("mock {}", config.name.text),
    }
}

fn all(list: &[Expr]) -> String {
    list.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn maybe(expr: Option<&Expr>) -> String {
    expr.map(show).unwrap_or_default()
}

fn block(block: &Block) -> String {
    let mut parts: Vec<_> = block.stmts.iter().map(|it| stmt_shape(it) + ";").collect();
    parts.extend(block.tail.as_ref().map(show));
    format!("{{{}}}", parts.join(" "))
}

fn call(call: &Call) -> String {
    let one = |it: &Argument| {
        let name = it.name.as_ref().map(|name| format!("{}:", name.text));
        name.unwrap_or_default() + &show(&it.value)
    };
    call.arguments.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn show(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Nil => "nil".to_owned(),
        ExprKind::Str(text) => format!("{text:?}"),
        ExprKind::Text(pieces) => {
            let pieces = pieces.iter().map(|piece| match piece {
                TextPiece::Text(text) => text.clone(),
                TextPiece::Expr(expr) => format!("${{{}}}", show(expr)),
            });
            format!("\"{}\"", pieces.collect::<String>())
        }
        ExprKind::Path(path) => path.text(),
        ExprKind::Generic(path, types) => format!("{}<{}>", path.text(), types.len()),
        ExprKind::Struct(lit) => format!("{}{{{}}}", lit.path.text(), lit.fields.len()),
        ExprKind::Paren(inner) => show(inner),
        ExprKind::Tuple(list) => format!("(tuple {})", all(list)),
        ExprKind::Array(list) => format!("[{}]", all(list)),
        ExprKind::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| match key {
                MapKey::Name(name) => format!("{}={}", name.text, show(value)),
                MapKey::Expr(key) => format!("({})={}", show(key), show(value)),
            });
            format!("#{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
        ExprKind::Closure(closure) => format!("|{}| {}", closure.params.len(), show(&closure.body)),
        ExprKind::Block(inner) => block(inner),
        ExprKind::If(it) => {
            let branches = it.branches.iter();
            let mut parts: Vec<_> = branches
                .map(|(c, b)| format!("if {} {}", show(c), block(b)))
                .collect();
            parts.extend(it.otherwise.as_ref().map(block));
            parts.join(" else ")
        }
        ExprKind::Match(it) => format!("match {} {}", show(&it.subject), it.arms.len()),
        ExprKind::For(it) => format!("for {} {}", show(&it.subject), block(&it.body)),
        ExprKind::While { condition, body } => format!("while {} {}", show(condition), block(body)),
        ExprKind::Loop(body) => format!("loop {}", block(body)),
        ExprKind::Try(it) => format!("try {} {}", block(&it.body), it.catches.len()),
        ExprKind::Listen(it) => format!("listen {} {}", show(&it.subject), it.handlers.len()),
        ExprKind::Return(value) => format!("(return {})", maybe(value.as_deref())),
        ExprKind::Break(value) => format!("(break {})", maybe(value.as_deref())),
        ExprKind::Continue => "continue".to_owned(),
        ExprKind::Throw(value) => format!("(throw {})", show(value)),
        ExprKind::Postfix(it) => it
            .steps
            .iter()
            .fold(show(&it.base), |base, step| match step {
                PostfixOp::Call(it) => format!("{base}({})", call(it)),
                PostfixOp::Field(name) => format!("{base}.{}", name.text),
                PostfixOp::Method {
                    name,
                    types,
                    call: it,
                } => {
                    let types = if types.is_empty() {
                        String::new()
                    } else {
                        format!("<{}>", types.len())
                    };
                    format!("{base}.{}{types}({})", name.text, call(it))
                }
                PostfixOp::Index(index, _) => format!("{base}[{}]", show(index)),
                PostfixOp::Try(_) => format!("({base})?"),
                PostfixOp::Await(_) => format!("({base}).await"),
            }),
        ExprKind::Prefix(ops, inner) => ops.iter().rev().fold(show(inner), |inner, op| {
            let op = match op {
                PrefixOp::Neg => "-",
                PrefixOp::Not => "!",
                PrefixOp::Await => "await ",
            };
            format!("({op}{inner})")
        }),
        ExprKind::Cast(value, types) => format!("({} as {})", show(value), types.len()),
        ExprKind::Binary(it) => it.rest.iter().fold(show(&it.first), |left, (op, right)| {
            format!("({left} {} {})", op.text(), show(right))
        }),
        ExprKind::Range {
            start,
            end,
            inclusive,
        } => {
            let op = if *inclusive { "..=" } else { ".." };
            format!("({}{op}{})", maybe(start.as_deref()), maybe(end.as_deref()))
        }
        ExprKind::Pipe(first, stages) => stages.iter().fold(show(first), |left, stage| {
            let tries = "?".repeat(stage.tries.len());
            format!("({left} |> {}){tries}", show(&stage.target))
        }),
        ExprKind::Assign { op, target, value } => {
            format!("({} {} {})", show(target), op.text(), show(value))
        }
    }
}

#[test]
fn operators_bind_by_rank_and_to_the_left() {
    assert_eq!(shape("a - b - c * d % e;"), "((a - b) - ((c * d) % e))");
    assert_eq!(
        shape("a ?? b || c && d == e < f + g;"),
        "(a ?? (b || (c && (d == (e < (f + g))))))"
    );
    assert_eq!(shape("-a as Int * !b;"), "(((-a) as 1) * (!b))");
    assert_eq!(shape("a + 1..b + 2 == c;"), "(((a + 1)..(b + 2)) == c)");
    assert_eq!(shape("a = b += c;"), "(a = (b += c))");
    assert_eq!(
        shape("x[1..]; x[..2]; x[..]; x[1..=n];"),
        "x[(1..)]; x[(..2)]; x[(..)]; x[(1..=n)]"
    );
    assert_eq!(shape("--a; !!b;"), "(-(-a)); (!(!b))");
}

#[test]
fn a_question_mark_is_postfix_but_ends_a_pipe_so_far() {
    assert_eq!(shape("a |> f()? |> g();"), "((a |> f())? |> g())");
    assert_eq!(shape("a + b()?;"), "(a + (b())?)");
    assert_eq!(shape("await f()?;"), "((await f()))?");
    assert_eq!(shape("-await f()? + 1;"), "((-((await f()))?) + 1)");
    assert_eq!(shape("f().await?;"), "((f()).await)?");
    assert_eq!(shape("a |> f?.g(1)?;"), "(a |> (f)?.g(1))?");
    assert_eq!(shape("a + 1 |> f |> o.m(2);"), "(((a + 1) |> f) |> o.m(2))");
}

#[test]
fn braces_are_structs_maps_or_blocks() {
    assert_eq!(shape("P { x: 1 };"), "P{1}");
    assert_eq!(shape("let a = P {};"), "let P{0}");
    assert_eq!(shape("if P {} x;"), "if P {}; x");
    assert_eq!(shape("if (P {}) == x {}"), "if (P{0} == x) {}");
    assert_eq!(shape("if p == P { x: 1 } { 2 }"), "if (p == P{1}) {2}");
    assert_eq!(
        shape(r#"let m = { "a": 1, b: 2, c(): 3 };"#),
        "let #{(\"a\")=1 b=2 (c())=3}"
    );
    assert_eq!(shape(r#"let m = { "${k}": 1 };"#), "let #{(\"${k}\")=1}");
    assert_eq!(
        shape("let m = { type: 1 }; let b = {}; let c = { a };"),
        "let #{type=1}; let {}; let {a}"
    );
    assert_eq!(shape("for x in xs {}"), "for xs {}");
    assert_eq!(shape("for i in 0.. { break; }"), "for (0..) {(break );}");
}

#[test]
fn a_block_ends_a_statement_unless_nothing_can_begin_there() {
    assert_eq!(shape("if a { 1 } (b);"), "if a {1}; b");
    assert_eq!(shape("{ 1 } [2];"), "{1}; [2]");
    assert_eq!(shape("loop {} -1;"), "loop {}; (-1)");
    assert_eq!(shape("{ f } |x| x;"), "{f}; |1| x");
    assert_eq!(shape("match a { } .len();"), "match a 0.len()");
    assert_eq!(
        shape("if a { 1 } else { 2 } + 3;"),
        "(if a {1} else {2} + 3)"
    );
    assert_eq!(shape("try { f() }?;"), "(try {f()} 0)?");
    assert_eq!(
        shape("let x = if a { 1 } else { 2 } (3);"),
        "let if a {1} else {2}(3)"
    );
}

#[test]
fn keywords_are_names_where_nothing_else_can_stand() {
    assert_eq!(shape("r.model.type(match: 1);"), "r.model.type(match:1)");
    good("schema S { type: String, pub in?: Int } model M { memory: m, provider: x }");
    good("tool T { model: \"x\", fn: 1, pub fn f() {} } mcp S { type: 1 }");
    assert!(bad("let type = 1;").starts_with("expected a pattern"));
    assert!(bad("fn match() {}").starts_with("expected the name of a function, found the keyword"));
}

#[test]
fn types_between_angles_are_told_from_comparing() {
    assert_eq!(shape("m.f<A>(x);"), "m.f<1>(x)");
    assert_eq!(shape("m.f < a;"), "(m.f < a)");
    assert_eq!(
        shape("std::json::parse_as<S>(t);"),
        "std::json::parse_as<1>(t)"
    );
    assert_eq!(shape("a < b;"), "(a < b)");
    assert_eq!(shape("let a: Array<Array<Int>>= x;"), "let x");
    good("fn f(a: fn(Int, (A, B)) -> Map<String, \"a\" | \"b\">) {}");
}

#[test]
fn statements_patterns_and_declarations() {
    good("let (a, mutable) = x; let [h, ..t] = y; let x;");
    good(
        "match v { 1 | -2 => a, 1..=5 => b, \"s\" => c, Ok(E::A(x)) if x => {} P { x, y: 1, .. } => d, n @ 1..2 => e, [] => f, None => g, [..] => h, _ => i }",
    );
    good("for (k, v) in m {} while a {} let c = || 1; let d = |a: Int, b| -> Int a;");
    good("try { a } catch T(e) { b } catch Int { c } catch { d }");
    good("listen A.execute(p) { \"x\" => |m: Map<String, Any>| { m }, \"y\" => |n| {} };");
    good("use a::b; use a::b as c; use a::{b, c,}; mod m; mod n { pub fn f() {} struct S {} }");
    good(
        "trait T { @a fn f(self); fn g(mut self, x: Int) -> Int { x } } impl T for S { pub fn f(self,) {} }",
    );
    good("enum E { A, B(Int, Float), C { x: Int = 1 } } const C: Int = 1; type T = (Int, E);");
    good("pipeline P(x: Int) -> Int { @retry(max: 3) stage a(x: Int) -> Int { x } }");
    good(
        "hashmap h: HashMap<String, Int> = HashMap::new(); memory m: Memory = Memory::new(3); ledger l: Ledger = Ledger::new();",
    );
    good("@test fn t() { mock M { response: \"x\" } assert(true); mock N { error: \"y\" }; }");
    good(
        "tool T { count: Int = 0, description: \"x\", mode: \"a\" | \"b\" = \"a\" @describe(\"d\") pub async fn f(@param(\"p\") a: Int = 1,) {} }",
    );
    good("mcp S { url: \"x\" @describe(\"d\") fn f(a: Int) -> Int; pub fn g() {} }");
    good("agent A { connector: c, timeout: 120 }");
}

#[test]
fn several_mistakes_are_told_in_one_run() {
    assert_eq!(
        bad("fn f() { let = 1; g(; } fn h( { } model { }")
            .matches("expected")
            .count(),
        4
    );
    assert_eq!(
        bad("fn f() { let x = 1 let y = 2 }")
            .matches("`;` after `let`")
            .count(),
        2
    );
    assert_eq!(
        bad("fn f() { 1 +"),
        "this block is not closed; expected an expression, found the end of the file"
    );
    assert_eq!(
        bad("struct S { a Int, b: Int } fn f( {}")
            .matches("expected")
            .count(),
        2
    );
    assert!(bad("a + 1 = 2;").contains("nothing can be assigned"));
    assert!(bad("a |> f() ?? 1;").contains("right side of `|>`"));
    assert!(bad("f(a: 1, 2);").contains("positional argument"));
    assert!(bad("1..2..3;").contains("two ends"));
    assert!(bad("fn f() { fn g() {} }").contains("expected a statement"));
    assert!(bad("} } fn f() {}").starts_with("expected an expression"));
}

#[test]
fn nesting_is_bounded() {
    for piece in [
        "(",
        "[",
        "{",
        "{a:",
        "-(",
        "f(",
        "if a {",
        "match a { _ =>",
        "|x| ",
        "a = ",
        "\"${",
        "return ",
        "x: ",
        "try {",
        "await (",
        "a[",
        "loop {",
    ] {
        let text = format!("fn f() {{ {}", piece.repeat(100_000));
        assert!(!read(&text).1.is_empty(), "{piece}");
    }
    for piece in ["Array<", "(", "fn(", "fn() -> "] {
        assert!(
            bad(&format!("type T = {}", piece.repeat(100_000))).contains("nests deeper"),
            "{piece}"
        );
    }
    for piece in ["[", "(", "Some(", "P { x: ", "a @ "] {
        assert!(
            bad(&format!("let {}", piece.repeat(100_000))).contains("nests deeper"),
            "{piece}"
        );
    }
    assert!(bad(&"mod a {".repeat(10_000)).contains("nests deeper"));
}

#[test]
fn long_chains_are_flat() {
    let count = 50_000;
    good(&format!("let x = a{};", " + a".repeat(count)));
    good(&format!("let x = a{};", ".b()?[1]".repeat(count)));
    good(&format!("let x = {}a;", "-!".repeat(count)));
    good(&format!("let x = a{};", " |> f()".repeat(count)));
    good(&format!("let x = a{};", " as Int".repeat(count)));
    good(&format!("if a {{}} {}", "else if b {}".repeat(count)));
    good(&format!("type T = {}\"a\";", "\"a\" | ".repeat(count)));
}
