use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use haft::LoopOptions;
use haft::models::{Adapter, ModelConfig};
use haft_server::access::{KeyLimits, Limits};
use haft_server::{DialectChoice, UnsupportedTools};

use super::resolve::Retention;
use super::*;

pub(super) fn source(text: &str) -> Source {
    Source {
        name: String::from("haft.toml"),
        folder: "/etc/haft".into(),
        text: text.to_owned(),
        is_there: true,
        is_of_user: false,
    }
}

fn lookup(name: &str) -> Option<String> {
    match name {
        "SOME_KEY" => Some(String::from("hunter2")),
        "ODD_KEY" => Some(String::from("hunter2 and more")),
        _ => None,
    }
}

pub(super) fn resolved_with(
    text: &str,
    variables: &[(&str, &str)],
    flags: Flags,
) -> Result<Resolved, String> {
    let variables = variables
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    Variables::from_environment(variables)
        .and_then(|variables| resolve(&source(text), &variables, flags, &lookup))
        .map_err(|complaint| complaint.to_string())
}

pub(super) fn resolved(text: &str) -> Result<Resolved, String> {
    resolved_with(text, &[], Flags::default())
}

#[test]
fn the_form_that_is_promised_works() {
    let resolved = resolved(
        r#"
        [server]
        listen = "127.0.0.1:4141"
        data_dir = "./haft-data"
        [[model]]
        name = "default"
        adapter = "openai-chat"
        base_url = "http://127.0.0.1:8080/v1"
        model = "qwen3"
        api_key_env = "SOME_KEY"
        "#,
    )
    .unwrap();
    assert_eq!(resolved.listen.to_string(), "127.0.0.1:4141");
    assert_eq!(resolved.data_dir, Path::new("/etc/haft/./haft-data"));
    let mut model = ModelConfig::new("default", Adapter::OpenaiChat);
    model.base_url = Some("http://127.0.0.1:8080/v1".into());
    model.model = Some("qwen3".into());
    model.api_key_env = Some("SOME_KEY".into());
    assert_eq!(resolved.models, [model]);
    assert_eq!(resolved.default_model.as_deref(), Some("default"));
}

#[test]
fn an_empty_file_means_the_defaults() {
    let resolved = resolved("").unwrap();
    assert_eq!(resolved.listen.to_string(), "127.0.0.1:4141");
    assert_eq!(resolved.data_dir, Path::new("/etc/haft/haft-data"));
    assert_eq!(resolved.dialect, DialectChoice::Auto);
    assert_eq!(resolved.unsupported_tools, UnsupportedTools::WebSearch);
    assert_eq!(
        (resolved.max_body_bytes, resolved.max_runs),
        (64 << 20, 256)
    );
    assert!(resolved.api_key.is_none() && resolved.allowed_origins.is_empty());
    assert!(!resolved.allow_anonymous);
    assert_eq!(resolved.limits, Limits::default());
    assert!(resolved.models.is_empty() && resolved.default_model.is_none());
    assert_eq!(resolved.loop_options, LoopOptions::default());
    let month = Duration::from_hours(30 * 24);
    assert_eq!(resolved.retention.max_age, Some(month));
    assert_eq!(resolved.retention.max_bytes, Some(10 << 30));
    assert!(resolved.search_files.is_none());
}

