//! A terminal with `haft` in it: keys go in, what is seen comes out.
//!
//! `script` of util-linux makes the terminal: its own input is the keyboard, its output the screen.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take to appear.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long somebody takes to read a question.
const READING: Duration = Duration::from_millis(300);

pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";

/// A terminal; what runs in it is ended if its test fails.
pub(crate) struct Terminal {
    script: Child,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    /// Up to where the screen was read.
    read: usize,
}

#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Terminal {
    /// Runs `haft` with these arguments in a folder. Nothing in them may need quotes.
    pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Self {
        Self::run_with(folder, arguments, |_| {})
    }

    pub(crate) fn run_with(
        folder: &Path,
        arguments: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        // The environment of `haft` is that of `script`. A shell in between would take Ctrl-C, too.
        let line = format!(
            "exec {} {}",
            env!("CARGO_BIN_EXE_haft"),
            arguments.join(" ")
        );
        let mut command = super::without_variables(Command::new("script"));
        command
            .args(["-q", "-e", "-f", "-c", &line, "/dev/null"])
            .current_dir(folder)
            .env("XDG_STATE_HOME", folder.join(".state"))
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        change(&mut command);
        let mut script = command.spawn().unwrap();
        let mut out = script.stdout.take().unwrap();
        let seen = Arc::<(Mutex<Seen>, Condvar)>::default();
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let read = out.read(&mut buffer).unwrap_or(0);
                let (seen, changed) = &*shared;
                let mut seen = seen.lock().unwrap();
                seen.bytes.extend_from_slice(&buffer[..read]);
                seen.is_over = read == 0;
                changed.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self {
            script,
            seen,
            read: 0,
        }
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        let keyboard = self.script.stdin.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\r"));
    }

    /// Answers a question, as somebody who has read it.
    pub(crate) fn answer(&mut self, line: &str) {
        std::thread::sleep(READING);
        self.line(line);
    }

    /// Waits until this appears behind what was seen before; everything up to it.
    #[track_caller]
    pub(crate) fn sees(&mut self, wanted: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let (seen, changed) = &*self.seen;
        let mut guard = seen.lock().unwrap();
        loop {
            let text = String::from_utf8_lossy(&guard.bytes[self.read..]).into_owned();
            if let Some(at) = text.find(wanted) {
                let until = at + wanted.len();
                self.read += text[..until].len();
                return text[..until].to_owned();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !guard.is_over && !left.is_zero(),
                "`{wanted}` does not appear: {text:?}"
            );
            guard = changed.wait_timeout(guard, left).unwrap().0;
        }
    }

    /// Waits until `haft` has ended; its code, and all that was ever seen.
    pub(crate) fn ends(mut self) -> (Option<i32>, Vec<u8>) {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.script.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end: {:?}", self.all());
            std::thread::sleep(Duration::from_millis(20));
        };
        let (seen, changed) = &*self.seen;
        let guard = seen.lock().unwrap();
        let guard = changed.wait_timeout_while(guard, PATIENCE, |seen| !seen.is_over);
        (status.code(), guard.unwrap().0.bytes.clone())
    }

    fn all(&self) -> String {
        let seen = self.seen.0.lock().unwrap();
        String::from_utf8_lossy(&seen.bytes).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
