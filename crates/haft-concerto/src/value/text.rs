//! Text that is cheap to copy and to append to.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How many bytes lie in the value itself.
const SHORT: usize = 14;

/// Text. Up to 14 bytes lie in the value itself, longer ones are shared and grow in place while
/// nobody else sees them.
#[derive(Clone)]
pub struct Text(Form);

#[derive(Clone)]
enum Form {
    /// Length, bytes.
    Short(u8, [u8; SHORT]),
    Long(Arc<String>),
}

impl Text {
    /// The empty text.
    pub const EMPTY: Self = Self(Form::Short(0, [0; SHORT]));

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Only whole texts are ever put in, so that the check cannot fail.
            Form::Short(length, bytes) => {
                std::str::from_utf8(&bytes[..usize::from(*length)]).unwrap_or_default()
            }
            Form::Long(text) => text,
        }
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Form::Short(length, bytes) => &bytes[..usize::from(*length)],
            Form::Long(text) => text.as_bytes(),
        }
    }

    /// How many bytes it has.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Short(length, _) => usize::from(*length),
            Form::Long(text) => text.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends, in place if nobody else sees it.
    pub fn push_str(&mut self, more: &str) {
        match &mut self.0 {
            Form::Short(length, bytes) => {
                let old = usize::from(*length);
                let new = old + more.len();
                if new <= SHORT {
                    bytes[old..new].copy_from_slice(more.as_bytes());
                    *length = u8::try_from(new).unwrap_or_default(); // at most 14
                } else {
                    let mut text = String::with_capacity(new.max(2 * SHORT));
                    text.push_str(self.as_str());
                    text.push_str(more);
                    self.0 = Form::Long(Arc::new(text));
                }
            }
            Form::Long(text) => {
                if let Some(text) = Arc::get_mut(text) {
                    text.push_str(more);
                } else {
                    let mut copy = String::with_capacity(text.len() + more.len());
                    copy.push_str(text);
                    copy.push_str(more);
                    *text = Arc::new(copy);
                }
            }
        }
    }

    /// How many of its bytes must be copied to append so many: all where somebody else sees it, or where
    /// its buffer is full.
    pub(crate) fn growth(&self, more: usize) -> usize {
        match &self.0 {
            Form::Long(text) if Arc::strong_count(text) > 1 => text.len(),
            Form::Long(text) if text.len() + more > text.capacity() => text.len(),
            Form::Short(..) | Form::Long(_) => 0,
        }
    }

    /// The bytes that it holds outside of the value, and where.
    pub(crate) fn heap(&self) -> Option<(*const u8, usize)> {
        match &self.0 {
            Form::Short(..) => None,
            Form::Long(text) => Some((Arc::as_ptr(text).cast(), text.capacity() + 40)),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        match u8::try_from(text.len()) {
            Ok(length) if text.len() <= SHORT => {
                let mut bytes = [0; SHORT];
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                Self(Form::Short(length, bytes))
            }
            _ => Self(Form::Long(Arc::new(text.to_owned()))),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        if text.len() <= SHORT {
            Self::from(text.as_str())
        } else {
            Self(Form::Long(Arc::new(text)))
        }
    }
}

impl From<char> for Text {
    fn from(character: char) -> Self {
        Self::from(&*character.encode_utf8(&mut [0; 4]))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text.0 {
            Form::Short(..) => text.as_str().to_owned(),
            Form::Long(text) => Arc::unwrap_or_clone(text),
        }
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

// As `str` does, so that maps can be asked with one.
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Text in a message: what is long is cut, visibly.
pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    const LONG: usize = 1000;
    if text.len() <= LONG {
        return Cow::Borrowed(text);
    }
    let mut cut = text[..text.floor_char_boundary(LONG)].to_owned();
    cut.push('…');
    Cow::Owned(cut)
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn text_grows_from_short_to_long_and_keeps_what_it_says() {
        let mut text = Text::from("");
        let mut expected = String::new();
        for number in 0..200 {
            let more = format!("{number}ä");
            text.push_str(&more);
            expected.push_str(&more);
            assert_eq!(text.as_str(), expected);
            assert_eq!(text.len(), expected.len());
            assert_eq!(text, Text::from(expected.clone()));
        }
    }

    #[test]
    fn a_copy_does_not_see_what_is_appended_later() {
        let mut text = Text::from("longer than fourteen bytes");
        let copy = text.clone();
        text.push_str("!");
        assert_eq!(copy.as_str(), "longer than fourteen bytes");
        assert_eq!(text.as_str(), "longer than fourteen bytes!");
    }
}
