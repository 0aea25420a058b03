//! An expression as a list of steps.

use num_rational::BigRational;

use super::MAX_DEPTH;
use super::error::{CalculationError, CalculationProblem as Problem};
use super::function::{Function, constant};
use super::number::Number;
use super::token::{Placed, Token, tokens};

/// One step of the evaluation: it takes values from the top of a stack and puts one there.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Push(Number),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Call(Function, usize),
}

/// The steps of an expression, each with its position, operands before operators.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) steps: Vec<(Step, usize)>,
}

impl Program {
    pub(super) fn read(expression: &str) -> Result<Self, CalculationError> {
        let mut reader = Reader {
            tokens: tokens(expression)?,
            at: 0,
            depth: 0,
            steps: Vec::new(),
        };
        reader.sum()?;
        match reader.peek() {
            (Token::End, _) => Ok(Self {
                steps: reader.steps,
            }),
            _ => Err(reader.unexpected("an operator or the end")),
        }
    }
}

/// Reads by descent: sums of products of signed powers. Only signs, powers and parentheses go
/// deeper, and all of them through [`signed`](Self::signed), which counts.
struct Reader {
    tokens: Vec<Placed>,
    at: usize,
    depth: usize,
    steps: Vec<(Step, usize)>,
}

impl Reader {
    fn peek(&self) -> &Placed {
        // The last token is the end, and nothing goes past it.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    /// Takes the next token if it is one of these; gives its step and position.
    fn take(&mut self, wanted: &[(Token, Step)]) -> Option<(Step, usize)> {
        let (token, position) = self.peek();
        let position = *position;
        let (_, step) = wanted.iter().find(|(wanted, _)| wanted == token)?;
        self.at += 1;
        Some((step.clone(), position))
    }

    fn takes(&mut self, wanted: &Token) -> bool {
        let is_next = self.peek().0 == *wanted;
        self.at += usize::from(is_next);
        is_next
    }

    fn sum(&mut self) -> Result<(), CalculationError> {
        let operators = [(Token::Plus, Step::Add), (Token::Minus, Step::Subtract)];
        self.product()?;
        while let Some(step) = self.take(&operators) {
            self.product()?;
            self.steps.push(step);
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), CalculationError> {
        let operators = [
            (Token::Times, Step::Multiply),
            (Token::Divide, Step::Divide),
            (Token::Remainder, Step::Remainder),
        ];
        self.signed()?;
        while let Some(step) = self.take(&operators) {
            self.signed()?;
            self.steps.push(step);
        }
        Ok(())
    }

    fn signed(&mut self) -> Result<(), CalculationError> {
        let position = self.peek().1;
        if self.depth == MAX_DEPTH {
            return Err(Problem::TooDeep.at(position));
        }
        self.depth += 1;
        if self.takes(&Token::Minus) {
            self.signed()?;
            self.steps.push((Step::Negate, position));
        } else if self.takes(&Token::Plus) {
            self.signed()?;
        } else {
            self.power()?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Binds from the right and tighter than the sign before it: `-2^2` is `-4`.
    fn power(&mut self) -> Result<(), CalculationError> {
        self.operand()?;
        if let Some(step) = self.take(&[(Token::Power, Step::Power)]) {
            self.signed()?;
            self.steps.push(step);
        }
        Ok(())
    }

    fn operand(&mut self) -> Result<(), CalculationError> {
        let (token, position) = self.peek().clone();
        self.at += 1;
        match token {
            Token::Number(value) => {
                let number = Number::exact(value).map_err(|problem| problem.at(position))?;
                self.steps.push((Step::Push(number), position));
                Ok(())
            }
            Token::Open => {
                self.sum()?;
                self.close("`)` or an operator")
            }
            Token::Name(name) => self.named(&name, position),
            _ => {
                self.at -= 1;
                Err(self.unexpected("a number"))
            }
        }
    }

    fn named(&mut self, name: &str, position: usize) -> Result<(), CalculationError> {
        if let Some(number) = constant(name) {
            let number = number.map_err(|problem| problem.at(position))?;
            self.steps.push((Step::Push(number), position));
            return Ok(());
        }
        let Some(function) = Function::named(name) else {
            let name = haft_core::cut(name);
            return Err(Problem::UnknownName(name).at(position));
        };
        if !self.takes(&Token::Open) {
            return Err(self.unexpected("`(` behind the function"));
        }
        let is_sum = matches!(function, Function::Sum | Function::Average);
        let mut given = 0;
        if !self.takes(&Token::Close) {
            loop {
                self.sum()?;
                given += 1;
                // Added up as they come, each addition a step of its own.
                if is_sum && given > 1 {
                    self.steps.push((Step::Add, position));
                }
                if !self.takes(&Token::Comma) {
                    break;
                }
            }
            self.close("`,`, `)` or an operator")?;
        }
        function
            .check(given)
            .map_err(|problem| problem.at(position))?;
        let operands = if is_sum { 1 } else { given };
        self.steps.push((Step::Call(function, operands), position));
        if function == Function::Average {
            let count = BigRational::from_integer(given.into());
            let count = Number::exact(count).map_err(|problem| problem.at(position))?;
            self.steps.push((Step::Push(count), position));
            self.steps.push((Step::Divide, position));
        }
        Ok(())
    }

    fn close(&mut self, expected: &'static str) -> Result<(), CalculationError> {
        if self.takes(&Token::Close) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    fn unexpected(&self, expected: &'static str) -> CalculationError {
        let (token, position) = self.peek();
        let found = match token {
            Token::Number(_) => "a number",
            Token::Name(name) => &format!("`{}`", haft_core::cut(name)),
            Token::Plus => "`+`",
            Token::Minus => "`-`",
            Token::Times => "`*`",
            Token::Divide => "`/`",
            Token::Remainder => "`%`",
            Token::Power => "`^`",
            Token::Open => "`(`",
            Token::Close => "`)`",
            Token::Comma => "`,`",
            Token::End => "the end",
        };
        let found = found.to_owned();
        Problem::Unexpected { expected, found }.at(*position)
    }
}
