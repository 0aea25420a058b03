//! What stands below the help of a command: examples that work as they are.

pub(super) const MAIN_HELP: &str = "\
Examples:
  haft                                    serve on http://127.0.0.1:4141
  haft chat                               talk to a model, with tools
  echo 'Calculate 2^64' | haft chat       ask once
  haft responses list                     what the server has stored
  haft trace resp_…                       how the run of a response went
  haft tools call calculate expression='0.1 + 0.2'
  haft mcp test                           whether the MCP servers of haft.toml work
  haft run app.conc                       run a Concerto program

`haft COMMAND --help` tells more about each.";

pub(super) const COMPLETIONS_HELP: &str = "\
Examples:
  bash        haft completions bash > ~/.local/share/bash-completion/completions/haft
  zsh         haft completions zsh > \"${fpath[1]}/_haft\"
  fish        haft completions fish > ~/.config/fish/completions/haft.fish
  powershell  haft completions powershell >> $PROFILE
  elvish      haft completions elvish >> ~/.config/elvish/rc.elv";

pub(super) const SERVE_HELP: &str = "\
Examples:
  haft serve                              as haft.toml says, if there is one
  haft serve --model ollama:qwen3:8b      one model of Ollama
  haft serve --listen 127.0.0.1:0         on a free port
  haft serve --concerto tools.conc        with the tools of a Concerto program
  HAFT_LOG=debug haft serve               and say more

`haft init` writes a haft.toml with every key, `haft config check` says whether it is right.";

pub(super) const CHAT_HELP: &str = "\
Examples:
  haft chat                               the configuration's model, in this process
  haft chat --model ollama:qwen3:8b       another one
  haft chat --server 127.0.0.1:4141       a server, which keeps the conversation
  haft chat --continue                    go on where your last one there ended
  echo 'Calculate 2^64' | haft chat       one line, one answer
  haft chat --json < questions.txt        one line of JSON per line

A line that ends in \\ goes on in the next; what stands between two lines of \"\"\" is one message. Ctrl-C \
stops an answer, twice it leaves; Ctrl-D leaves. `/help` shows the commands. In a pipe \
there are none: each line is a message.

The engine of this process answers and keeps nothing, unless a server is named or `--continue`, \
`--response` or `--conversation` ask for what only a server has.";

pub(super) const RESPONSES_HELP: &str = "\
Examples:
  haft responses list --limit 5
  haft responses show resp_… --items
  haft responses wait resp_… --timeout 10m
  haft responses list --all --json | jq -r '.data[] | select(.status == \"failed\") | .id'";
