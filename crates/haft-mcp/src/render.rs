//! A result for the model: one representation, of bounded size.

use haft_core::{OutputPart, ToolOutput};

use crate::outcome::{Audience, Block, BlockBody, Media, ToolOutcome};
use crate::settings::{Limits, Prefer};

/// How a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderOptions {
    /// How much text the model reads, in bytes.
    pub text_bytes: usize,
    /// How much of images the model sees, in bytes of their base64.
    pub image_bytes: usize,
    /// Which form comes first.
    pub prefer: Prefer,
    /// Whether the server may keep blocks from the model.
    pub trusted: bool,
    /// Whether the model sees images.
    pub takes_images: bool,
}

impl Default for RenderOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            text_bytes: limits.result_text_bytes,
            image_bytes: limits.result_image_bytes,
            prefer: Prefer::Content,
            trusted: false,
            takes_images: false,
        }
    }
}

/// A result as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// For the model.
    pub output: ToolOutput,
    /// Texts that the server means for the person.
    pub for_user: Vec<String>,
}

impl ToolOutcome {
    /// Shows the result: its content if that has any substance, else its structured content, never
    /// both.
    ///
    /// Nothing is fetched, and text past the limit is cut out of the middle.
    pub fn render(&self, options: &RenderOptions) -> Rendered {
        let for_user = self
            .content
            .iter()
            .filter(|block| block.audience == Audience::User);
        let for_user = for_user.map(|block| words(&block.body)).collect();
        let structured = self.structured.as_ref().map(ToString::to_string);
        let parts = match (structured, options.prefer) {
            (Some(json), Prefer::Structured) => vec![Part::Text(json)],
            (Some(json), Prefer::Content) if !self.has_substance() => vec![Part::Text(json)],
            _ => self.parts(options),
        };
        Rendered {
            output: self.output(capped_parts(parts, options.text_bytes)),
            for_user,
        }
    }

    fn has_substance(&self) -> bool {
        let has_substance = |block: &Block| match &block.body {
            BlockBody::Text(text) => !text.trim().is_empty(),
            _ => true,
        };
        self.content.iter().any(has_substance)
    }

    /// Text and images in order, neighbouring texts joined.
    fn parts(&self, options: &RenderOptions) -> Vec<Part> {
        let mut room = options.image_bytes;
        let mut parts: Vec<Part> = Vec::new();
        for block in &self.content {
            if options.trusted && block.audience == Audience::User {
                continue;
            }
            if let BlockBody::Image(image) = &block.body
                && options.takes_images
                && image.data.len() <= room
            {
                room -= image.data.len();
                parts.push(Part::Image(image.clone()));
                continue;
            }
            let words = words(&block.body);
            match parts.last_mut() {
                Some(Part::Text(text)) => {
                    text.push_str("\n\n");
                    text.push_str(&words);
                }
                _ => parts.push(Part::Text(words)),
            }
        }
        parts
    }

    fn output(&self, parts: Vec<Part>) -> ToolOutput {
        let only_text = match parts.as_slice() {
            [] => Some(String::new()),
            [Part::Text(text)] => Some(text.clone()),
            _ => None,
        };
        let message = only_text.clone().unwrap_or_default();
        let output = if self.is_error {
            ToolOutput::failure(message)
        } else {
            ToolOutput::text(message)
        };
        if only_text.is_some() {
            return output;
        }
        output.with_parts(parts.into_iter().map(|part| match part {
            Part::Text(text) => OutputPart::Text { text },
            Part::Image(Media { media_type, data }) => OutputPart::Image { media_type, data },
        }))
    }
}

enum Part {
    Text(String),
    Image(Media),
}

/// A block in words.
fn words(body: &BlockBody) -> String {
    match body {
        BlockBody::Text(text) => text.clone(),
        BlockBody::Image(media) => format!("[image {}, {}]", media.media_type, amount(media)),
        BlockBody::Audio(media) => format!("[audio {}, {}]", media.media_type, amount(media)),
        BlockBody::Link { uri, name } if name.is_empty() => format!("[link <{uri}>]"),
        BlockBody::Link { uri, name } => format!("[link {name} <{uri}>]"),
        BlockBody::TextResource { uri, text } => format!("[resource <{uri}>]\n{text}"),
        BlockBody::BlobResource { uri, media } => {
            format!(
                "[resource <{uri}>, {}, {}]",
                media.media_type,
                amount(media)
            )
        }
        BlockBody::Unknown { kind } => format!("[unsupported content: {kind}]"),
    }
}

fn amount(media: &Media) -> String {
    match media.bytes() {
        bytes @ 0..1000 => format!("{bytes} bytes"),
        bytes => format!("{} KB", bytes / 1000),
    }
}

/// All texts together within the limit, each cut in proportion.
fn capped_parts(mut parts: Vec<Part>, limit: usize) -> Vec<Part> {
    let total: usize = parts
        .iter()
        .map(|part| {
            if let Part::Text(text) = part {
                text.len()
            } else {
                0
            }
        })
        .sum();
    if total > limit {
        for part in &mut parts {
            if let Part::Text(text) = part {
                let share =
                    u128::try_from(limit).unwrap_or(0) * u128::try_from(text.len()).unwrap_or(0);
                let share = share / u128::try_from(total).unwrap_or(1).max(1);
                *text = capped(text, usize::try_from(share).unwrap_or(limit));
            }
        }
    }
    parts
}

/// How much the words between head and tail may need.
const GAP_BYTES: usize = 48;