#[test]
fn every_key_is_read() {
    let resolved = resolved(
        r#"
        [server]
        dialect = "openai"
        unsupported_tools = "reject"
        max_body_bytes = "1MiB"
        max_runs = 2
        api_key_env = "SOME_KEY"
        allow_anonymous = true
        allowed_origins = ["https://app.example.com"]
        default_model = "quick"
        [[model]]
        name = "one"
        adapter = "offline"
        [[model]]
        name = "two"
        aliases = ["quick"]
        adapter = "ollama"
        failover = ["one"]
        breaker = { failures = 3, open = "1s", longest = "5s" }
        health = { every = "1m" }
        [loop]
        max_rounds = 3
        deadline = "2m"
        retry = { attempts = 2 }
        [loop.loop_detection]
        same_result = true
        [retention]
        max_age = "7d"
        max_bytes = "none"
        [limits]
        requests_per_minute = 60
        concurrent = 4
        max_waiting = 0
        max_wait = "1500ms"
        max_pending_bytes = "16MiB"
        max_header_bytes = "8KiB"
        max_headers = 32
        max_input_items = 100
        max_tools = 10
        [search_files]
        folders = ["docs", "/srv/wiki", { path = "notes", name = "mine", tenants = ["acme"] }]
        "#,
    )
    .unwrap();
    assert_eq!(resolved.dialect, DialectChoice::OpenAi);
    assert_eq!(resolved.unsupported_tools, UnsupportedTools::Reject);
    assert_eq!((resolved.max_body_bytes, resolved.max_runs), (1 << 20, 2));
    let key = resolved.api_key.unwrap();
    assert_eq!(key.secret.expose(), "hunter2");
    assert_eq!(key.source, KeySource::Variable("SOME_KEY".into()));
    assert!(resolved.allow_anonymous);
    let limits = Limits {
        keys: KeyLimits {
            requests_per_minute: NonZeroU32::new(60),
            concurrent: NonZeroU32::new(4),
        },
        max_waiting: Some(0),
        max_wait: Duration::from_millis(1500),
        max_pending_bytes: 16 << 20,
        max_header_bytes: 8 << 10,
        max_headers: 32,
        max_input_items: 100,
        max_tools: 10,
    };
    assert_eq!(resolved.limits, limits);
    assert_eq!(
        resolved.allowed_origins[0].as_str(),
        "https://app.example.com"
    );
    assert_eq!(resolved.default_model.as_deref(), Some("two"));
    let two = &resolved.models[1];
    assert_eq!(two.failover, ["one"]);
    let breaker = two.breaker.unwrap();
    let waits = (breaker.open.as_secs(), breaker.longest.as_secs());
    assert_eq!(
        (breaker.enabled, breaker.failures, waits),
        (true, 3, (1, 5))
    );
    assert_eq!(two.health.unwrap().every, Duration::from_mins(1));
    let options = resolved.loop_options;
    assert_eq!(options.deadline, Some(Duration::from_mins(2)));
    assert_eq!((options.max_rounds, options.retry.attempts), (3, 2));
    assert!(options.loop_detection.same_result);
    assert_eq!(
        resolved.retention,
        Retention {
            max_age: Some(Duration::from_hours(7 * 24)),
            max_bytes: None
        }
    );
    let folders = resolved.search_files.unwrap().folders;
    let paths: Vec<_> = folders.iter().map(|folder| folder.path.as_path()).collect();
    let expected = ["/etc/haft/docs", "/srv/wiki", "/etc/haft/notes"];
    assert_eq!(paths, expected.map(Path::new));
    assert_eq!(folders[2].name.as_deref(), Some("mine"));
    assert_eq!(folders[2].tenants, Some(vec![String::from("acme")]));
    assert_eq!(folders[1].tenants, None);
}

