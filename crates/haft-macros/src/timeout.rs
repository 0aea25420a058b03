//! `timeout = "30s"`.

use syn::LitStr;

/// Milliseconds of a duration such as `500ms`, `30s`, `2m` or `1h`.
pub(crate) fn milliseconds(text: &LitStr) -> syn::Result<u64> {
    read(&text.value()).ok_or_else(|| {
        syn::Error::new(
            text.span(),
            format!(
                "`{}` is not a timeout: write a whole number above zero and `ms`, `s`, `m` or `h`, \
                 for example \"30s\"",
                text.value()
            ),
        )
    })
}

fn read(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let milliseconds = number.parse::<u64>().ok()?.checked_mul(factor)?;
    (milliseconds > 0).then_some(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_timeout_is_a_whole_number_and_a_unit() {
        assert_eq!(read("500ms"), Some(500));
        assert_eq!(read("30s"), Some(30_000));
        assert_eq!(read("2m"), Some(120_000));
        assert_eq!(read("1h"), Some(3_600_000));
        for bad in [
            "",
            "30",
            "s",
            "0s",
            "1.5s",
            "-1s",
            "30 s",
            "30S",
            "1d",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
