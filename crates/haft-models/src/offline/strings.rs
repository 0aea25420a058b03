//! Strings that a message holds: addresses, dates, sums, and words after prepositions.

use std::ops::Range;

use super::prompt::{Prompt, Word};

const PREPOSITIONS: [&str; 10] = [
    "in", "for", "to", "at", "of", "from", "on", "about", "with", "into",
];
/// Where places stand, best first.
const PLACE_PREPOSITIONS: [&str; 6] = ["in", "at", "for", "of", "to", "from"];
/// Where other things stand, best first.
const OTHER_PREPOSITIONS: [&str; 9] =
    ["for", "about", "to", "of", "in", "at", "on", "with", "from"];
/// Words inside of names.
const PARTICLES: [&str; 9] = ["de", "la", "le", "du", "del", "da", "von", "am", "upon"];
/// A phrase has at most so many words.
const MAX_PHRASE_WORDS: usize = 12;
/// Words that belong to no name.
const FILLERS: [&str; 13] = [
    "the",
    "a",
    "an",
    "please",
    "today",
    "tomorrow",
    "tonight",
    "now",
    "right",
    "me",
    "my",
    "like",
    "currently",
];

/// What a property is called, in words of lower case.
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() || (was_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (character.is_alphanumeric(), words.last_mut()) {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What a property is for, by its name and format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Place,
    Address,
    Date,
    Sum,
    /// Whatever the user says.
    Words,
    Unknown,
}

pub(super) fn purpose(name: &[String], format: Option<&str>) -> Purpose {
    let is_any = |words: &[&str]| name.iter().any(|word| words.contains(&word.as_str()));
    match format {
        Some("email" | "uri" | "url" | "hostname") => return Purpose::Address,
        Some("date" | "date-time" | "time") => return Purpose::Date,
        _ => {}
    }
    if is_any(&[
        "email", "mail", "url", "uri", "link", "path", "file", "filename",
    ]) {
        Purpose::Address
    } else if is_any(&["date", "day", "time"]) {
        Purpose::Date
    } else if is_any(&["expression", "formula", "sum", "calculation"]) {
        Purpose::Sum
    } else if is_any(&[
        "city", "location", "place", "country", "region", "town", "station",
    ]) {
        Purpose::Place
    } else if is_any(&[
        "query", "question", "text", "message", "prompt", "input", "content", "body", "search",
        "topic", "keyword", "keywords", "term", "q", "task", "note", "title", "subject",
    ]) {
        Purpose::Words
    } else {
        Purpose::Unknown
    }
}

/// The first word that looks like what the purpose says.
pub(super) fn token<'t>(words: &[Word<'t>], purpose: Purpose) -> Option<Word<'t>> {
    let fits = |word: &&Word<'_>| match purpose {
        Purpose::Address => {
            let text = word.text;
            let has_dot_inside = text.split('.').filter(|piece| !piece.is_empty()).count() > 1;
            word.number().is_none()
                && (text.contains('@')
                    || text.contains("://")
                    || (text.contains('/') && text.chars().any(char::is_alphabetic))
                    || has_dot_inside)
        }
        Purpose::Date => {
            let digits = word.text.chars().filter(char::is_ascii_digit).count();
            digits > 2 && word.text.contains(['-', ':', '/']) && word.number().is_none()
        }
        _ => false,
    };
    words.iter().find(fits).cloned()
}

/// The longest row of numbers and operators, if it has both.
pub(super) fn sum<'t>(prompt: &Prompt<'t>, range: &Range<usize>) -> Option<&'t str> {
    let text = &prompt.text[range.clone()];
    let rows = text.split(|c: char| !(c.is_ascii_digit() || " +-*/^%().".contains(c)));
    rows.map(|row| row.trim().trim_end_matches('.'))
        .filter(|row| {
            row.contains(|c: char| c.is_ascii_digit())
                && row.contains(['+', '-', '*', '/', '^', '%'])
        })
        .max_by_key(|row| row.len())
}

/// The words after a preposition, as a stretch of the message.
pub(super) fn phrase(
    prompt: &Prompt<'_>,
    range: &Range<usize>,
    name: &[String],
    purpose: Purpose,
    used: &[Range<usize>],
) -> Option<Range<usize>> {
    let words = prompt.words_in(range);
    let after = |preposition: &str| {
        let mut places = (0..words.len()).filter(|at| words[*at].lower == preposition);
        places.find_map(|at| {
            let stretch = free_stretch(prompt, &words[at + 1..], purpose, used)?;
            // `for the city of Oslo`: the property's own name is not its value.
            let mut said = prompt.words_in(&stretch).iter();
            (!said.all(|word| name.contains(&word.lower))).then_some(stretch)
        })
    };
    // A property that is itself called `to` or `from` says where to look.
    let own = name
        .iter()
        .find(|word| PREPOSITIONS.contains(&word.as_str()));
    if let Some(own) = own {
        return after(own);
    }
    let order: &[&str] = match purpose {
        Purpose::Place => &PLACE_PREPOSITIONS,
        _ => &OTHER_PREPOSITIONS,
    };
    order.iter().find_map(|preposition| after(preposition))
}

/// The words that belong together at the beginning of these, unless they were used already.
fn free_stretch(
    prompt: &Prompt<'_>,
    words: &[Word<'_>],
    purpose: Purpose,
    used: &[Range<usize>],
) -> Option<Range<usize>> {
    let is_filler = |word: &Word<'_>| FILLERS.contains(&word.lower.as_str());
    let words = words.iter().take(MAX_PHRASE_WORDS);
    let words: Vec<_> = words.skip_while(|word| is_filler(word)).collect();
    let first = words.first()?;
    let mut end = first.start;
    for (at, word) in words.iter().enumerate() {
        let gap = &prompt.text[end..word.start];
        let is_apart = gap.contains([',', ';', '.', '?', '!', '\n', ':', '"']);
        let is_preposition = PREPOSITIONS.contains(&word.lower.as_str());
        // A place written like a name ends where the name does: `Rio de Janeiro` does at the end.
        let next = words.get(at + 1).is_some_and(|next| next.is_capitalised());
        let joins = next && PARTICLES.contains(&word.lower.as_str());
        let leaves_name =
            purpose == Purpose::Place && first.is_capitalised() && !word.is_capitalised() && !joins;
        if is_apart || is_preposition || leaves_name {
            break;
        }
        end = word.end;
    }
    // Fillers at the end belong to the sentence.
    let last = words
        .iter()
        .take_while(|word| word.end <= end)
        .filter(|word| !is_filler(word))
        .last()?;
    let stretch = first.start..last.end;
    let overlaps = |other: &Range<usize>| other.start < stretch.end && stretch.start < other.end;
    (!used.iter().any(overlaps)).then_some(stretch)
}

/// Words written like a name that do not begin the stretch.
pub(super) fn name_in(
    prompt: &Prompt<'_>,
    range: &Range<usize>,
    is_alone: bool,
) -> Option<Range<usize>> {
    let words = prompt.words_in(range);
    let skipped = usize::from(!is_alone);
    let first = words.iter().skip(skipped).position(Word::is_capitalised)? + skipped;
    // `I` is nobody's name.
    if words[first].lower == "i" {
        return None;
    }
    let rest = words[first..].iter();
    let last = rest.take_while(|word| word.is_capitalised()).last()?;
    Some(words[first].start..last.end)
}
