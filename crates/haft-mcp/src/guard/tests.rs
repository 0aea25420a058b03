use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Knows what it is told, and how often it was asked.
#[derive(Default)]
struct Book {
    addresses: Vec<&'static str>,
    asked: AtomicUsize,
}

impl Book {
    fn of(addresses: &[&'static str]) -> Self {
        Self {
            addresses: addresses.to_vec(),
            asked: AtomicUsize::new(0),
        }
    }
}

impl Resolver for Book {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let found = self.addresses.iter();
        let found = found
            .map(|address| SocketAddr::new(address.parse().unwrap(), port))
            .collect();
        Box::pin(async move { Ok(found) })
    }
}

async fn admit(
    rules: &[&str],
    url: &str,
    addresses: &[&'static str],
) -> Result<Admitted, NotAllowed> {
    let url = Url::parse(url).unwrap();
    let rules = HostRules::new(rules).unwrap();
    rules.admit(&url, &Book::of(addresses)).await
}

#[tokio::test]
async fn a_public_host_is_pinned_to_what_was_checked() {
    let book = Book::of(&["93.184.215.14", "2606:2800::1"]);
    let url = Url::parse("https://mcp.example.com:8443/mcp").unwrap();
    let admitted = HostRules::default().admit(&url, &book).await.unwrap();
    let pinned = ["93.184.215.14:8443", "[2606:2800::1]:8443"];
    assert_eq!(
        admitted.http_options().pinned,
        Some(pinned.map(|it| it.parse().unwrap()).to_vec())
    );
    assert_eq!(admitted.url, url);
    assert_eq!(book.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn one_private_address_among_public_ones_is_one_too_many() {
    let told = admit(&["*"], "https://x.example/", &["8.8.8.8", "10.0.0.7"]).await;
    let told = told.unwrap_err();
    assert!(matches!(told, NotAllowed::Unknown { .. }), "{told:?}");
    assert_eq!(
        told.to_string(),
        "the host `x.example` has no public address: check its name, or have the operator list the whole origin \
         in `[server] mcp_hosts`"
    );
}

#[tokio::test]
async fn an_internal_name_and_an_unknown_one_give_the_same_message() {
    let internal = admit(&["*"], "https://x.example/", &["10.0.0.7"]).await;
    let unknown = admit(&["*"], "https://x.example/", &[]).await;
    assert_eq!(
        internal.unwrap_err().to_string(),
        unknown.unwrap_err().to_string()
    );
}

#[tokio::test]
async fn every_spelling_of_a_private_address_is_refused() {
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "①②⑦.0.0.1",
        "0",
        "0.0.0.0",
        "10.1",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "192.168.257",
        "100.64.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
    ] {
        let url = format!("https://{host}/mcp");
        // Nobody has to look it up.
        let told = admit(&["*"], &url, &[]).await;
        assert!(
            matches!(told, Err(NotAllowed::NotPublic { .. })),
            "{host}: {told:?}"
        );
    }
    // Not even where the host itself is listed.
    let told = admit(&["127.0.0.1"], "https://127.0.0.1/", &[]).await;
    assert!(
        matches!(told, Err(NotAllowed::NotPublic { .. })),
        "{told:?}"
    );
}

#[tokio::test]
async fn what_is_no_https_holds_a_password_or_is_not_listed_is_refused() {
    let public = &["8.8.8.8"];
    let told = admit(&["*"], "http://x.example/", public).await;
    assert_eq!(
        told,
        Err(NotAllowed::NotHttps {
            host: "x.example".into()
        })
    );
    let told = admit(&["*"], "https://me:hunter2@x.example/", public).await;
    let told = told.unwrap_err();
    assert_eq!(
        told,
        NotAllowed::UserInfo {
            host: "x.example".into()
        }
    );
    assert!(!told.to_string().contains("hunter2"));
    for url in ["ftp://x.example/", "file:///etc/passwd", "data:,x"] {
        assert_eq!(
            admit(&["*"], url, public).await,
            Err(NotAllowed::NoHost),
            "{url}"
        );
    }
    let told = admit(
        &["good.example", "*.fine.example"],
        "https://x.example/",
        public,
    )
    .await;
    assert_eq!(
        told,
        Err(NotAllowed::NotListed {
            host: "x.example".into()
        })
    );
    assert!(
        admit(&["*.fine.example"], "https://a.fine.example/", public)
            .await
            .is_ok()
    );
    assert!(
        admit(&["fine.example"], "https://FINE.example./", public)
            .await
            .is_ok()
    );
    assert!(admit(&[], "https://x.example/", public).await.is_err());
    let told = admit(&["*"], "https://x.example/", &[]).await;
    assert!(matches!(told, Err(NotAllowed::Unknown { .. })), "{told:?}");
}

#[tokio::test]
async fn an_origin_listed_in_full_is_the_operators_own_choice_and_no_other_is() {
    let rules = &["http://127.0.0.1:9000", "https://intern.example"];
    for url in [
        "http://127.0.0.1:9000/mcp",
        "https://intern.example:443/x?y",
    ] {
        let admitted = admit(rules, url, &["10.0.0.1"]).await.unwrap();
        assert_eq!(admitted.pinned, None, "{url}");
    }
    for url in [
        "http://127.0.0.1:9001/",
        "https://127.0.0.1:9000/",
        "http://intern.example/",
        "https://intern.example:444/",
        "http://u@127.0.0.1:9000/",
    ] {
        assert!(admit(rules, url, &["10.0.0.1"]).await.is_err(), "{url}");
    }
}
