//! Arithmetic, by example, against the machine's own integers, and with whatever comes in.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail like tests"
)]

use haft_core::ToolContext;
use haft_hosted::{Calculation, calculate, evaluate};
use proptest::prelude::*;
use serde_json::json;

/// The result, with `~` before one that is not exact; or the error.
fn value(expression: &str) -> String {
    match evaluate(expression) {
        Ok(Calculation {
            result,
            exact: true,
        }) => result,
        Ok(Calculation { result, .. }) => format!("~{result}"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(value(expression), *expected, "{expression}");
    }
}

#[test]
fn decimals_are_exact() {
    check(&[
        ("0.1 + 0.2", "0.3"),
        ("1.10 * 3", "3.3"),
        ("0.1^20", "0.00000000000000000001"),
        ("1 / 8", "0.125"),
        ("1 / 3 * 3", "1"),
        ("1/3 + 1/6", "0.5"),
        ("19.99 * 3 + 4.50", "64.47"),
        ("100 * 1.035^3", "110.8717875"),
        ("5e-1 + .5 + 1.", "2"),
        ("-0", "0"),
        ("-0.50", "-0.5"),
    ]);
}

#[test]
fn large_whole_numbers_are_exact() {
    check(&[
        ("2^128", "340282366920938463463374607431768211456"),
        (
            "99999999999999999999 * 99999999999999999999",
            "9999999999999999999800000000000000000001",
        ),
        ("12345678901234567890 % 97", "3"),
        ("1e30", &format!("1{}", "0".repeat(30))),
        ("1e31", "1e31"),
        ("12e40", "1.2e41"),
        ("2.5e-40", "2.5e-40"),
        ("10^4999 / 10^4998", "10"),
    ]);
    let long = value("3^5000");
    assert_eq!(long.len(), 2386);
}

#[test]
fn operators_bind_as_on_paper() {
    check(&[
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("2 - 3 - 4", "-5"),
        ("100 / 10 / 5", "2"),
        ("2^3^2", "512"),
        ("2**3**2", "512"),
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("2^-2", "0.25"),
        ("2*-3", "-6"),
        ("--3", "3"),
        ("+3 - -3", "6"),
        ("7 % 3 * 2", "2"),
        ("6 × 7 ÷ 2 − 1", "20"),
    ]);
}

#[test]
fn the_remainder_has_the_sign_of_the_left_side() {
    check(&[
        ("7 % 3", "1"),
        ("-7 % 3", "-1"),
        ("7 % -3", "1"),
        ("5.5 % 2", "1.5"),
        ("-5.5 % -2", "-1.5"),
    ]);
}

#[test]
fn functions_do_what_they_are_named_for() {
    check(&[
        ("abs(-3.5)", "3.5"),
        ("min(3, -1, 2)", "-1"),
        ("MAX(3, -1, 2)", "3"),
        ("sum(0.1, 0.2, 0.3)", "0.6"),
        (
            "avg(1, 2, 4)",
            "~2.3333333333333333333333333333333333333333333333333",
        ),
        ("avg(1, 2, 6)", "3"),
        ("floor(-1.5) + ceil(-1.5)", "-3"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2/3, 4)", "0.6667"),
        ("round(1234.5, -2)", "1200"),
        ("round(0.125, 2)", "0.13"),
        ("sqrt(16)", "4"),
        ("sqrt(0.0625)", "0.25"),
        ("sqrt(4/9) * 3", "2"),
        ("sqrt(0)", "0"),
    ]);
}

#[test]
fn what_is_rounded_says_so() {
    let many_roots = format!("{}2", "sqrt(3)/sqrt(3)*".repeat(500));
    check(&[
        (
            "1 / 3",
            "~0.33333333333333333333333333333333333333333333333333",
        ),
        (
            "2 / 3",
            "~0.66666666666666666666666666666666666666666666666667",
        ),
        (
            "sqrt(2)",
            "~1.4142135623730950488016887242096980785696718753769",
        ),
        ("pi", "~3.1415926535897932384626433832795028841971693993751"),
        ("π * 0", "~0"),
        ("e", "~2.7182818284590452353602874713526624977572470937"),
        (
            "1e-40 / 3",
            "~3.3333333333333333333333333333333333333333333333333e-41",
        ),
        // What was lost on the way does not reach what is shown.
        ("sqrt(2)^2", "~2"),
        ("floor(sqrt(2)^2)", "~2"),
        ("round(sqrt(2), 3)", "~1.414"),
        (&many_roots, "~2"),
    ]);
}

#[test]
fn long_powers_of_fractions_are_rounded_and_not_refused() {
    // Known to 50 digits from an independent computation with integers.
    check(&[
        (
            "(1 + 0.05/365)^3650",
            &format!("~{}", independent_power(7301, 7300, 3650)),
        ),
        (
            "1.0000001^100000",
            &format!("~{}", independent_power(10_000_001, 10_000_000, 100_000)),
        ),
    ]);
}

/// The power to 50 significant digits, by plain repeated multiplication with 200 digits.
fn independent_power(numerator: u64, denominator: u64, exponent: u32) -> String {
    use num_bigint::BigInt;
    let scale = BigInt::from(10).pow(200);
    let mut power = scale.clone();
    for _ in 0..exponent {
        power = power * numerator / denominator;
    }
    let digits = power.to_string();
    let whole = digits.len() - 200;
    let last = 50 - whole;
    let shown: BigInt = (digits[..=whole + last].parse::<BigInt>().unwrap() + 5) / 10;
    let shown = shown.to_string();
    format!("{}.{}", &shown[..whole], &shown[whole..])
        .trim_end_matches('0')
        .to_owned()
}

#[test]
fn what_would_be_too_much_is_refused_with_the_limit() {
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(4999));
    let signs = "-".repeat(9000) + "1";
    let long = "1+".repeat(6000) + "1";
    check(&[
        (
            "9^9^9^9",
            "at character 4: the value is beyond the limit of 5000 digits",
        ),
        (
            "9^9999999",
            "at character 2: the value is beyond the limit of 5000 digits",
        ),
        (
            "2^(10^10)",
            "at character 2: the exponent is beyond the limit of 1000000000",
        ),
        (
            "1.1^999999999",
            "at character 4: the value is beyond the limit of 5000 digits",
        ),
        (
            "0.9^999999999",
            "at character 4: the value is nearer to zero than the limit of 5000 decimals",
        ),
        (
            "1e999999999",
            "at character 1: the value is beyond the limit of 5000 digits",
        ),
        (
            "1e99999999999999999999999",
            "at character 1: the value is beyond the limit of 5000 digits",
        ),
        (
            "1e5000",
            "at character 1: the value is beyond the limit of 5000 digits",
        ),
        (
            "1e-5001",
            "at character 1: the value is nearer to zero than the limit of 5000 decimals",
        ),
        (
            "2 + 1e4999 * 10",
            "at character 12: the value is beyond the limit of 5000 digits",
        ),
        (
            "round(1, 1e9)",
            "at character 1: decimals must be a whole number from -5000 to 5000",
        ),
        (
            "round(1, 0.5)",
            "at character 1: decimals must be a whole number from -5000 to 5000",
        ),
        (
            &deep,
            "at character 101: the expression is nested more than 100 levels deep: flatten it",
        ),
        (
            &signs,
            "at character 101: the expression is nested more than 100 levels deep: flatten it",
        ),
        (
            &long,
            "at character 10001: the expression has more than 10000 characters: shorten it",
        ),
    ]);
    // And just within.
    assert_eq!(value("1e4999"), "1e4999");
    assert_eq!(value("1e-5000"), "1e-5000");
    assert_eq!(value("1^(10^20)"), "1");
    assert_eq!(value("(-1)^(10^20+1)"), "-1");
    assert_eq!(value("0^0 + 0^5"), "1");
    let nested = format!("{}1{}", "(".repeat(99), ")".repeat(99));
    assert_eq!(value(&nested), "1");
    assert_eq!(value(&("1+".repeat(4999) + "1")), "5000");
}

