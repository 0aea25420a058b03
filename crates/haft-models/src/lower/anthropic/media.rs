//! Images and files as blocks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::input::{File, Input, embedded};

const PDF: &str = "application/pdf";

/// The block of an image or a file; for every other input why there is none.
pub(super) fn source(input: &Input<'_>) -> Result<Value, &'static str> {
    match input {
        Input::Image { url: Some(url), .. } => image(url),
        Input::File(file) => document(file),
        Input::Image { url: None, .. } => {
            Err("the Messages API takes an image by `image_url` only")
        }
        Input::Text(_) | Input::Video { .. } | Input::Unknown => {
            Err("the Messages API has no place for it: leave it out")
        }
    }
}

fn image(url: &str) -> Result<Value, &'static str> {
    let source = match embedded(url) {
        Some((media_type, data)) => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        None if url.starts_with("data:") => {
            return Err("the bytes of an image must be in base64");
        }
        None => json!({"type": "url", "url": url}),
    };
    Ok(json!({"type": "image", "source": source}))
}

/// A PDF as it is, text as text, anything at an address by it.
fn document(file: &File<'_>) -> Result<Value, &'static str> {
    let source = match (file.data, file.url) {
        (Some(data), _) => {
            let bare = || file.name.and_then(media_type_of).map(|kind| (kind, data));
            let is_bare = !data.starts_with("data:");
            let (media_type, data) = embedded(data)
                .or_else(|| is_bare.then(bare).flatten())
                .ok_or(
                    "the bytes of a file must be in base64, with its type in a `data:` address",
                )?;
            bytes(media_type, data)?
        }
        (None, Some(url)) => json!({"type": "url", "url": url}),
        (None, None) => {
            return Err("the Messages API takes a file by `file_data` or `file_url` only");
        }
    };
    let mut block = json!({"type": "document", "source": source});
    if let Some(name) = file.name {
        block["title"] = name.into();
    }
    Ok(block)
}

fn bytes(media_type: &str, data: &str) -> Result<Value, &'static str> {
    if media_type == PDF {
        return Ok(json!({"type": "base64", "media_type": PDF, "data": data}));
    }
    if !media_type.starts_with("text/") && media_type != "application/json" {
        return Err("the Messages API takes PDF documents and text only");
    }
    let text = STANDARD.decode(data).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or("its bytes are no UTF-8 text in base64")?;
    Ok(json!({"type": "text", "media_type": "text/plain", "data": text}))
}

/// What a file is by its name, where it is given without its type.
fn media_type_of(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "pdf" => Some(PDF),
        "txt" | "md" | "csv" | "json" => Some("text/plain"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file<'p>(data: Option<&'p str>, url: Option<&'p str>, name: Option<&'p str>) -> Input<'p> {
        Input::File(File {
            data,
            url,
            id: None,
            name,
        })
    }

    #[test]
    fn files_become_documents_by_what_they_are() {
        let pdf = json!({"type": "document",
            "source": {"type": "base64", "media_type": PDF, "data": "JVBERi0="}, "title": "a.pdf"});
        let text = json!({"type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "größe"}});
        let remote = json!({"type": "document", "source": {"type": "url", "url": "https://h/a"}});
        for (input, block) in [
            (
                file(
                    Some("data:application/pdf;base64,JVBERi0="),
                    None,
                    Some("a.pdf"),
                ),
                &pdf,
            ),
            (file(Some("JVBERi0="), None, Some("a.pdf")), &pdf),
            (
                file(Some("data:text/csv;base64,Z3LDtsOfZQ=="), None, None),
                &text,
            ),
            (file(None, Some("https://h/a"), None), &remote),
        ] {
            assert_eq!(source(&input).as_ref(), Ok(block));
        }
    }

    #[test]
    fn what_is_neither_pdf_nor_text_is_refused() {
        for (data, name) in [
            ("data:application/zip;base64,AAAA", None),
            ("data:text/plain;base64,_w", None),
            ("data:text/plain;base64,/w==", None),
            ("data:application/pdf,raw", None),
            ("AAAA", Some("a.exe")),
            ("AAAA", None),
        ] {
            assert!(source(&file(Some(data), None, name)).is_err(), "{data}");
        }
        assert!(source(&file(None, None, None)).is_err());
        assert!(
            source(&Input::Video {
                url: Some("https://h/v")
            })
            .is_err()
        );
    }

    #[test]
    fn images_are_sent_by_value_and_by_address() {
        let image = |url| {
            source(&Input::Image {
                url: Some(url),
                detail: None,
            })
        };
        assert_eq!(
            image("data:image/png;base64,AAAA").unwrap()["source"],
            json!({"type": "base64", "media_type": "image/png", "data": "AAAA"})
        );
        assert_eq!(
            image("https://example.com/a.png").unwrap()["source"],
            json!({"type": "url", "url": "https://example.com/a.png"})
        );
        assert!(image("data:image/png,raw").is_err());
    }
}
