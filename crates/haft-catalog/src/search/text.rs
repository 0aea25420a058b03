//! Words of a text: the same for what tools say and for what is asked (`tool-selection.md` §5).

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

/// A word, in lower case, and where it stands in the cleaned text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) word: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The text in one spelling (NFKC), without characters that nobody sees.
///
/// Texts come from strangers: what is invisible to a person must not decide what is found.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let plain =
        |byte: u8| byte.is_ascii() && (!byte.is_ascii_control() || byte.is_ascii_whitespace());
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfkc().filter(|&c| !is_invisible(c)).collect())
}

fn is_invisible(c: char) -> bool {
    let is_format = matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}');
    is_format || (c.is_control() && !c.is_whitespace())
}

/// What a character can be a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Letters that have capitals, and ASCII digits: words stand apart, `camelCase` has borders.
    Cased,
    /// Letters without capitals.
    Uncased,
}

fn script(c: char) -> Option<Script> {
    if c.is_ascii_alphanumeric() {
        Some(Script::Cased)
    } else if c.is_ascii() || !c.is_alphanumeric() {
        None
    } else if c.is_lowercase() || c.is_uppercase() {
        Some(Script::Cased)
    } else {
        Some(Script::Uncased)
    }
}

/// Hands out each word of a cleaned text, in lower case, with its place.
///
/// `camelCase` and `ACRONYMWord` are broken up, everything that is no letter and no digit separates,
/// and so does a change to a script without capitals.
pub(super) fn each_token(cleaned: &str, mut take: impl FnMut(&str, usize, usize)) {
    let mut word = String::with_capacity(32);
    let mut start = 0;
    let mut previous: Option<(char, Script)> = None;
    let mut characters = cleaned.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let Some(current) = script(c) else {
            if !word.is_empty() {
                take(&word, start, at);
                word.clear();
            }
            previous = None;
            continue;
        };
        let next = characters.peek().map(|&(_, next)| next);
        if let Some(previous) = previous
            && is_border(previous, (c, current), next)
        {
            take(&word, start, at);
            word.clear();
        }
        if word.is_empty() {
            start = at;
        }
        if c.is_ascii() {
            word.push(c.to_ascii_lowercase());
        } else {
            word.extend(c.to_lowercase());
        }
        previous = Some((c, current));
    }
    if !word.is_empty() {
        take(&word, start, cleaned.len());
    }
}

fn is_border((previous, was): (char, Script), (c, is): (char, Script), next: Option<char>) -> bool {
    if was != is {
        return true;
    }
    if !c.is_uppercase() {
        return false;
    }
    let begins_word = previous.is_lowercase() || previous.is_ascii_digit();
    let ends_acronym = previous.is_uppercase() && next.is_some_and(char::is_lowercase);
    begins_word || ends_acronym
}

/// The words of a cleaned text.
pub(super) fn tokens(cleaned: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    each_token(cleaned, |word, start, end| {
        tokens.push(Token {
            word: word.to_owned(),
            start,
            end,
        });
    });
    tokens
}

/// A name without anything that spellings differ in: `create issue`, `create_issue` and
/// `createIssue` are the same. A name without a letter or a digit is what it is.
pub(super) fn squeezed(name: &str) -> String {
    let name = clean(name);
    let mut squeezed = String::with_capacity(name.len());
    each_token(&name, |word, _, _| squeezed.push_str(word));
    if squeezed.is_empty() {
        name.trim().clone_into(&mut squeezed);
    }
    squeezed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let tokens = tokens(&clean(text)).into_iter();
        tokens.map(|token| token.word).collect()
    }

    #[test]
    fn names_are_broken_up_at_their_borders() {
        assert_eq!(words("listFiles"), ["list", "files"]);
        assert_eq!(words("HTTPFetch2Disk"), ["http", "fetch2", "disk"]);
        assert_eq!(words("parseJSONBody"), ["parse", "json", "body"]);
        assert_eq!(
            words("get_current-weather.now/x"),
            ["get", "current", "weather", "now", "x"]
        );
        assert_eq!(words("getPM2.5Level"), ["get", "pm2", "5", "level"]);
    }

    #[test]
    fn other_scripts_stay_whole_words() {
        assert_eq!(words("Größe der Straße"), ["größe", "der", "straße"]);
        assert_eq!(
            words("東京tower ПогодаСегодня"),
            ["東京", "tower", "погода", "сегодня"]
        );
    }

    #[test]
    fn one_spelling_for_the_same_letters() {
        assert_eq!(words("ﬁle Ｗｅａｔｈｅｒ"), ["file", "weather"]);
        assert_eq!(words("cafe\u{301}"), words("café"));
    }

    #[test]
    fn what_nobody_sees_is_not_there() {
        assert_eq!(
            words("se\u{200b}nd \u{202e}ma\u{0}il\u{feff}"),
            ["send", "mail"]
        );
        assert_eq!(words("a\tb\nc\u{85}d"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn words_know_their_places() {
        let tokens = tokens("use `getUser`");
        let places: Vec<_> = tokens.iter().map(|it| (it.start, it.end)).collect();
        assert_eq!(places, [(0, 3), (5, 8), (8, 12)]);
    }

    #[test]
    fn spellings_of_a_name_are_one() {
        for spelling in [
            "create_issue",
            "createIssue",
            "CREATE-ISSUE",
            "Create issue",
            "createissue",
        ] {
            assert_eq!(squeezed(spelling), "createissue", "{spelling}");
        }
    }
}
