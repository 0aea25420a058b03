//! The words of an expression.

use num_bigint::BigInt;
use num_rational::BigRational;

use super::digits::decimal;
use super::error::{CalculationError, CalculationProblem as Problem};
use super::{MAX_CHARS, MAX_DIGITS};

/// One word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(BigRational),
    /// In lower case.
    Name(String),
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
    Power,
    Open,
    Close,
    Comma,
    End,
}

/// A word and where it starts: a character of the expression, from 1.
pub(super) type Placed = (Token, usize);

/// The words of an expression; the last one is [`Token::End`].
pub(super) fn tokens(expression: &str) -> Result<Vec<Placed>, CalculationError> {
    // Not more than that is looked at, whatever comes in.
    let characters: Vec<char> = expression.chars().take(MAX_CHARS + 1).collect();
    if characters.len() > MAX_CHARS {
        return Err(Problem::TooLong.at(MAX_CHARS + 1));
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = characters.get(at) {
        let rest = &characters[at..];
        let (token, length) = match first {
            _ if first.is_whitespace() => {
                at += 1;
                continue;
            }
            '0'..='9' | '.' => number(rest).map_err(|problem| problem.at(at + 1))?,
            '+' => (Token::Plus, 1),
            // What models write for people: the real minus and the signs for times and divided by.
            '-' | '−' => (Token::Minus, 1),
            '*' if rest.get(1) == Some(&'*') => (Token::Power, 2),
            '*' | '×' | '·' => (Token::Times, 1),
            '/' | '÷' => (Token::Divide, 1),
            '%' => (Token::Remainder, 1),
            '^' => (Token::Power, 1),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            'π' => (Token::Name("pi".to_owned()), 1),
            _ if first.is_ascii_alphabetic() => name(rest),
            _ => return Err(Problem::UnknownCharacter(first).at(at + 1)),
        };
        tokens.push((token, at + 1));
        at += length;
    }
    tokens.push((Token::End, characters.len() + 1));
    Ok(tokens)
}

fn name(rest: &[char]) -> (Token, usize) {
    let is_part = |character: &&char| character.is_ascii_alphanumeric() || **character == '_';
    let name: String = rest.iter().take_while(is_part).collect();
    let length = name.len();
    (Token::Name(name.to_ascii_lowercase()), length)
}

/// `12`, `1.5`, `.5`, `1.`, each with `e12`, `e-3` or nothing behind it.
fn number(rest: &[char]) -> Result<(Token, usize), Problem> {
    let digits_from = |from: usize| {
        let digits = rest.iter().skip(from).take_while(|c| c.is_ascii_digit());
        digits.collect::<String>()
    };
    let whole = digits_from(0);
    let mut length = whole.len();
    let mut fraction = String::new();
    if rest.get(length) == Some(&'.') {
        fraction = digits_from(length + 1);
        length += 1 + fraction.len();
    }
    let invalid = || {
        let word = rest
            .iter()
            .take_while(|c| c.is_ascii_alphanumeric() || **c == '.');
        Problem::InvalidNumber(word.take(40).collect())
    };
    if whole.is_empty() && fraction.is_empty() || rest.get(length) == Some(&'.') {
        return Err(invalid());
    }
    let mut exponent = 0_i64;
    if let Some('e' | 'E') = rest.get(length) {
        let sign = rest.get(length + 1).filter(|c| matches!(c, '+' | '-'));
        let from = length + 1 + usize::from(sign.is_some());
        let digits = digits_from(from);
        if digits.is_empty() {
            return Err(invalid());
        }
        length = from + digits.len();
        // More digits than fit are more than the limit.
        let size = digits.parse::<i64>().unwrap_or(i64::MAX);
        exponent = if sign == Some(&'-') { -size } else { size };
        if size > i64::from(MAX_DIGITS) {
            let is_small = sign == Some(&'-');
            return Err(if is_small {
                Problem::TooSmall
            } else {
                Problem::TooLarge
            });
        }
    }
    if rest
        .get(length)
        .is_some_and(|c| c.is_ascii_alphabetic() || *c == '_')
    {
        return Err(invalid());
    }
    let digits: BigInt = format!("0{whole}{fraction}")
        .parse()
        .map_err(|_| invalid())?;
    let decimals = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    Ok((Token::Number(decimal(digits, decimals - exponent)), length))
}
