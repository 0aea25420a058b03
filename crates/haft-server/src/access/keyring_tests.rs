use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use super::super::key::{KeySecret, NewKey};
use super::*;

fn opened(folder: &Path, configured: Option<&str>) -> Arc<Keyring> {
    let configured = configured.map(ApiKey::new);
    let file = KeyFile::in_folder(folder);
    Keyring::open(Some(file), configured.as_ref(), KeyLimits::default()).unwrap()
}

fn made(folder: &Path, name: &str, tenant: &str) -> KeySecret {
    let new = NewKey {
        tenant: tenant.to_owned(),
        ..NewKey::named(name)
    };
    KeyFile::in_folder(folder).add(new).unwrap().1
}

#[track_caller]
fn refused(ring: &Keyring, given: Option<&str>) -> (ErrorCode, String) {
    let error = ring.recognise(given).unwrap_err();
    (error.code, error.message)
}

#[track_caller]
fn owner(ring: &Keyring, key: &KeySecret) -> String {
    let pass = ring.recognise(Some(key.expose())).unwrap();
    pass.owner().to_string()
}

#[test]
fn without_any_key_everybody_is_the_default_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let ring = opened(folder.path(), None);
    assert!(!ring.needs_key());
    for given in [None, Some("anything")] {
        assert_eq!(ring.recognise(given).unwrap().owner(), &Owner::default());
    }
}

#[test]
fn a_key_opens_its_tenant_and_nothing_else_opens_anything() {
    let folder = tempfile::tempdir().unwrap();
    let acme = made(folder.path(), "one", "acme");
    let other = made(folder.path(), "two", "other");
    let ring = opened(folder.path(), Some("configured key"));
    assert_eq!(owner(&ring, &acme), "acme");
    assert_eq!(owner(&ring, &other), "other");
    let configured = ring.recognise(Some("configured key")).unwrap();
    assert_eq!(configured.owner(), &Owner::default());
    let almost = &acme.expose()[..acme.expose().len() - 1];
    for given in [
        None,
        Some(""),
        Some("configured"),
        Some(almost),
        Some("configured key "),
    ] {
        assert_eq!(
            refused(&ring, given).0,
            ErrorCode::InvalidApiKey,
            "{given:?}"
        );
    }
    let told = format!("{:?}", ring.recognise(Some(acme.expose())).unwrap());
    assert!(
        !told.contains(acme.expose()) && told.contains("acme"),
        "{told}"
    );
}

#[test]
fn changes_of_the_file_are_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let ring = opened(folder.path(), None);
    let file = KeyFile::in_folder(folder.path());
    let first = made(folder.path(), "first", "acme");
    assert!(!ring.needs_key(), "nobody has looked yet");
    ring.look();
    assert!(ring.needs_key());
    let pass = ring.recognise(Some(first.expose())).unwrap();
    let second = made(folder.path(), "second", "acme");
    file.revoke("first").unwrap();
    ring.look();
    assert_eq!(owner(&ring, &second), "acme");
    let (code, told) = refused(&ring, Some(first.expose()));
    assert_eq!(code, ErrorCode::InvalidApiKey);
    assert!(told.contains("revoked"), "{told}");
    assert!(ring.recognise_again(&pass).is_err(), "also for who is in");
}

#[test]
fn a_key_ends_when_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let short = NewKey {
        lifetime: Some(Duration::ZERO),
        ..NewKey::named("short")
    };
    let (_, short) = KeyFile::in_folder(folder.path()).add(short).unwrap();
    let long = NewKey {
        lifetime: Some(Duration::MAX),
        ..NewKey::named("long")
    };
    let (_, long) = KeyFile::in_folder(folder.path()).add(long).unwrap();
    let ring = opened(folder.path(), None);
    let (code, told) = refused(&ring, Some(short.expose()));
    assert_eq!(code, ErrorCode::InvalidApiKey);
    assert!(told.contains("over"), "{told}");
    assert_eq!(owner(&ring, &long), "default");
}