#[test]
fn endless_work_with_large_fractions_ends() {
    let fraction = "2^3001/3^3000";
    let expression = vec![fraction; 700].join("+");
    let error = evaluate(&expression).unwrap_err().to_string();
    assert!(error.contains("too much work"), "{error}");
}

#[test]
fn errors_point_at_the_place() {
    check(&[
        ("", "at character 1: expected a number, found the end"),
        ("1 +", "at character 4: expected a number, found the end"),
        (
            "1 2",
            "at character 3: expected an operator or the end, found a number",
        ),
        (
            "(1 + 2",
            "at character 7: expected `)` or an operator, found the end",
        ),
        (
            "1 + 2)",
            "at character 6: expected an operator or the end, found `)`",
        ),
        (
            "1,000 + 1",
            "at character 2: expected an operator or the end, found `,`",
        ),
        (
            "ä + 1",
            "at character 1: `ä` means nothing here: use numbers, + - * / % ^ ( ) and functions",
        ),
        (
            "π + ä",
            "at character 5: `ä` means nothing here: use numbers, + - * / % ^ ( ) and functions",
        ),
        (
            "1.2.3",
            "at character 1: `1.2.3` is no number: write it like 1234.5 or 1.5e6",
        ),
        (
            "2x",
            "at character 1: `2x` is no number: write it like 1234.5 or 1.5e6",
        ),
        (
            "1e",
            "at character 1: `1e` is no number: write it like 1234.5 or 1.5e6",
        ),
        (
            ".",
            "at character 1: `.` is no number: write it like 1234.5 or 1.5e6",
        ),
        (
            "1 + sin(2)",
            "at character 5: there is no `sin`: functions are abs, floor, ceil, round, sqrt, min, \
             max, sum and avg; constants are pi and e",
        ),
        (
            "abs 3",
            "at character 5: expected `(` behind the function, found a number",
        ),
        (
            "abs(1, 2)",
            "at character 1: `abs` takes one argument, not 2",
        ),
        (
            "sum()",
            "at character 1: `sum` takes at least one argument, not 0",
        ),
        ("min(1,)", "at character 7: expected a number, found `)`"),
        ("3 / (2 - 2)", "at character 3: division by zero"),
        ("5 % 0", "at character 3: division by zero"),
        ("0^-1", "at character 2: division by zero"),
        (
            "2^0.5",
            "at character 2: the exponent is not a whole number: only whole exponents and `sqrt` \
             are possible",
        ),
        ("sqrt(-1)", "at character 1: `sqrt` of a negative number"),
        // The whole is read before anything is evaluated.
        (
            "1/0 + (",
            "at character 8: expected a number, found the end",
        ),
    ]);
}

