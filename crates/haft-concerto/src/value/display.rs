//! The display form of values (§4).

use std::fmt::{self, Write};

use super::Value;

/// How deep values are shown; what lies deeper is an ellipsis. Only a program that nests without end
/// comes here, and it must not overflow the stack.
const DEPTH: usize = 256;

/// How long a display form becomes; an ellipsis follows.
const LONGEST: usize = 256 << 20;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Text is as long as it is; all else may be shared within itself, and be much longer than
        // what it takes in memory.
        if let Self::Text(text) = self {
            return f.write_str(text);
        }
        let mut capped = Capped {
            out: f,
            left: LONGEST,
        };
        match write_value(self, &mut capped, 0) {
            Err(fmt::Error) if capped.left == 0 => f.write_str("…"),
            result => result,
        }
    }
}

/// Writes so much and no more.
struct Capped<'a> {
    out: &'a mut dyn Write,
    left: usize,
}

impl Write for Capped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.left {
            self.left = 0;
            return Err(fmt::Error);
        }
        self.left -= text.len();
        self.out.write_str(text)
    }
}

impl Value {
    /// Appends the display form.
    pub fn display_into(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Int(value) => push_int(*value, out),
            // Writing to a String does not fail.
            other => {
                let _ = write!(out, "{other}");
            }
        }
    }
}

/// The digits of an Int, without the ways of formatting: most of what programs put together is text
/// and whole numbers.
fn push_int(value: i64, out: &mut String) {
    let mut digits = ['0'; 20];
    let mut rest = value.unsigned_abs();
    let mut from = digits.len();
    loop {
        from -= 1;
        // A digit is below 10.
        digits[from] = char::from(b'0' + u8::try_from(rest % 10).unwrap_or(0));
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push('-');
    }
    out.extend(&digits[from..]);
}

fn write_value(value: &Value, f: &mut dyn Write, depth: usize) -> fmt::Result {
    if depth > DEPTH {
        return f.write_str("…");
    }
    match value {
        Value::Nil | Value::Absent => f.write_str("nil"),
        Value::Bool(value) => write!(f, "{value}"),
        Value::Int(value) => write!(f, "{value}"),
        Value::Float(value) => write!(f, "{value}"),
        Value::Text(text) => f.write_str(text),
        Value::Array(array) => {
            f.write_char('[')?;
            write_list(array.items(), f, depth)?;
            f.write_char(']')
        }
        Value::Map(map) => {
            f.write_char('{')?;
            for (place, (key, value)) in map.iter().enumerate() {
                if place > 0 {
                    f.write_str(", ")?;
                }
                write!(f, "\"{key}\": ")?;
                write_value(value, f, depth + 1)?;
            }
            f.write_char('}')
        }
        Value::Struct(object) => {
            write!(f, "{} {{", object.def().name)?;
            write_fields(object.fields(), f, depth)?;
            f.write_char('}')
        }
        Value::Enum(object) => {
            let def = object.def();
            write!(f, "{}::{}", def.type_name, def.name)?;
            if !def.fields.is_empty() {
                f.write_str(" {")?;
                write_fields(def.fields.iter().zip(object.values()), f, depth)?;
                f.write_char('}')
            } else if object.values().is_empty() {
                Ok(())
            } else {
                f.write_char('(')?;
                write_list(object.values(), f, depth)?;
                f.write_char(')')
            }
        }
        Value::Ok(inner) => write_wrapped("Ok", inner.get(), f, depth),
        Value::Err(inner) => write_wrapped("Err", inner.get(), f, depth),
        Value::Some(inner) => write_wrapped("Some", inner.get(), f, depth),
        Value::None => f.write_str("None"),
        Value::Range(range) => {
            if let Some(from) = range.from {
                write!(f, "{from}")?;
            }
            f.write_str(if range.inclusive { "..=" } else { ".." })?;
            range.to.map_or(Ok(()), |to| write!(f, "{to}"))
        }
        Value::Function(closure) => write!(f, "<fn {}>", closure.name),
        Value::Native(native) => write!(f, "<fn {}>", native.name),
        Value::Ref(reference) => {
            write!(
                f,
                "<{} {}>",
                reference.kind.word(),
                reference.name.replace('\0', "/")
            )
        }
        Value::Builder(builder) => write!(f, "<model builder {}>", builder.target.name),
        Value::Iter(_) => f.write_str("<iterator>"),
    }
}

fn write_list(items: &[Value], f: &mut dyn Write, depth: usize) -> fmt::Result {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        write_value(item, f, depth + 1)?;
    }
    Ok(())
}

fn write_fields<'a>(
    fields: impl Iterator<Item = (&'a std::sync::Arc<str>, &'a Value)>,
    f: &mut dyn Write,
    depth: usize,
) -> fmt::Result {
    for (place, (name, value)) in fields.enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{name}: ")?;
        write_value(value, f, depth + 1)?;
    }
    Ok(())
}

fn write_wrapped(name: &str, inner: &Value, f: &mut dyn Write, depth: usize) -> fmt::Result {
    write!(f, "{name}(")?;
    write_value(inner, f, depth + 1)?;
    f.write_char(')')
}

#[cfg(test)]
mod tests {
    use super::push_int;

    #[test]
    fn ints_are_written_as_the_formatter_writes_them() {
        for value in [0, 7, -7, 10, -10, 1_234_567_890, i64::MAX, i64::MIN] {
            let mut out = String::from("x");
            push_int(value, &mut out);
            assert_eq!(out, format!("x{value}"));
        }
    }
}
