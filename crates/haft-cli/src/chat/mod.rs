//! `haft chat`: a conversation at a terminal, or line by line from a pipe.
//!
//! What comes in: what somebody types. What goes out: answers as they come, the calls that lead to
//! them, and questions where a call needs somebody's word. Who answers is the engine of this process
//! or a server; this room decides nothing about tools, and keeps nothing when it is left but the ids by
//! which `--continue` finds a server's conversation again. Whatever a model, a tool or a server writes is
//! made harmless before it reaches the terminal.

mod answer;
mod approval;
mod command;
mod compose;
mod desk;
mod engine;
mod input;
mod inquirer;
mod interrupt;
mod memory;
mod open_calls;
mod partner;
mod perform;
mod place;
mod server;
mod transcript;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use owo_colors::OwoColorize;

use self::answer::{Answer, AnswerEnd, Reply};
use self::command::Line;
use self::compose::{Composed, Composer};
use self::desk::{Desk, Manner, Wishes};
use self::engine::Engine;
use self::input::Typed;
use self::partner::Partner;
use self::server::Server;
use self::transcript::Transcript;
use crate::arguments::ChatArguments;
use crate::failure::Failure;
use crate::screen::item::Detail;
use crate::terminal::{Color, Spinner, json_line};
use crate::text::{one_line, printable};

/// What a process ends with that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// How many items of an earlier conversation are shown again.
const RECALLED: usize = 6;

/// Holds a conversation until somebody leaves.
pub(crate) async fn chat(
    arguments: &ChatArguments,
    color: Color,
) -> Result<ExitCode, Box<dyn Error>> {
    if !arguments.messages.is_empty() {
        let message = arguments.messages.join(" ");
        let quoted = message.replace('\'', r"'\''");
        return Err(Failure::mistake("messages come from standard input")
            .remedy(format!("echo '{quoted}' | haft chat"))
            .into());
    }
    if arguments.is_with_server() && !arguments.scripts.scripts.is_empty() {
        let text = "a server has the tools of its own programs";
        let remedy = "start it with `haft serve --concerto FILE`, or leave `--server` out";
        return Err(Failure::mistake(text).remedy(remedy).into());
    }
    let partner = if arguments.is_with_server() {
        let spinner = Spinner::new("asking the server");
        let server = spinner.during(Server::open(arguments)).await?;
        Partner::Server(Box::new(server))
    } else {
        Partner::Engine(Box::new(Engine::open(arguments).await?))
    };
    let desk = Desk::open(Wishes {
        json: arguments.json,
        shows_reasoning: arguments.show_reasoning,
        yes: arguments.yes,
        color,
    })?;
    let transcript = Transcript {
        items: partner.past().to_vec(),
        ..Transcript::default()
    };
    let mut chat = Chat {
        partner,
        desk,
        transcript,
        was_interrupted: false,
        has_failed: false,
    };
    chat.welcome()?;
    let held = chat.hold().await;
    chat.partner.close().await;
    let code = held?;
    chat.goodbye()?;
    Ok(code)
}

/// A conversation under way.
struct Chat {
    partner: Partner,
    desk: Desk,
    transcript: Transcript,
    /// Whether the last thing that happened was Ctrl-C.
    was_interrupted: bool,
    /// Whether an answer is missing.
    has_failed: bool,
}

/// Whether the conversation goes on.
enum Next {
    GoOn,
    Leave(ExitCode),
}

impl Chat {
    async fn hold(&mut self) -> Result<ExitCode, Box<dyn Error>> {
        let mut composer = Composer::default();
        loop {
            let next = match self.typed(&composer).await? {
                Some(Typed::Line(line)) => {
                    self.was_interrupted = false;
                    match composer.take(&line) {
                        Composed::Unfinished => Next::GoOn,
                        Composed::Line(line) if self.desk.is_typed => {
                            self.take(command::read(&line)).await?
                        }
                        // What comes from a file or a program is no order to this one.
                        Composed::Line(line) => self.take(Line::Message(line)).await?,
                        Composed::Block(text) => self.take(Line::Message(text)).await?,
                    }
                }
                Some(Typed::Interrupted) if composer.is_unfinished() => {
                    composer.finish();
                    Next::GoOn
                }
                Some(Typed::Interrupted) if self.was_interrupted => return Ok(interrupted()),
                Some(Typed::Interrupted) => {
                    self.was_interrupted = true;
                    self.desk
                        .screen
                        .note("ctrl-c once more leaves, and so do ctrl-d and `/quit`")?;
                    Next::GoOn
                }
                Some(Typed::End) => {
                    let rest = composer.finish();
                    if !rest.trim().is_empty() && !self.desk.is_interactive() {
                        self.take(Line::Message(rest)).await?;
                    }
                    return Ok(self.code());
                }
                None => return Ok(interrupted()),
            };
            if let Next::Leave(code) = next {
                return Ok(code);
            }
        }
    }

    /// What is typed next; nothing if Ctrl-C came instead. An editor gives Ctrl-C by itself.
    async fn typed(&mut self, composer: &Composer) -> io::Result<Option<Typed>> {
        let prompt = if composer.is_unfinished() {
            "… "
        } else {
            "> "
        };
        if self.desk.is_interactive() {
            return self.desk.input.line(prompt).await.map(Some);
        }
        tokio::select! {
            typed = self.desk.input.line(prompt) => typed.map(Some),
            () = self.desk.interrupts.next() => Ok(None),
        }
    }