#[tokio::test]
async fn the_tool_gives_the_value_and_says_what_is_wrong() {
    let tool = calculate().unwrap();
    let call = |expression: &str| {
        let call = tool.instantiate(&json!({ "expression": expression }));
        async move { call.unwrap().run(&ToolContext::default()).await }
    };
    let output = call("0.1 + 0.2").await.unwrap();
    assert_eq!(
        output.as_value(),
        Some(&json!({"result": "0.3", "exact": true}))
    );
    let error = call("1 / 0").await.unwrap_err();
    assert_eq!(error.message(), "at character 3: division by zero");
}

/// An expression over whole numbers, as text and as the machine evaluates it.
#[derive(Debug, Clone)]
struct Sample {
    text: String,
    value: Option<i128>,
}

fn samples() -> impl Strategy<Value = Sample> {
    let number = any::<i32>().prop_map(|number| Sample {
        text: number.to_string(),
        value: Some(number.into()),
    });
    number.prop_recursive(6, 64, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        let binary = (
            pair,
            prop::sample::select(vec!['+', '-', '*', '%']),
            any::<bool>(),
        );
        let few = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            binary.prop_map(|((left, right), operator, is_wide)| {
                let gap = if is_wide { " " } else { "" };
                let value = left
                    .value
                    .zip(right.value)
                    .and_then(|(a, b)| match operator {
                        '+' => a.checked_add(b),
                        '-' => a.checked_sub(b),
                        '*' => a.checked_mul(b),
                        _ => a.checked_rem(b),
                    });
                let text = format!("({}){gap}{operator}{gap}({})", left.text, right.text);
                Sample { text, value }
            }),
            inner.clone().prop_map(|of| Sample {
                text: format!("-({})", of.text),
                value: of.value.and_then(i128::checked_neg),
            }),
            (inner, 0_u32..4).prop_map(|(of, exponent)| Sample {
                text: format!("({})^{exponent}", of.text),
                value: of.value.and_then(|value| value.checked_pow(exponent)),
            }),
            (few, prop::sample::select(vec!["min", "max", "sum"])).prop_map(|(of, function)| {
                let values: Option<Vec<_>> = of.iter().map(|of| of.value).collect();
                let texts: Vec<_> = of.into_iter().map(|of| of.text).collect();
                Sample {
                    text: format!("{function}({})", texts.join(", ")),
                    value: values.and_then(|values| match function {
                        "min" => values.into_iter().min(),
                        "max" => values.into_iter().max(),
                        _ => values.into_iter().try_fold(0_i128, i128::checked_add),
                    }),
                }
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whole_numbers_agree_with_the_machine(sample in samples()) {
        prop_assume!(sample.text.len() <= 10_000);
        if let Some(expected) = sample.value {
            prop_assert_eq!(value(&sample.text), expected.to_string());
        }
    }

    #[test]
    fn an_exact_result_written_and_read_again_is_the_same(
        digits in "-?[1-9][0-9]{0,60}",
        decimals in 0_u32..80,
        shift in -200_i32..200,
    ) {
        let first = evaluate(&format!("{digits} / 10^{decimals} * 10^({shift})")).unwrap();
        prop_assert!(first.exact);
        prop_assert_eq!(evaluate(&first.result).unwrap(), first.clone());
        // And nothing was lost: turned back, it is what it was.
        let back = format!("({}) / 10^({shift}) * 10^{decimals}", first.result);
        prop_assert_eq!(value(&back), value(&digits));
    }

    #[test]
    fn division_and_multiplication_undo_each_other(a in any::<i64>(), b in any::<i64>()) {
        prop_assume!(b != 0);
        prop_assert_eq!(value(&format!("({a}) / ({b}) * ({b})")), a.to_string());
        let whole_and_rest = format!("(({a}) - ({a}) % ({b})) / ({b}) * ({b}) + ({a}) % ({b})");
        prop_assert_eq!(value(&whole_and_rest), a.to_string());
    }

    #[test]
    fn the_square_of_a_root_is_near(a in 0_u64..) {
        let difference = format!("abs(sqrt({a})^2 - {a}) * 1e50 - 1");
        prop_assert!(value(&difference).trim_start_matches('~').starts_with('-'));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = evaluate(&text);
    }

    #[test]
    fn no_words_of_the_language_make_it_panic(words in prop::collection::vec(
        prop::sample::select(vec![
            "0", "1", "2", "9", "10", ".5", "1e9", "1e4999", "1e-4999", "9999999999", "+", "-", "*",
            "/", "%", "^", "**", "(", ")", ",", "sqrt(", "round(", "avg(", "min(", "floor(", "pi",
            "e", "abs(", " ",
        ]),
        0..24,
    )) {
        let _ = evaluate(&words.concat());
    }
}