/// At most `limit` bytes of a text: 70 % from its head and 30 % from its tail, cut at the ends of
/// lines where that costs little.
///
/// ```
/// let text = haft_mcp::capped(&"line\n".repeat(1000), 200);
/// assert!(text.contains("\n[… "), "{text}");
/// assert!(text.len() <= 200);
/// ```
pub fn capped(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(GAP_BYTES);
    let head = &text[..text.floor_char_boundary(room / 10 * 7)];
    let tail = &text[text.ceil_char_boundary(text.len() - room / 10 * 3)..];
    // A line that is longer than half of what is kept is cut anywhere.
    let head = match head.rfind('\n') {
        Some(end) if end >= head.len() / 2 => &head[..end],
        _ => head,
    };
    let tail = match tail.find('\n') {
        Some(end) if end <= tail.len() / 2 => &tail[end + 1..],
        _ => tail,
    };
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn rendered(raw: Value, options: RenderOptions) -> Rendered {
        ToolOutcome::read(raw).render(&options)
    }

    fn text(raw: Value) -> String {
        rendered(raw, RenderOptions::default())
            .output
            .text_for_model()
    }

    #[test]
    fn exactly_one_representation_is_shown() {
        let both = json!({"content": [{"type": "text", "text": "4 degrees"}], "structuredContent": {"degrees": 4}});
        assert_eq!(text(both.clone()), "4 degrees");
        let structured = RenderOptions {
            prefer: Prefer::Structured,
            ..RenderOptions::default()
        };
        assert_eq!(
            rendered(both, structured).output.text_for_model(),
            r#"{"degrees":4}"#
        );
        let blank = json!({"content": [{"type": "text", "text": " \n"}], "structuredContent": {"degrees": 4}});
        assert_eq!(text(blank), r#"{"degrees":4}"#);
        assert_eq!(text(json!({"structuredContent": null})), "null");
        let plain = json!({"content": [{"type": "text", "text": "x"}]});
        assert_eq!(rendered(plain, structured).output.text_for_model(), "x");
    }

    #[test]
    fn every_block_has_its_words() {
        let raw = json!({"content": [
            {"type": "text", "text": "one"}, {"type": "text", "text": "two"},
            {"type": "image", "data": "A".repeat(46_000), "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "resource", "resource": {"uri": "u:1", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "u:2", "blob": "AAAA", "mimeType": "a/b"}},
            {"type": "hologram"},
        ]});
        assert_eq!(
            text(raw),
            "one\n\ntwo\n\n[image image/png, 34 KB]\n\n[audio audio/wav, 3 bytes]\n\n[link x <file:///x>]\n\n\
             [resource <u:1>]\ninside\n\n[resource <u:2>, a/b, 3 bytes]\n\n[unsupported content: hologram]"
        );
    }

    #[test]
    fn a_model_that_sees_images_gets_them_within_the_limit() {
        let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
        let raw = json!({"content": [{"type": "text", "text": "a"}, image("AAAA"), image("AAAABBBB"), {"type": "text", "text": "b"}]});
        let options = RenderOptions {
            takes_images: true,
            image_bytes: 10,
            ..RenderOptions::default()
        };
        let shown = OutputPart::Image {
            media_type: "image/png".into(),
            data: "AAAA".into(),
        };
        let words = |text: &str| OutputPart::Text { text: text.into() };
        assert_eq!(
            rendered(raw, options).output.as_parts(),
            [words("a"), shown, words("[image image/png, 6 bytes]\n\nb")]
        );
    }

    #[test]
    fn only_a_trusted_server_keeps_blocks_from_the_model() {
        let raw = json!({"content": [
            {"type": "text", "text": "for you", "annotations": {"audience": ["user"]}},
            {"type": "text", "text": "for all"},
        ]});
        let untrusted = rendered(raw.clone(), RenderOptions::default());
        assert_eq!(untrusted.output.text_for_model(), "for you\n\nfor all");
        assert_eq!(untrusted.for_user, ["for you"]);
        let trusted = rendered(
            raw,
            RenderOptions {
                trusted: true,
                ..RenderOptions::default()
            },
        );
        assert_eq!(trusted.output.text_for_model(), "for all");
        assert_eq!(trusted.for_user, ["for you"]);
    }

    #[test]
    fn a_failure_stays_one() {
        let raw = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
        let output = rendered(raw, RenderOptions::default()).output;
        assert!(!output.is_success());
        assert_eq!(output.text_for_model(), "no such file");
    }

    #[test]
    fn ten_megabytes_cost_a_hundred_kilobytes() {
        let lines: Vec<_> = (0..1_000_000)
            .map(|index| format!("line {index}"))
            .collect();
        let lines = lines.join(
            "
",
        ) + "
";
        let text = text(json!({"content": [{"type": "text", "text": lines}]}));
        assert!(text.len() <= 100_000);
        assert!(text.starts_with("line 0\nline 1\n"));
        assert!(text.ends_with("line 999999\n"));
        let gap = text.lines().find(|line| line.starts_with("[…")).unwrap();
        assert!(gap.ends_with("bytes left out …]"), "{gap}");
        let (head, _) = text.split_once(gap).unwrap();
        assert!((60_000..=70_000).contains(&head.len()), "{}", head.len());
        let whole = text
            .lines()
            .all(|line| line == gap || line.starts_with("line "));
        assert!(whole, "cut within a line");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_to_its_limit_and_nothing_is_made_up(
            text in "(\\PC|\n){0,400}", limit in 0_usize..500,
        ) {
            let cut = capped(&text, limit);
            if text.len() <= limit {
                prop_assert_eq!(cut, text);
            } else {
                prop_assert!(cut.len() <= limit.max(GAP_BYTES), "{} > {limit}", cut.len());
                let (head, rest) = cut.split_once("\n[… ").unwrap();
                let (_, tail) = rest.split_once(" bytes left out …]\n").unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
            }
        }
    }
}