    async fn take(&mut self, line: Line) -> Result<Next, Box<dyn Error>> {
        match line {
            Line::Message(text) if text.trim().is_empty() => Ok(Next::GoOn),
            Line::Message(text) => self.message(&text).await,
            Line::Command(command) => self.perform(command).await,
            Line::Mistake(words) => {
                self.desk.screen.note(&words)?;
                Ok(Next::GoOn)
            }
        }
    }

    /// Sends a message and shows what comes of it.
    async fn message(&mut self, text: &str) -> Result<Next, Box<dyn Error>> {
        if self.tell_open_calls()? {
            self.has_failed = true;
            return Ok(Next::GoOn);
        }
        // Ctrl-C that came before was not meant for this answer.
        self.desk.interrupts.forget();
        let reply = self.partner.answer(text, &mut self.desk).await;
        self.replied(reply)
    }

    /// What came of a message, or of outputs.
    fn replied(&mut self, reply: Result<Reply, Box<dyn Error>>) -> Result<Next, Box<dyn Error>> {
        self.desk.screen.end_answer()?;
        let answer = match reply {
            Ok(Reply::Answer(answer)) => answer,
            Ok(Reply::Leave) => return Ok(Next::Leave(interrupted())),
            // Nobody reads or nothing can be written: there is nobody to talk to.
            Err(error) if error.is::<io::Error>() => return Err(error),
            Err(error) => Answer {
                end: AnswerEnd::Failed(error.to_string()),
                items: Vec::new(),
                usage: haft::Usage::default(),
                response_id: None,
                conversation_id: self.partner.conversation().map(str::to_owned),
            },
        };
        if self.desk.manner == Manner::Json {
            writeln!(io::stdout(), "{}", json_line(&answer.json())?)?;
        }
        if let Some(reason) = answer.end.reason() {
            self.has_failed = true;
            writeln!(io::stderr(), "haft: {}", printable(reason))?;
        }
        self.transcript.items.extend(answer.items);
        self.transcript.usage += answer.usage;
        self.transcript.answers += 1;
        match answer.end {
            AnswerEnd::Stopped if self.desk.is_interactive() => {
                self.was_interrupted = true;
                self.desk.screen.note("stopped; ctrl-c once more leaves")?;
            }
            AnswerEnd::Stopped => return Ok(Next::Leave(interrupted())),
            _ => {}
        }
        self.tell_open_calls()?;
        if self.desk.is_interactive() {
            writeln!(self.desk.screen.lines()?)?;
        }
        Ok(Next::GoOn)
    }

    /// Says which calls the model waits for; whether there are any.
    fn tell_open_calls(&mut self) -> io::Result<bool> {
        let Partner::Server(server) = &self.partner else {
            return Ok(false);
        };
        if server.open.is_empty() {
            return Ok(false);
        }
        let screen = &mut self.desk.screen;
        screen.note(
            "the model waits for calls that this program cannot execute: do what they ask for and \
             say what came of it",
        )?;
        for call in server.open.iter() {
            let name = one_line(&call.name, 120);
            let arguments = one_line(&call.arguments, 400);
            let id = one_line(&call.id, 64);
            screen.note(&format!("{name} {arguments}: `/output {id} TEXT`"))?;
        }
        Ok(true)
    }

    /// Says who is there, and what was said before.
    fn welcome(&mut self) -> io::Result<()> {
        if !self.desk.is_interactive() {
            return self.tell_place();
        }
        let told = printable(&self.partner.told());
        let tools: Vec<String> = self.partner.tools().into_iter().map(|it| it.0).collect();
        let tools = match tools.as_slice() {
            [] => String::from("none"),
            tools => printable(&tools.join(", ")),
        };
        let out = self.desk.screen.lines()?;
        writeln!(out, "\n  {}  {told}", "haft chat".bold())?;
        writeln!(out, "  {:<9}  {tools}", "tools".dimmed())?;
        let keys = "ctrl-c stops an answer, ctrl-d leaves";
        writeln!(
            out,
            "  {:<9}  shows all commands; {keys}\n",
            "/help".dimmed()
        )?;
        self.tell_place()?;
        let past = self.partner.past().to_vec();
        if past.len() > RECALLED {
            let earlier = past.len() - RECALLED;
            self.desk.screen.note(&format!("{earlier} earlier items"))?;
        }
        for item in past.iter().rev().take(RECALLED).rev() {
            self.desk.screen.item(item, Detail::Short)?;
        }
        if !past.is_empty() {
            writeln!(self.desk.screen.lines()?)?;
        }
        self.tell_open_calls()?;
        Ok(())
    }

    /// Says what is continued, or what was made to be continued.
    fn tell_place(&mut self) -> io::Result<()> {
        let Partner::Server(server) = &self.partner else {
            return Ok(());
        };
        match server.note() {
            Some(note) => self.desk.screen.note(note),
            None => Ok(()),
        }
    }

    /// Says how to come back.
    fn goodbye(&mut self) -> io::Result<()> {
        match &self.partner {
            Partner::Server(server) if self.desk.is_interactive() => match server.way_back() {
                Some(back) => self.desk.screen.note(&format!("to go on: `{back}`")),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// What the process ends with.
    fn code(&self) -> ExitCode {
        // A person has seen what failed.
        if self.has_failed && !self.desk.is_interactive() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}
