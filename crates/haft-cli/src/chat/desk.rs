//! Where a person and a program meet: what is shown, what is typed, and who may interrupt.

use std::io::{self, IsTerminal as _};

use super::approval::{Approvals, Judge};
use super::input::Input;
use super::interrupt::Interrupts;
use crate::screen::{Layout, Screen};
use crate::terminal::{Color, Vigil};

/// How the conversation is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Somebody sits at a terminal.
    Interactive,
    /// Lines come from a pipe, or answers go to one.
    Piped,
    /// The same, and answers are JSON.
    Json,
}

impl Manner {
    /// As this process was started.
    pub(super) fn of(json: bool) -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        match (json, is_terminal) {
            (true, _) => Self::Json,
            (false, true) => Self::Interactive,
            (false, false) => Self::Piped,
        }
    }
}

/// Everything that a conversation needs of its surroundings.
pub(super) struct Desk {
    pub(super) screen: Screen,
    pub(super) input: Input,
    pub(super) interrupts: Interrupts,
    pub(super) approvals: Approvals,
    pub(super) vigil: Vigil,
    pub(super) manner: Manner,
    /// Whether somebody types the lines: only then can they be commands.
    pub(super) is_typed: bool,
}

/// What the command line says about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wishes {
    pub(super) json: bool,
    pub(super) shows_reasoning: bool,
    /// Calls may run unasked.
    pub(super) yes: bool,
    pub(super) color: Color,
}

impl Desk {
    pub(super) fn open(wishes: Wishes) -> io::Result<Self> {
        let is_typed = io::stdin().is_terminal();
        let manner = Manner::of(wishes.json);
        if manner != Manner::Interactive && wishes.color == Color::Auto {
            // What is part of a pipe is plain, also where its last piece is a terminal.
            Color::Never.apply();
        }
        let screen = match manner {
            Manner::Interactive => Screen::new(Layout::Framed),
            Manner::Piped => Screen::new(Layout::Plain),
            Manner::Json => Screen::without_answer(),
        };
        let (input, person) = if manner == Manner::Interactive {
            (Input::terminal()?, Judge::Person)
        } else {
            (Input::pipe()?, Judge::Nobody)
        };
        let judge = if wishes.yes { Judge::Allowed } else { person };
        Ok(Self {
            screen: screen.thoughts(wishes.shows_reasoning),
            input,
            interrupts: Interrupts::listen()?,
            approvals: Approvals::new(judge),
            vigil: Vigil::default(),
            manner,
            is_typed,
        })
    }

    pub(super) fn is_interactive(&self) -> bool {
        self.manner == Manner::Interactive
    }
}
