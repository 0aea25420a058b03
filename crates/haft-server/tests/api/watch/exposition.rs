//! A strict reader of the text that Prometheus reads (version 0.0.4).

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// All samples of one look.
pub(crate) struct Scrape {
    /// By name and labels as they are written.
    samples: BTreeMap<String, f64>,
    pub(crate) families: BTreeMap<String, Family>,
}

pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// The names of the labels, without `le`.
    pub(crate) labels: BTreeSet<String>,
}

impl Scrape {
    /// Reads a text; whatever is wrong with it is a panic.
    #[track_caller]
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line does not end");
        let mut scrape = Self {
            samples: BTreeMap::new(),
            families: BTreeMap::new(),
        };
        let mut help = HashMap::new();
        let mut current = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, words) = rest.split_once(' ').unwrap();
                assert!(
                    help.insert(name.to_owned(), words.to_owned()).is_none(),
                    "{line}"
                );
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(is_name(name), "{line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                let family = Family {
                    kind: kind.to_owned(),
                    help: help.remove(name).unwrap_or_default(),
                    labels: BTreeSet::new(),
                };
                let earlier = scrape.families.insert(name.to_owned(), family);
                assert!(earlier.is_none(), "{line}");
                current = Some(name.to_owned());
            } else {
                let family = current.as_deref().expect("a sample without a family");
                scrape.sample(family, line);
            }
        }
        scrape.check_histograms();
        scrape
    }

    #[track_caller]
    fn sample(&mut self, family: &str, line: &str) {
        let (series, value) = line.rsplit_once(' ').expect(line);
        let value: f64 = value.parse().expect(line);
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect(line)),
            None => (series, ""),
        };
        let family_of = self.families.get_mut(family).unwrap();
        let rest = name.strip_prefix(family).expect(line);
        match family_of.kind.as_str() {
            "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&rest), "{line}"),
            "counter" => assert!(rest.is_empty() && name.ends_with("_total"), "{line}"),
            _ => assert!(rest.is_empty(), "{line}"),
        }
        for (label, _) in labels_of(labels) {
            if label != "le" {
                family_of.labels.insert(label);
            }
        }
        let earlier = self.samples.insert(series.to_owned(), value);
        assert!(earlier.is_none(), "the series is there twice: {line}");
    }

    /// Buckets grow, and the last holds as many as were counted.
    fn check_histograms(&self) {
        let mut last: HashMap<String, f64> = HashMap::new();
        for (series, value) in self.buckets() {
            let before = last.insert(series.clone(), value).unwrap_or(0.0);
            assert!(value >= before, "{series} shrinks");
        }
        for (series, value) in last {
            let count = self.get(&series.replacen("_bucket", "_count", 1));
            assert_eq!(count, Some(value), "{series}");
        }
    }

    /// The buckets of all histograms by their bounds, without `le`.
    fn buckets(&self) -> Vec<(String, f64)> {
        let mut buckets = Vec::new();
        for (series, value) in &self.samples {
            let Some((name, labels)) = series.split_once("_bucket{") else {
                continue;
            };
            let labels = labels_of(labels.strip_suffix('}').unwrap());
            let is_bound = |(label, _): &&(String, String)| label == "le";
            let bound = &labels.iter().find(is_bound).unwrap().1;
            let bound: f64 = bound.replace("+Inf", "inf").parse().unwrap();
            let others = labels.iter().filter(|label| !is_bound(label));
            let others: Vec<_> = others
                .map(|(name, it)| format!("{name}=\"{it}\""))
                .collect();
            let series = match others.join(",") {
                others if others.is_empty() => format!("{name}_bucket"),
                others => format!("{name}_bucket{{{others}}}"),
            };
            buckets.push((series, bound, *value));
        }
        buckets.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let buckets = buckets.into_iter();
        buckets.map(|(series, _, value)| (series, value)).collect()
    }

    /// The value of a sample, `name{label="value"}`.
    pub(crate) fn get(&self, sample: &str) -> Option<f64> {
        self.samples.get(sample).copied()
    }

    #[track_caller]
    pub(crate) fn assert(&self, sample: &str, value: f64) {
        let name = sample.split('{').next().unwrap();
        let near = self
            .samples
            .iter()
            .filter(|(series, _)| series.starts_with(name));
        let near: Vec<_> = near.collect();
        assert_eq!(self.get(sample), Some(value), "{sample} among {near:#?}");
    }

    /// All series, as they are written.
    pub(crate) fn series(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    name.bytes().all(is_letter) && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// The labels of a series; values may hold anything, escaped.
fn labels_of(mut text: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(is_name(name), "{name}");
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (_, '\\') => value.push(match characters.next().unwrap().1 {
                    'n' => '\n',
                    other => other,
                }),
                (at, '"') => break at,
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        text = &rest[end + 1..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
    labels
}
