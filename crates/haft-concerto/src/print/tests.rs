use super::*;

fn pretty(text: &str) -> String {
    format(text).unwrap()
}

#[test]
fn blanks_and_lines_become_the_usual_ones() {
    let text = "fn  f( a:Int,b :Int=2 )->Int{let mut x=a+b;\n\n\n\nif x>1{x}else{2}}";
    let expected = "fn f(a: Int, b: Int = 2) -> Int {\n    let mut x = a + b;\n\n    if x > 1 { x } else { 2 }\n}\n";
    assert_eq!(pretty(text), expected);
}

#[test]
fn comments_stay_where_they_are() {
    let text = "// top\n\nfn f() {\n    // one\n    g(); // two\n    /* three */\n    h();\n    // four\n}\n// five\n";
    assert_eq!(pretty(text), text);
    let text = "let a = [\n    1, // one\n    // two\n    2,\n    // three\n];\n";
    assert_eq!(pretty(text), text);
    let text = "struct P {\n    x: Int, // one\n\n    // two\n    y: Int,\n}\n";
    assert_eq!(pretty(text), text);
}

#[test]
fn a_comment_in_the_middle_is_moved_but_never_lost() {
    for text in [
        "f(a, // one\n b);",
        "let x = 1 + /* one */ 2;",
        "fn f(/* one */ a: Int) {}",
        "if a /* one */ { b } else /* two */ { c }",
        "match a { /* one */ }",
        "use /* one */ a::b;",
    ] {
        let shown = pretty(text);
        assert_eq!(shown.matches("one").count(), 1, "{shown}");
        assert_eq!(pretty(&shown), shown);
    }
}

#[test]
fn long_lines_are_broken() {
    let name = "a".repeat(30);
    let text = format!("let x = f({name}, {name}, {name}, {name});");
    let expected = format!("let x = f(\n    {name},\n    {name},\n    {name},\n    {name},\n);\n");
    assert_eq!(pretty(&text), expected);
    let text = format!("let x = Model.with_memory({name}).with_tools([{name}]).execute({name});");
    let expected = format!(
        "let x = Model\n    .with_memory({name})\n    .with_tools([{name}])\n    .execute({name});\n"
    );
    assert_eq!(pretty(&text), expected);
}

#[test]
fn texts_are_copied() {
    let text =
        "let a = \"\"\"\n  a ${ x+1 }\n\"\"\";\nlet b = r#\"\\n\"#;\nlet c = 0xFF + 1_000;\n";
    assert_eq!(pretty(text), text);
}

#[test]
fn what_cannot_be_read_is_not_changed() {
    assert!(matches!(format("let = 1;"), Err(FormatError::Syntax(_))));
}