#[test]
fn a_file_that_cannot_be_used_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let key = made(folder.path(), "one", "acme");
    let ring = opened(folder.path(), Some("configured"));
    let path = KeyFile::in_folder(folder.path()).path().to_owned();
    let good = fs::read_to_string(&path).unwrap();
    let spoilt = [
        String::new(),
        String::from("{}"),
        String::from("[]"),
        good[..good.len() - 5].to_owned(),
        good.replace("\"version\": 1", "\"version\": 2"),
        good.replace("\"tenant\": \"acme\"", "\"tenant\": \"\""),
        // A mistake in a field that ends a key must not make it last for ever.
        good.replace("\"created_at\"", "\"expire_at\": 1, \"created_at\""),
        good.replace("\"sha256\": \"", "\"sha256\": \"zz"),
    ];
    for text in spoilt {
        assert_ne!(text, good);
        fs::write(&path, &text).unwrap();
        ring.look();
        for given in [Some(key.expose()), Some("wrong")] {
            let (code, told) = refused(&ring, given);
            assert_eq!(code, ErrorCode::ServerError, "{text}");
            assert!(told.contains("operator"), "{told}");
        }
        assert_eq!(refused(&ring, None).0, ErrorCode::InvalidApiKey);
        // It stands elsewhere.
        assert!(ring.recognise(Some("configured")).is_ok());
        let again = Keyring::open(
            Some(KeyFile::in_folder(folder.path())),
            None,
            KeyLimits::default(),
        );
        assert!(again.is_err(), "{text}");
    }
    fs::remove_file(&path).unwrap();
    ring.look();
    assert!(ring.needs_key());
    assert_eq!(refused(&ring, Some(key.expose())).0, ErrorCode::ServerError);
    fs::write(&path, &good).unwrap();
    private(&path);
    ring.look();
    assert_eq!(owner(&ring, &key), "acme", "repaired without a restart");
}

#[test]
fn a_file_that_appears_damaged_closes_an_open_server() {
    let folder = tempfile::tempdir().unwrap();
    let ring = opened(folder.path(), None);
    assert!(ring.recognise(None).is_ok());
    fs::write(KeyFile::in_folder(folder.path()).path(), "nonsense").unwrap();
    ring.look();
    assert_eq!(refused(&ring, None).0, ErrorCode::InvalidApiKey);
}

#[cfg(unix)]
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_opens_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let key = made(folder.path(), "one", "acme");
    let ring = opened(folder.path(), None);
    let path = KeyFile::in_folder(folder.path()).path().to_owned();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
    ring.look();
    assert_eq!(refused(&ring, Some(key.expose())).0, ErrorCode::ServerError);
    private(&path);
    ring.look();
    assert_eq!(owner(&ring, &key), "acme");
}

#[test]
fn what_a_key_has_asked_for_is_not_forgotten_when_the_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let one = NonZeroU32::new(1);
    let limits = KeyLimits {
        requests_per_minute: one,
        concurrent: one,
    };
    let own = NewKey {
        limits,
        ..NewKey::named("own")
    };
    let file = KeyFile::in_folder(folder.path());
    let (_, own) = file.add(own).unwrap();
    let (_, plain) = file.add(NewKey::named("plain")).unwrap();
    let ring = opened(folder.path(), None);
    let pass = |key: &KeySecret| ring.recognise(Some(key.expose())).unwrap();
    assert!(pass(&plain).count().is_none());
    assert_eq!(pass(&own).count().unwrap().wait, None);
    let running = pass(&own).0.meter.begin(limits).unwrap();
    let spoil = |text: &str| {
        fs::write(file.path(), text).unwrap();
        ring.look();
    };
    let good = fs::read_to_string(file.path()).unwrap();
    spoil("damaged");
    spoil(&good);
    file.add(NewKey::named("third")).unwrap();
    ring.look();
    assert!(pass(&own).count().unwrap().wait.is_some());
    assert!(pass(&own).0.meter.begin(limits).is_err());
    drop(running);
    assert!(pass(&own).0.meter.begin(limits).is_ok());
}

#[tokio::test]
async fn the_file_is_looked_at_no_more_than_once_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let ring = opened(folder.path(), None);
    let looked = || ring.looked_at.load(Ordering::Relaxed);
    ring.refresh().await;
    assert_eq!(looked(), 0, "it was read a moment ago");
    let key = made(folder.path(), "one", "acme");
    tokio::time::sleep(LOOK_AFTER + Duration::from_millis(20)).await;
    ring.refresh().await;
    let first = looked();
    assert!(first >= 1_000);
    assert_eq!(owner(&ring, &key), "acme");
    ring.refresh().await;
    assert_eq!(looked(), first);
}
