//! What somebody may have meant by a name that does not exist.

use haft_core::cut;

/// The most suggestions that help.
const SUGGESTIONS: usize = 3;

/// The names most like `wanted`, best first; ties keep the order of `names`.
pub(crate) fn near<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let wanted = cut(wanted).to_lowercase();
    let tolerance = (wanted.chars().count() / 3).max(2);
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let other = name.to_lowercase();
            let distance = strsim::osa_distance(&wanted, &other);
            if distance <= tolerance {
                Some((distance, name))
            } else {
                // `read` for `files__read`: a part of the name is as good as a slip of the pen.
                let is_part = wanted.len() >= 3 && other.contains(&wanted);
                is_part.then_some((tolerance, name))
            }
        })
        .collect();
    found.sort_by_key(|&(distance, _)| distance);
    found.truncate(SUGGESTIONS);
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// ``did you mean `a` or `b`?``, or what else to do when nothing is near.
pub(crate) fn suggestion(near: &[String], otherwise: &str) -> String {
    if near.is_empty() {
        return otherwise.to_owned();
    }
    let quoted: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", quoted.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_the_name() {
        let names = ["get_weather", "files__read", "ping"];
        assert_eq!(near("get_wether", names), ["get_weather"]);
        assert_eq!(near("Ping", names), ["ping"]);
        assert_eq!(near("read", names), ["files__read"]);
        assert!(near("unrelated_thing", names).is_empty());
    }

    #[test]
    fn the_nearest_comes_first_and_three_are_enough() {
        let names = ["abcde", "abcd", "abc", "abcdef"];
        assert_eq!(near("abc", names), ["abc", "abcd", "abcde"]);
    }
}
