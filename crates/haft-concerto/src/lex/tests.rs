use super::*;
use crate::source::SourceMap;

fn words(text: &str) -> (Vec<String>, Vec<String>) {
    let mut map = SourceMap::new();
    let file = map.add("t.conc", text.to_owned()).unwrap().clone();
    let mut diagnostics = Diagnostics::default();
    let lexed = lex(&file, &mut diagnostics);
    let show = |token: &Token| match token.kind {
        TokenKind::Ident => file.slice(token.span).to_owned(),
        TokenKind::Keyword(word) => format!("<{word}>"),
        TokenKind::Int(value) => format!("i{value}"),
        TokenKind::Float(value) => format!("f{value}"),
        TokenKind::Str(text) => format!("s{:?}", lexed.texts[text as usize]),
        TokenKind::TextStart(text) => format!("({:?}", lexed.texts[text as usize]),
        TokenKind::TextMiddle(text) => format!("-{:?}", lexed.texts[text as usize]),
        TokenKind::TextEnd(text) => format!("{:?})", lexed.texts[text as usize]),
        TokenKind::Punct(punct) => punct.to_string(),
        TokenKind::End => "end".to_owned(),
    };
    let mut shown: Vec<String> = lexed.tokens.iter().map(show).collect();
    assert_eq!(shown.pop().as_deref(), Some("end"));
    let wrong = diagnostics.into_sorted();
    (shown, wrong.into_iter().map(|it| it.text).collect())
}

fn good(text: &str) -> String {
    let (words, wrong) = words(text);
    assert!(wrong.is_empty(), "{text}: {wrong:?}");
    words.join(" ")
}

fn bad(text: &str) -> String {
    words(text).1.join("; ")
}

#[test]
fn words_numbers_and_operators() {
    assert_eq!(good("let x_1 = fns;"), "<let> x_1 = fns ;");
    assert_eq!(good("1_000 0xFf 0B101 0o17"), "i1000 i255 i5 i15");
    assert_eq!(
        good("2.5 1.0e3 1.5E-2 5..7 5.abs"),
        "f2.5 f1000 f0.015 i5 .. i7 i5 . abs"
    );
    assert_eq!(
        good("a|>b||c|d??e?..=..."),
        "a |> b || c | d ?? e ? ..= .. ."
    );
    assert_eq!(good("x<=y<y>=z->=>"), "x <= y < y >= z -> =>");
    assert_eq!(good("a::b:c"), "a :: b : c");
}

#[test]
fn strings_in_their_three_forms() {
    assert_eq!(good(r#""a\n\"\$\u{41}\\""#), r#"s"a\n\"$A\\""#);
    assert_eq!(
        good("\"\"\"\n a \"b\" \"\" \"\"\""),
        r#"s"\n a \"b\" \"\" ""#
    );
    assert_eq!(
        good(r###"r#"\n"${x}"# r##"a"#b"## r"###.trim_end_matches(" r")),
        r##"s"\\n\"${x}" s"a\"#b""##
    );
    assert_eq!(good(r#""$5 and $""#), r#"s"$5 and $""#);
}

#[test]
fn interpolation_nests() {
    assert_eq!(good(r#""a${b}c""#), r#"("a" b "c")"#);
    assert_eq!(
        good(r#""${m["k${i}"]}-${{1}}""#),
        r#"("" m [ ("k" i "") ] -"-" { i1 } "")"#
    );
}

#[test]
fn comments_are_kept_beside_the_words() {
    let mut map = SourceMap::new();
    let text = "// one\na /* x /* y */ z */ // two\n/// three";
    let file = map.add("t.conc", text.to_owned()).unwrap().clone();
    let lexed = lex(&file, &mut Diagnostics::default());
    assert_eq!(lexed.tokens.len(), 2);
    let comments: Vec<_> = lexed
        .comments
        .iter()
        .map(|it| (file.slice(it.span), it.own_line, it.to_line_end))
        .collect();
    let expected = [
        ("// one", true, true),
        ("/* x /* y */ z */", false, false),
        ("// two", false, true),
        ("/// three", true, true),
    ];
    assert_eq!(comments, expected);
}

#[test]
fn what_is_no_word_is_told() {
    assert_eq!(
        bad("9223372036854775808"),
        "the number `9223372036854775808` is out of range"
    );
    assert_eq!(bad("12abc"), "`12abc` is no number");
    assert_eq!(bad("0x"), "`0x` is no number");
    assert_eq!(bad("1e5"), "`1e5` is no number");
    assert_eq!(bad(r#""\q""#), "`\\q` is no escape");
    assert_eq!(bad(r#""\u{110000}""#), "`\\u{110000}` is no character");
    assert_eq!(bad("\"abc\nlet"), "this string is not closed");
    assert_eq!(bad("\"\"\"abc"), "this string is not closed");
    assert_eq!(bad("r#\"abc"), "this raw string is not closed");
    assert_eq!(bad("\"${a"), "the `${` of this string is not closed");
    assert_eq!(bad("/* a"), "this comment is not closed");
    assert_eq!(
        bad("a # b § c"),
        "`#` is no part of the language; `§` is no part of the language"
    );
    assert_eq!(bad("1.0e"), "`1.0e` is no number that fits a Float");
}

#[test]
fn a_string_of_brackets_costs_no_stack() {
    let text = "\"${".repeat(50_000);
    assert!(!bad(&text).is_empty());
}