#[test]
fn variables_win_over_the_file_and_flags_over_variables() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\ndata_dir = \"file\"\nmax_runs = 1\n\
                [loop]\nmax_rounds = 1\nretry = { attempts = 1, base = \"1s\" }\n";
    let variables = [
        ("HAFT_SERVER__LISTEN", "127.0.0.1:2"),
        ("HAFT_SERVER__DATA_DIR", "variable"),
        ("HAFT_SERVER__ALLOWED_ORIGINS", "https://a, https://b"),
        ("HAFT_SERVER__DIALECT", "open-responses"),
        ("HAFT_SERVER__MAX_BODY_BYTES", "2KiB"),
        ("HAFT_LIMITS__REQUESTS_PER_MINUTE", "30"),
        ("HAFT_LIMITS__MAX_WAIT", "2s"),
        ("HAFT_LOOP__RETRY__ATTEMPTS", "7"),
        ("HAFT_LOOP__TOOL_TIMEOUT", "5s"),
        ("HAFT_LOOP__REPAIR", "true"),
        ("HAFT_LOOP__MAX_TOTAL_TOKENS", "1000"),
        ("HAFT_RETENTION__MAX_BYTES", "4096"),
        ("HAFT_SEARCH_FILES__FOLDERS", "docs,notes"),
    ];
    let resolved = resolved_with(file, &variables, Flags::default()).unwrap();
    assert_eq!(resolved.listen.to_string(), "127.0.0.1:2");
    assert_eq!(resolved.data_dir, Path::new("variable"), "seen from here");
    assert_eq!(resolved.max_runs, 1, "nobody else said anything");
    assert_eq!(resolved.max_body_bytes, 2048);
    assert_eq!(resolved.allowed_origins.len(), 2);
    assert_eq!(resolved.dialect, DialectChoice::OpenResponses);
    let limits = resolved.limits;
    assert_eq!(limits.keys.requests_per_minute, NonZeroU32::new(30));
    assert_eq!(limits.max_wait, Duration::from_secs(2));
    let options = resolved.loop_options;
    assert_eq!((options.max_rounds, options.retry.attempts), (1, 7));
    assert_eq!(options.retry.base, Duration::from_secs(1));
    assert_eq!(options.tool_timeout, Duration::from_secs(5));
    assert_eq!(options.max_total_tokens, Some(1000));
    assert!(options.repair);
    assert_eq!(resolved.retention.max_bytes, Some(4096));
    let search = resolved.search_files.unwrap();
    assert_eq!(search.folders[1].path, Path::new("notes"), "seen from here");

    let flags = Flags {
        listen: Some("127.0.0.1:3".parse().unwrap()),
        data_dir: Some("flag".into()),
        allow_anonymous: true,
        model: Some(ModelConfig::new("default", Adapter::Offline)),
        has_no_door: false,
        has_gateway: false,
    };
    let resolved = resolved_with(file, &variables, flags).unwrap();
    assert_eq!(resolved.listen.to_string(), "127.0.0.1:3");
    assert_eq!(resolved.data_dir, Path::new("flag"));
    assert!(resolved.allow_anonymous);
    assert_eq!(resolved.models.len(), 1);
}

#[test]
fn a_model_named_like_a_number_can_be_the_default() {
    let file = "[[model]]\nname = \"4\"\nadapter = \"offline\"\n";
    let variables = [("HAFT_SERVER__DEFAULT_MODEL", "4")];
    let resolved = resolved_with(file, &variables, Flags::default()).unwrap();
    assert_eq!(resolved.default_model.as_deref(), Some("4"));
}

