//! `std::fs`.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use super::builtins::int;
use super::{Context, Native, give, refused, text_of};
use crate::value::Value;
use crate::vm::{Meter, Outcome, Reply};

pub(super) const ALL: &[Native] = &[
    Native::new("std::fs::read_file", (1, 1), |context, a| {
        let path = context
            .machine
            .permissions
            .path(text_of("read_file", &a[0])?);
        let text = match path {
            Ok(path) => read(context.meter(), &path)?,
            Err(denied) => Err(denied),
        };
        give(Value::result(text.map(Value::text)))
    }),
    Native::new("std::fs::write_file", (2, 2), |context, a| {
        let text = text_of("write_file", &a[1])?;
        touch(context, &a[0], |path| {
            writable(path)?;
            fs::write(path, text)
                .map(|()| Value::Nil)
                .map_err(|error| said(path, &error))
        })
    }),
    Native::new("std::fs::append_file", (2, 2), |context, a| {
        let text = text_of("append_file", &a[1])?;
        touch(context, &a[0], |path| {
            writable(path)?;
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map(|()| Value::Nil)
                .map_err(|error| said(path, &error))
        })
    }),
    Native::new("std::fs::remove_file", (1, 1), |context, a| {
        touch(context, &a[0], |path| {
            fs::remove_file(path)
                .map(|()| Value::Nil)
                .map_err(|error| said(path, &error))
        })
    }),
    Native::new("std::fs::list_dir", (1, 1), |context, a| {
        touch(context, &a[0], |path| {
            let mut names = fs::read_dir(path)
                .and_then(|entries| {
                    entries
                        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                        .collect::<Result<Vec<String>, std::io::Error>>()
                })
                .map_err(|error| said(path, &error))?;
            names.sort();
            Ok(Value::array(names.into_iter().map(Value::text).collect()))
        })
    }),
    Native::new("std::fs::file_size", (1, 1), |context, a| {
        touch(context, &a[0], |path| {
            let size = path.metadata().map_err(|error| said(path, &error))?.len();
            Ok(int(usize::try_from(size).unwrap_or(usize::MAX)))
        })
    }),
    Native::new("std::fs::exists", (1, 1), |context, a| {
        let path = context.machine.permissions.path(text_of("exists", &a[0])?);
        match path {
            Ok(path) => give(path.exists()),
            Err(denied) => Err(refused(&denied)),
        }
    }),
];

/// The text of a file. What never ends, or waits for somebody, is not read.
pub(super) fn read(meter: &mut Meter, path: &Path) -> Outcome<Result<String, String>> {
    let size = match path.metadata() {
        Ok(about) if about.is_file() => about.len(),
        Ok(_) => return Ok(Err(format!("{}: not a file", path.display()))),
        Err(error) => return Ok(Err(said(path, &error))),
    };
    let length = usize::try_from(size).unwrap_or(usize::MAX);
    if meter.room(length).is_err() {
        let text = format!("{}: larger than the memory limit", path.display());
        return Ok(Err(text));
    }
    meter.ask(length)?;
    meter.read(length)?;
    // No more than there was, should it grow meanwhile; what the system makes up says no size.
    let most = if size == 0 { 1 << 20 } else { size };
    let read = fs::File::open(path).and_then(|file| {
        let mut text = String::with_capacity(length);
        file.take(most).read_to_string(&mut text)?;
        Ok(text)
    });
    Ok(read.map_err(|error| said(path, &error)))
}

/// Whether something can be written here without waiting: a file, or what is not there yet.
fn writable(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(about) if !about.is_file() => Err(format!("{}: not a file", path.display())),
        _ => Ok(()),
    }
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Does something with a file that the program may touch.
fn touch(
    context: &mut Context<'_>,
    path: &Value,
    act: impl FnOnce(&Path) -> Result<Value, String>,
) -> Outcome<Reply> {
    let path = context.machine.permissions.path(text_of("fs", path)?);
    give(Value::result(path.and_then(|path| act(&path))))
}
