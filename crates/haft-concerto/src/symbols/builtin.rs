//! What every program knows without declaring it: built-ins and the standard library (§11, §12).

/// A function and how many arguments it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its full path.
    pub path: &'static str,
    /// The fewest arguments.
    pub least: usize,
    /// The most arguments.
    pub most: usize,
}

const ANY: usize = usize::MAX;

macro_rules! table {
    ($($path:literal $least:literal $most:expr;)*) => {
        &[$(Builtin { path: $path, least: $least, most: $most }),*]
    };
}

/// Built-ins, by name.
#[rustfmt::skip]
pub const BUILTINS: &[Builtin] = table! {
    "Ok" 1 1; "Err" 1 1; "Some" 1 1; "None" 0 0; "print" 0 ANY; "println" 0 ANY; "len" 1 1; "typeof" 1 1;
    "env" 1 1; "panic" 0 1; "assert" 1 2; "assert_eq" 2 3; "assert_ne" 2 3; "test_emits" 0 0; "emit" 1 2;
    "ToolError::new" 1 1; "HashMap::new" 0 0; "Memory::new" 0 1; "Ledger::new" 0 0; "Map::new" 0 0;
};

/// The standard library, by full path.
#[rustfmt::skip]
pub const STANDARD: &[Builtin] = table! {
    "std::math::abs" 1 1; "std::math::min" 2 2; "std::math::max" 2 2; "std::math::clamp" 3 3;
    "std::math::round" 1 1; "std::math::floor" 1 1; "std::math::ceil" 1 1; "std::math::pow" 2 2;
    "std::math::sqrt" 1 1; "std::math::random" 0 0; "std::math::random_int" 2 2;
    "std::string::split" 2 2; "std::string::join" 2 2; "std::string::trim" 1 1;
    "std::string::trim_start" 1 1; "std::string::trim_end" 1 1; "std::string::replace" 3 3;
    "std::string::to_upper" 1 1; "std::string::to_lower" 1 1; "std::string::contains" 2 2;
    "std::string::starts_with" 2 2; "std::string::ends_with" 2 2; "std::string::substring" 2 3;
    "std::string::len" 1 1; "std::string::repeat" 2 2; "std::string::reverse" 1 1;
    "std::string::parse_int" 1 1; "std::string::parse_float" 1 1;
    "std::json::parse" 1 1; "std::json::stringify" 1 1; "std::json::stringify_pretty" 1 1;
    "std::json::is_valid" 1 1; "std::json::parse_as" 1 1;
    "std::fmt::format" 1 ANY; "std::fmt::pad_left" 2 3; "std::fmt::pad_right" 2 3;
    "std::fmt::truncate" 2 2; "std::fmt::indent" 2 2;
    "std::time::now" 0 0; "std::time::now_ms" 0 0; "std::time::sleep" 1 1; "std::time::measure" 1 1;
    "std::env::get" 1 1; "std::env::require" 1 1; "std::env::has" 1 1; "std::env::all" 0 0;
    "std::log::info" 1 1; "std::log::warn" 1 1; "std::log::error" 1 1; "std::log::debug" 1 1;
    "std::collections::Set::new" 0 0; "std::collections::Set::from" 1 1;
    "std::collections::Queue::new" 0 0; "std::collections::Stack::new" 0 0;
    "std::prompt::template" 2 2; "std::prompt::from_file" 1 2; "std::prompt::count_tokens" 1 1;
    "std::crypto::sha256" 1 1; "std::crypto::md5" 1 1; "std::crypto::uuid" 0 0;
    "std::crypto::random_bytes" 1 1;
    "std::fs::read_file" 1 1; "std::fs::write_file" 2 2; "std::fs::append_file" 2 2;
    "std::fs::remove_file" 1 1; "std::fs::list_dir" 1 1; "std::fs::file_size" 1 1; "std::fs::exists" 1 1;
    "std::http::get" 1 2; "std::http::post" 1 3; "std::http::put" 1 3; "std::http::delete" 1 2;
    "std::http::request" 2 4;
};

/// The built-in or standard function of this path.
pub fn builtin(path: &str) -> Option<&'static Builtin> {
    let list = if path.starts_with("std::") {
        STANDARD
    } else {
        BUILTINS
    };
    list.iter().find(|it| it.path == path)
}

/// Whether a path is a module or a type of the standard library.
pub fn is_std_prefix(path: &str) -> bool {
    let inside = |it: &Builtin| {
        let rest = it.path.strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with("::"))
    };
    // Nearly every name that is looked up is another.
    path.starts_with("std") && STANDARD.iter().any(inside)
}

/// Types that nobody declares.
pub const TYPES: &[&str] = &[
    "Int",
    "Float",
    "String",
    "Bool",
    "Nil",
    "Any",
    "Array",
    "Map",
    "Option",
    "Result",
    "Range",
    "Function",
    "Prompt",
    "Response",
    "Message",
    "ToolCall",
    "ToolRef",
    "McpRef",
    "ModelRef",
    "ModelBuilder",
    "AgentRef",
    "HashMapRef",
    "HashMap",
    "Ledger",
    "LedgerEntry",
    "LedgerRef",
    "Memory",
    "MemoryRef",
    "PipelineRef",
    "SchemaRef",
    "RuntimeError",
    "ToolError",
    "HttpResponse",
    "Emit",
    "Set",
    "Queue",
    "Stack",
];
