//! What commands do.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;

use owo_colors::OwoColorize;

use super::command::{COMMANDS, Command};
use super::partner::Partner;
use super::transcript::Transcript;
use super::{Chat, Next};
use crate::failure::HELP;
use crate::text::{counted, one_line};

impl Chat {
    pub(super) async fn perform(&mut self, command: Command) -> Result<Next, Box<dyn Error>> {
        match command {
            Command::Quit => return Ok(Next::Leave(self.code())),
            Command::Help => self.help()?,
            Command::Tools => self.list_tools()?,
            Command::Usage => self.tell_usage()?,
            Command::Model(None) => self.tell_model()?,
            Command::Model(Some(name)) => {
                let chosen = self.partner.choose(&name).await;
                self.tell(chosen.map(|()| format!("{name} answers from now on")))?;
            }
            Command::New => {
                let begun = self.partner.begin_anew().await;
                if begun.is_ok() {
                    self.transcript = Transcript::default();
                }
                let words = match self.partner.conversation() {
                    Some(id) => format!("a new conversation, `{id}`"),
                    None => String::from("a new conversation"),
                };
                self.tell(begun.map(|()| words))?;
            }
            Command::Save(file) => {
                let saved = self.transcript.save(Path::new(&file));
                let saved = saved.map(|()| format!("wrote {file}"));
                self.tell(saved.map_err(Into::into))?;
            }
            Command::Output { call_id, text } => return self.output(&call_id, &text).await,
        }
        Ok(Next::GoOn)
    }

    /// Answers a call; when all are answered, the model goes on.
    async fn output(&mut self, call_id: &str, text: &str) -> Result<Next, Box<dyn Error>> {
        let server = match &mut self.partner {
            Partner::Server(server) => Some(server),
            Partner::Engine(_) => None,
        };
        let Some(server) = server.filter(|server| server.open.has(call_id)) else {
            let id = one_line(call_id, 64);
            let words = format!("the model does not wait for a call `{id}`");
            self.desk.screen.note(&words)?;
            self.tell_open_calls()?;
            return Ok(Next::GoOn);
        };
        server.open.answer(call_id, text);
        let Some(outputs) = server.open.take_outputs() else {
            self.tell_open_calls()?;
            return Ok(Next::GoOn);
        };
        self.desk.interrupts.forget();
        let reply = server.go_on(outputs, &mut self.desk).await;
        self.replied(reply)
    }

    fn help(&mut self) -> io::Result<()> {
        let out = self.desk.screen.lines()?;
        for (name, arguments, what) in COMMANDS {
            let name = format!("{name} {arguments}");
            writeln!(out, "  {:<22}{what}", name.cyan())?;
        }
        writeln!(
            out,
            "\n  a line that ends in \\ goes on in the next; what stands between two lines of \"\"\" \
             is one message\n  ctrl-c stops an answer, twice it leaves; ctrl-d leaves\n"
        )
    }

    fn list_tools(&mut self) -> io::Result<()> {
        let tools = self.partner.tools();
        let out = self.desk.screen.lines()?;
        if tools.is_empty() {
            writeln!(out, "  none")?;
        }
        for (name, brief) in tools {
            let (name, brief) = (one_line(&name, 64), one_line(&brief, 120));
            writeln!(out, "  {:<22}{}", name.cyan(), brief.dimmed())?;
        }
        writeln!(out)
    }

    fn tell_model(&mut self) -> io::Result<()> {
        let (now, all) = (self.partner.name().to_owned(), self.partner.models());
        let out = self.desk.screen.lines()?;
        for name in all {
            let mark = if name == now { "*" } else { " " };
            writeln!(out, "  {mark} {}", one_line(&name, 120))?;
        }
        writeln!(out)
    }

    fn tell_usage(&mut self) -> io::Result<()> {
        let Transcript { usage, answers, .. } = &self.transcript;
        let mut words = format!(
            "{}: {} in, {} out",
            counted(*answers, "answer"),
            counted(usage.input_tokens, "token"),
            usage.output_tokens
        );
        for (number, what) in [
            (usage.cached_input_tokens, "cached"),
            (usage.reasoning_tokens, "for thoughts"),
        ] {
            if number > 0 {
                words = format!("{words}, {number} {what}");
            }
        }
        writeln!(self.desk.screen.lines()?, "  {words}\n")
    }

    /// Says what came of a command.
    fn tell(&mut self, done: Result<String, Box<dyn Error>>) -> io::Result<()> {
        let words = done.unwrap_or_else(|error| {
            self.has_failed = true;
            // A note is one line.
            error.to_string().replace(HELP, ": ")
        });
        self.desk.screen.note(&words)
    }
}