/// Files that are wrong, each in its own way.
const BAD_FILES: &[(&str, &str)] = &[
    ("a duration without a unit", "[server]\nstop_wait = 10\n"),
    ("one of the loop", "[loop.retry]\nbase = 500\n"),
    (
        "one of a model",
        "[[model]]\nname = \"a\"\nadapter = \"offline\"\nbreaker = { open = 10 }\n",
    ),
    (
        "a timeout of a model",
        "[[model]]\nname = \"a\"\nadapter = \"offline\"\nidle_timeout = \"30\"\n",
    ),
    ("no TOML", "[server]\nlisten = 127.0.0.1:4141\n"),
    (
        "a string without an end",
        "[server]\nlisten = \"127.0.0.1:4141\n",
    ),
    ("a key twice", "[server]\nmax_runs = 1\nmax_runs = 2\n"),
    ("a misspelt key", "[server]\n  lisen = \"127.0.0.1:4141\"\n"),
    ("a key that nobody knows", "[server]\ncolour = \"red\"\n"),
    ("a misspelt table", "[sever]\nmax_runs = 1\n"),
    ("a key of another table", "[server]\nmax_rounds = 3\n"),
    (
        "a key outside of its table",
        "listen = \"127.0.0.1:4141\"\n",
    ),
    (
        "a misspelt key of a table in a table",
        "[loop.retry]\nattemps = 3\n",
    ),
    (
        "a misspelt key of a model",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nbase_ulr = \"http://h\"\n",
    ),
    (
        "a misspelt key in a table of a model",
        "[[model]]\nname = \"a\"\nadapter = \"openai-chat\"\n[model.chat]\nstream_usge = true\n",
    ),
    ("the wrong kind", "[server]\nmax_runs = \"many\"\n"),
    ("a negative number", "[server]\nmax_runs = -1\n"),
    ("a table for a list", "[model]\nname = \"a\"\n"),
    ("an unknown dialect", "[server]\ndialect = \"open-ai\"\n"),
    (
        "an address without a port",
        "[server]\nlisten = \"localhost\"\n",
    ),
    (
        "a size that is none",
        "[retention]\nmax_bytes = \"10 gigs\"\n",
    ),
    (
        "a duration that is none",
        "[retention]\nmax_age = \"a month\"\n",
    ),
    (
        "a duration of the loop that is none",
        "[loop]\ntool_timeout = \"soon\"\n",
    ),
    ("a limit of nothing", "[loop]\nmax_rounds = 0\n"),
    ("no request at all", "[limits]\nrequests_per_minute = 0\n"),
    ("a wait that is none", "[limits]\nmax_wait = \"a while\"\n"),
    ("a limit of another table", "[limits]\nmax_runs = 3\n"),
    ("a filter that is none", "[log]\nlevel = \"haft=loud\"\n"),
    ("a format that is none", "[log]\nformat = \"xml\"\n"),
    ("a share that is none", "[otlp]\nsample_ratio = 2.0\n"),
    (
        "a collector without a scheme",
        "[otlp]\nendpoint = \"collector:4317\"\n",
    ),
    (
        "a header that cannot be sent",
        "[otlp]\nendpoint = \"http://c\"\nheaders = { \"x a\" = \"hunter2\" }\n",
    ),
    (
        "a collector's variable that is not set",
        "[otlp]\nendpoint = \"http://c\"\nheaders = { x-a = { env = \"GONE\" } }\n",
    ),
    (
        "an origin with a path",
        "[server]\nallowed_origins = [\"https://a.example\", \"https://b.example/\"]\n",
    ),
    ("no adapter", "# models\n\n[[model]]\nname = \"a\"\n"),
    (
        "an unknown adapter",
        "[[model]]\nname = \"a\"\nadapter = \"openai\"\n",
    ),
    (
        "two models of a name",
        "[[model]]\nname = \"a\"\nadapter = \"offline\"\n[[model]]\nname = \"a\"\nadapter = \"offline\"\n",
    ),
    (
        "an alias that is taken",
        "[[model]]\nname = \"a\"\nadapter = \"offline\"\n[[model]]\nname = \"b\"\naliases = [\"c\", \"a\"]\nadapter = \"offline\"\n",
    ),
    (
        "a default that is none",
        "[server]\ndefault_model = \"b\"\n[[model]]\nname = \"a\"\nadapter = \"offline\"\n",
    ),
    (
        "a key in clear",
        "[[model]]\nname = \"a\"\nadapter = \"anthropic\"\napi_key = \"hunter2\"\n",
    ),
    (
        "the server's key in clear",
        "[server]\napi_key = \"hunter2\"\n",
    ),
    (
        "a variable that is not set",
        "[[model]]\nname = \"a\"\nadapter = \"anthropic\"\napi_key_env = \"GONE_KEY\"\n",
    ),
    (
        "the key for its variable",
        "[[model]]\nname = \"a\"\nadapter = \"anthropic\"\napi_key_env = \"hunter2\"\n",
    ),
    (
        "the key for its file",
        "[[model]]\nname = \"a\"\nadapter = \"anthropic\"\napi_key_file = \"hunter2\"\n",
    ),
    (
        "the usual variable that is not set",
        "[[model]]\nname = \"a\"\nadapter = \"anthropic\"\n",
    ),
    (
        "a header's variable that is not set",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nbase_url = \"http://h\"\nheaders = { x-a = { env = \"GONE\" } }\n",
    ),
    (
        "a header that is none",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nheaders = { x-token = { value = \"hunter2\" } }\n",
    ),
    (
        "a server's key that cannot be sent",
        "[server]\napi_key_env = \"ODD_KEY\"\n",
    ),
    (
        "two keys for the server",
        "[server]\napi_key_env = \"SOME_KEY\"\napi_key_file = \"key\"\n",
    ),
    (
        "an address that is none",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nbase_url = \"localhost:11434\"\n",
    ),
    (
        "no script",
        "[[model]]\nname = \"a\"\nadapter = \"scripted\"\n",
    ),
    (
        "a script that is not there",
        "[[model]]\nname = \"a\"\nadapter = \"scripted\"\nscript = \"gone.jsonl\"\n",
    ),
    (
        "a stand-in that is none",
        "[[model]]\nname = \"a\"\nadapter = \"offline\"\nfailover = [\"c\"]\n[[model]]\nname = \"b\"\nadapter = \"offline\"\n",
    ),
    (
        "a model that stands in for itself",
        "[[model]]\nname = \"a\"\naliases = [\"it\"]\nadapter = \"offline\"\nfailover = [\"it\"]\n",
    ),
    (
        "models that stand in for each other",
        "[[model]]\nname = \"a\"\nadapter = \"offline\"\nfailover = [\"b\"]\n[[model]]\nname = \"b\"\nadapter = \"offline\"\nfailover = [\"a\"]\n",
    ),
    (
        "a misspelt key of a breaker",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nbreaker = { failure = 3 }\n",
    ),
    (
        "a breaker that is always open",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nbreaker = { failures = 0 }\n",
    ),
    (
        "a breaker that opens for too long",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nbreaker = { longest = \"10years\" }\n",
    ),
    (
        "a breaker's time that is none",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\n[model.breaker]\nopen = \"soon\"\n",
    ),
    (
        "a health that is asked for all the time",
        "[[model]]\nname = \"a\"\nadapter = \"ollama\"\nhealth = { every = \"1ms\" }\n",
    ),
    (
        "the health of a model without a server",
        "[[model]]\nname = \"a\"\nadapter = \"offline\"\nhealth = {}\n",
    ),
    (
        "a misspelt key of the search",
        "[search_files]\nfolder = [\"docs\"]\n",
    ),
    (
        "a misspelt key of a folder",
        "[search_files]\nfolders = [\n  \"docs\",\n  { path = \"wiki\", nam = \"w\" },\n]\n",
    ),
    (
        "a misspelt key of the programs",
        "[concerto]\nfile = [\"tools.conc\"]\n",
    ),
    (
        "programs without memory",
        "[concerto]\nfiles = [\"tools.conc\"]\nmax_memory = 64\n",
    ),
    ("programs without time", "[concerto]\ncall_limit = \"0s\"\n"),
    (
        "an MCP server that is nowhere",
        "[mcp.files]\nwarm = true\n",
    ),
    (
        "an MCP server that is in two places",
        "[mcp.files]\ncommand = \"a\"\nurl = \"https://a\"\n",
    ),
    (
        "a misspelt key of an MCP server",
        "[mcp.files]\ncommand = \"a\"\narg = [\"hunter2\"]\n",
    ),
    (
        "a misspelt key of a tool",
        "[mcp.files]\ncommand = \"a\"\n[mcp.files.tools.read]\ntimeout = 3\n",
    ),
    (
        "a name that no MCP server can have",
        "[mcp.my__files]\ncommand = \"a\"\n",
    ),
    ("haft's own name", "[mcp.haft]\ncommand = \"a\"\n"),
    (
        "headers for a program",
        "[mcp.files]\ncommand = \"a\"\nheaders = { x-a = \"hunter2\" }\n",
    ),
    (
        "a variable of an MCP server that is not set",
        "[mcp.files]\ncommand = \"a\"\n[mcp.files.env]\nA = \"hunter2-${GONE}\"\n",
    ),
    (
        "a token's variable that is not set",
        "[mcp.files]\nurl = \"https://a\"\nbearer_env = \"GONE\"\n",
    ),
    (
        "an MCP server's address that is none",
        "[mcp.files]\nurl = \"ftp://a\"\n",
    ),
    (
        "a time that is none",
        "[mcp.files]\ncommand = \"a\"\ncall_timeout = 0\n",
    ),
    ("an MCP server that is no table", "[mcp]\nfiles = \"a\"\n"),
    (
        "a file of servers that is not there",
        "[server]\nmcp_servers = \"gone.json\"\n",
    ),
    (
        "a host that is none",
        "[server]\nmcp_hosts = [\"*.example.com\", \"example.com/mcp\"]\n",
    ),
    (
        "a gateway to nobody",
        "[gateway]\nservers = [\"files\", \"mail\"]\n[mcp.files]\ncommand = \"a\"\n",
    ),
    ("a mode that is none", "[gateway]\nmode = \"hidden\"\n"),
];

#[test]
fn a_bad_file_is_one_clear_message_with_its_place_and_without_its_secrets() {
    let mut told = String::new();
    for (what, text) in BAD_FILES {
        let message = resolved(text).expect_err(what);
        assert!(message.starts_with("haft.toml:"), "{what}: {message}");
        assert!(!message.contains("hunter2"), "{what}: {message}");
        writeln!(told, "--- {what}\n{message}\n").unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_bad_variable_is_one_clear_message_with_its_name() {
    let mut told = String::new();
    for (name, value) in [
        ("HAFT_SERVER__LISTEN", "nowhere"),
        ("HAFT_SERVER__LISEN", "127.0.0.1:4141"),
        ("HAFT_SEVER__LISTEN", "127.0.0.1:4141"),
        ("HAFT_SERVER__MAX_RUNS", "many"),
        ("HAFT_SERVER__MAX_RUNS", "0"),
        ("HAFT_SERVER__API_KEY", "hunter2"),
        ("HAFT_SERVER__API_KEY_ENV", "GONE"),
        ("HAFT_SERVER__DIALECT", "french"),
        ("HAFT_LOOP__REPAIR", "perhaps"),
        ("HAFT_LOOP__DEADLINE", "tomorrow"),
        ("HAFT_LOOP__DEADLINE", "10"),
        ("HAFT_SERVER__STOP_WAIT", "10"),
        ("HAFT_LOOP__RETRY", "5"),
        ("HAFT_RETENTION__MAX_AGE", "long"),
        ("HAFT_MODEL__NAME", "a"),
        ("HAFT_MCP__FILES", "a"),
    ] {
        let message = resolved_with("", &[(name, value)], Flags::default()).unwrap_err();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
        writeln!(told, "{message}\n").unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn the_data_folder_is_known_without_anything_else() {
    let file = "[server]\ndata_dir = \"mine\"\napi_key_env = \"GONE_KEY\"\n[[model]]\nname = \"a\"\n\
                adapter = \"anthropic\"\napi_key_env = \"GONE_KEY\"\n";
    let found = |flag: Option<&str>| {
        data_dir(&source(file), &Variables::none(), flag.map(Into::into)).unwrap()
    };
    assert!(resolved(file).is_err());
    assert_eq!(found(None), Path::new("/etc/haft/mine"));
    assert_eq!(found(Some("elsewhere")), Path::new("elsewhere"));
}

#[test]
fn nothing_shows_a_key() {
    let resolved = resolved("[server]\napi_key_env = \"SOME_KEY\"\n").unwrap();
    assert!(!format!("{resolved:?}").contains("hunter2"));
}
