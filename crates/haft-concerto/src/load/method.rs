//! Built-in methods by number, so that no call compares texts.

macro_rules! methods {
    ($($variant:ident $name:literal)*) => {
        /// The name of a built-in method.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Method { $($variant),* }

        impl Method {
            /// The method of a name.
            pub(crate) fn from_name(name: &str) -> Option<Self> {
                Some(match name { $($name => Self::$variant,)* _ => return None })
            }
        }
    };
}

methods! {
    All "all" AndThen "and_then" Any "any" Append "append" Chars "chars" Clear "clear" Concat "concat"
    Contains "contains" Delete "delete" Dequeue "dequeue" Difference "difference" EndsWith "ends_with"
    Enqueue "enqueue" Entries "entries" Enumerate "enumerate" Err "err" Execute "execute"
    ExecuteWithSchema "execute_with_schema" Filter "filter" Find "find" First "first"
    FromAnyKeys "from_any_keys" FromExactKeys "from_exact_keys" FromIdentifier "from_identifier"
    FromKey "from_key" Get "get" Has "has" Identifiers "identifiers" IndexOf "index_of" Insert "insert"
    Intersection "intersection" IsEmpty "is_empty" IsErr "is_err" IsNone "is_none" IsOk "is_ok"
    IsSome "is_some" Join "join" Keys "keys" Last "last" Len "len" Lines "lines" Map "map"
    MapErr "map_err" Messages "messages" Ok "ok" OkOr "ok_or" ParseFloat "parse_float"
    ParseInt "parse_int" Peek "peek" Pop "pop" Push "push" Query "query" Reduce "reduce" Remove "remove"
    Repeat "repeat" Replace "replace" Rest "rest" Reverse "reverse" Run "run" Scope "scope" Set "set"
    Slice "slice" Sort "sort" Split "split" StartsWith "starts_with" ToLower "to_lower"
    ToLowercase "to_lowercase" ToUpper "to_upper" ToUppercase "to_uppercase" Trim "trim" Union "union"
    Unwrap "unwrap" UnwrapOr "unwrap_or" UnwrapOrElse "unwrap_or_else" Update "update"
    UpdateKeys "update_keys" Values "values" WithContext "with_context" WithMemory "with_memory"
    WithTools "with_tools" WithoutTools "without_tools"
}
