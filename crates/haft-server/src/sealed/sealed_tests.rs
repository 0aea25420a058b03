use std::fs;

use proptest::prelude::*;

use super::*;

fn keys() -> SealingKeys {
    SealingKeys::ephemeral().unwrap()
}

#[test]
fn what_was_sealed_opens_for_its_owner_alone() {
    let keys = keys();
    let sealed = keys.seal("acme", b"hidden").unwrap();
    assert!(is_sealed(&sealed));
    assert!(!sealed.contains("hidden"));
    assert_eq!(keys.unseal("acme", &sealed).unwrap(), b"hidden");
    assert_eq!(keys.unseal("other", &sealed), Err(UnsealError));
    assert_eq!(keys.unseal("", &sealed), Err(UnsealError));
}

#[test]
fn the_same_text_is_sealed_differently_each_time() {
    let keys = keys();
    assert_ne!(keys.seal("a", b"x").unwrap(), keys.seal("a", b"x").unwrap());
}

#[test]
fn what_another_server_sealed_does_not_open() {
    let sealed = keys().seal("a", b"x").unwrap();
    assert_eq!(keys().unseal("a", &sealed), Err(UnsealError));
}

#[test]
fn what_was_never_sealed_does_not_open() {
    let keys = keys();
    let short = format!("haft1.{}", URL_SAFE_NO_PAD.encode([0; 19]));
    for text in [
        "",
        "haft1.",
        "haft1.AAAA",
        "haft1.!",
        "haft2.AAAA",
        "gAAAAAB",
        &short,
        "haft1.é",
    ] {
        assert_eq!(keys.unseal("a", text), Err(UnsealError), "{text}");
    }
    let long = format!("haft1.{}", "A".repeat(MAX_SEALED_CHARS));
    assert_eq!(keys.unseal("a", &long), Err(UnsealError));
}

#[test]
fn a_sealed_text_is_never_longer_than_a_client_accepts() {
    let keys = keys();
    // 36 bytes of key id, nonce and tag come in front and behind.
    let most = (MAX_SEALED_CHARS - PREFIX.len()) / 4 * 3 - 36;
    let sealed = keys.seal("a", &vec![7; most]).unwrap();
    assert!(sealed.len() <= MAX_SEALED_CHARS);
    assert_eq!(keys.unseal("a", &sealed).unwrap().len(), most);
    assert_eq!(keys.seal("a", &vec![7; most + 3]), Err(SealError::TooLarge));
}

#[test]
fn keys_survive_a_restart_and_a_rotation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    let first = SealingKeys::open(&path).unwrap();
    let old = first.seal("a", b"old").unwrap();
    assert_eq!(
        SealingKeys::open(&path).unwrap().unseal("a", &old).unwrap(),
        b"old"
    );

    let rotated = SealingKeys::rotate(&path).unwrap();
    let new = rotated.seal("a", b"new").unwrap();
    assert_eq!(rotated.unseal("a", &old).unwrap(), b"old");
    assert_eq!(first.unseal("a", &new), Err(UnsealError));
    assert_eq!(
        SealingKeys::open(&path).unwrap().unseal("a", &new).unwrap(),
        b"new"
    );
    assert_eq!(format!("{rotated:?}"), "SealingKeys(2)");
}

#[test]
fn two_processes_that_start_at_once_share_one_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| SealingKeys::open(&path).unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let sealed = all[0].seal("a", b"x").unwrap();
    for keys in &all {
        assert_eq!(keys.unseal("a", &sealed).unwrap(), b"x");
    }
}

#[test]
fn rotations_at_once_lose_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| SealingKeys::rotate(&path).unwrap());
        }
    });
    assert_eq!(SealingKeys::open(&path).unwrap().keys.len(), 8);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_keys() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    SealingKeys::open(&path).unwrap();
    SealingKeys::rotate(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = SealingKeys::open(&path).unwrap_err();
    assert!(matches!(error, KeyFileError::TooOpen { .. }));
    assert!(error.to_string().contains("chmod 600"));
}

#[test]
fn a_damaged_file_is_refused_and_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    SealingKeys::open(&path).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    for content in [
        &whole[..whole.len() / 2],
        "",
        "{}",
        r#"{"version":1,"keys":[]}"#,
        r#"{"version":1,"keys":[{"id":"AAAA","created_at":0,"key":"AAAA"}]}"#,
    ] {
        fs::write(&path, content).unwrap();
        let error = SealingKeys::open(&path).unwrap_err();
        assert!(matches!(error, KeyFileError::Damaged { .. }), "{content}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    fs::write(&path, r#"{"version":2,"keys":[]}"#).unwrap();
    let error = SealingKeys::open(&path).unwrap_err();
    assert!(matches!(error, KeyFileError::Version { version: 2, .. }));
}

#[test]
fn what_a_dead_process_left_beside_the_file_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    fs::write(directory.path().join("keys.json.new"), "half").unwrap();
    fs::write(directory.path().join("keys.json.lock"), "").unwrap();
    SealingKeys::open(&path).unwrap();
    assert_eq!(SealingKeys::rotate(&path).unwrap().keys.len(), 2);
}

#[test]
fn a_file_that_cannot_be_made_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = SealingKeys::open(&directory.path().join("no/keys.json")).unwrap_err();
    assert!(matches!(error, KeyFileError::Io { .. }));
}

proptest! {
    #[test]
    fn anything_can_be_sealed_and_opened(owner in ".*", plain in any::<Vec<u8>>()) {
        let keys = keys();
        let sealed = keys.seal(&owner, &plain).unwrap();
        prop_assert_eq!(keys.unseal(&owner, &sealed).unwrap(), plain);
    }

    #[test]
    fn a_text_with_one_changed_bit_never_opens(
        plain in prop::collection::vec(any::<u8>(), 0..64),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
    ) {
        let keys = keys();
        let sealed = keys.seal("a", &plain).unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(&sealed[PREFIX.len()..]).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let changed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes));
        prop_assert_eq!(keys.unseal("a", &changed), Err(UnsealError));
    }

    #[test]
    fn a_text_with_one_changed_or_missing_character_never_opens(
        plain in prop::collection::vec(any::<u8>(), 0..64),
        at in any::<prop::sample::Index>(),
        character in "[A-Za-z0-9_.=-]?",
    ) {
        let keys = keys();
        let sealed = keys.seal("a", &plain).unwrap();
        let at = at.index(sealed.len());
        let changed = format!("{}{character}{}", &sealed[..at], &sealed[at + 1..]);
        prop_assume!(changed != sealed);
        prop_assert_eq!(keys.unseal("a", &changed), Err(UnsealError));
    }

    #[test]
    fn any_text_opens_or_is_refused(text in ".*") {
        prop_assert_eq!(keys().unseal("a", &text), Err(UnsealError));
    }
}
