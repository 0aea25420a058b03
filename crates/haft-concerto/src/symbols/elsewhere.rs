//! Names that other languages have, and what is written here instead.

/// What is written instead of a name that is not defined.
pub(crate) fn instead_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "null" | "NULL" | "Null" | "undefined" | "nullptr" | "nothing" | "Nil" => {
            "nothing is written `nil`; an empty `Option` is `None`"
        }
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        "this" => "write `self`, the first parameter of a method: `fn m(self)`",
        "console" | "printf" | "echo" | "puts" | "fmt" | "System" => "write `println(…)`",
        "str" | "String" | "toString" | "to_string" => {
            "write `x as String`, or put it into a text: `\"${x}\"`"
        }
        "int" | "Int" | "parseInt" => "write `x as Int`, or `std::string::parse_int(text)`",
        "float" | "Float" | "parseFloat" => {
            "write `x as Float`, or `std::string::parse_float(text)`"
        }
        "range" => "write `0..n`, or `0..=n` with its end",
        "list" | "vec" | "Vec" | "Array" => "arrays are written `[1, 2, 3]`",
        "dict" | "Map" | "HashMap" => "maps are written `{ \"key\": value }`",
        "Error" | "Exception" => "raise any value: `throw \"what went wrong\"`",
        "raise" => "write `throw value`",
        "except" => "write `try { … } catch { … }`",
        "elif" | "elsif" | "elseif" => "write `else if`",
        "and" => "write `&&`",
        "or" => "write `||`",
        "not" => "write `!x`",
        "var" | "val" | "auto" => "write `let x = …`, or `let mut x = …` for what changes",
        "def" | "function" | "func" | "fun" | "lambda" => {
            "write `fn name(x: Type) -> Type { … }`, or a closure: `|x| x + 1`"
        }
        "import" | "from" | "require" | "include" | "package" => {
            "write `mod name;` for a file, `use std::json;` to shorten names"
        }
        "switch" | "case" | "when" => "write `match x { 1 => …, _ => … }`",
        "class" | "interface" => "write `struct Name { … }` and `impl Name { … }`, or `trait`",
        "foreach" | "do" | "until" | "repeat" => {
            "write `for x in list { … }`, `while c { … }` or `loop { … }`"
        }
        "pass" => "leave the block empty: `{}`",
        _ => return None,
    })
}
