//! Backends behind TLS that cannot be trusted, or that speak none.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::adapter::{Adapter, Silence};
use crate::backend::{Behaviour, End, FaultyBackend};
use crate::door::{Door, Told, ask};
use crate::matrix::{serve, stop_at_once};
use crate::support::client;
use crate::{KEY, log};

/// For `localhost`, signed by itself: `openssl req -x509 -newkey ec -pkeyopt
/// ec_paramgen_curve:P-256 -nodes -days 36500 -subj /CN=localhost -addext
/// subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout self_signed.key
/// -out self_signed.crt`.
const CERTIFICATE: &[u8] = include_bytes!("self_signed.crt");
const PRIVATE_KEY: &[u8] = include_bytes!("self_signed.key");

/// A backend whose certificate nobody vouches for; counts who comes, and what anybody says to it.
pub(crate) fn untrusted() -> (u16, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    client();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(PRIVATE_KEY).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (came, said) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&came), Arc::clone(&said));
    // It waits for connections until the process of the test ends.
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            counts.0.fetch_add(1, Ordering::SeqCst);
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket);
            let mut buffer = [0; 1024];
            if let Ok(count) = stream.read(&mut buffer) {
                counts.1.fetch_add(count, Ordering::SeqCst);
            }
        }
    });
    (port, came, said)
}

#[track_caller]
fn check(told: &Told, adapter: Adapter, door: Door, port: u16) {
    let what = format!("{adapter:?} {door:?}: {told:#?}");
    match told {
        Told::Refused {
            status, kind, code, ..
        } => {
            assert!(door.refuses(), "{what}");
            let row = (502, "model_error", "backend_unreachable");
            assert_eq!((*status, &**kind, &**code), row, "{what}");
        }
        Told::Failed { code, .. } => {
            assert!(!door.refuses(), "{what}");
            assert_eq!(code, "backend_unreachable", "{what}");
        }
    }
    let text = told.text();
    assert!(
        !text.contains("hunter2") && !text.contains(&port.to_string()),
        "{what}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_said() {
    let (port, came, said) = untrusted();
    let mut expected = 0;
    for adapter in Adapter::ALL {
        for door in Door::ALL {
            let root = format!("https://localhost:{port}");
            let served = serve(adapter.model(&root, Silence::Nowhere)).await;
            let conversation = served.post("/conversations", json!({})).await.ok();
            let conversation = conversation["id"].as_str().unwrap();
            for _ in 0..2 {
                let told = ask(&served, door, conversation).await;
                check(&told, adapter, door, port);
                expected += 2;
                assert_eq!(came.load(Ordering::SeqCst), expected, "two attempts each");
            }
            stop_at_once(served).await;
        }
    }
    assert_eq!(said.load(Ordering::SeqCst), 0, "no byte of a request");
    let log = log::text();
    assert!(
        log.contains("certificate") && !log.contains(KEY),
        "the operator is told"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_no_tls_gets_no_request() {
    for adapter in Adapter::ALL {
        for door in Door::ALL {
            // It answers whatever comes; what comes is no request.
            let page = [("content-type", "text/html")];
            let behaviour = Behaviour::say(400, &page, "<html>no TLS here</html>", End::Close);
            let backend = FaultyBackend::speaking_first(behaviour).await;
            let port = backend.address.port();
            let root = format!("https://localhost:{port}");
            let served = serve(adapter.model(&root, Silence::Nowhere)).await;
            let conversation = served.post("/conversations", json!({})).await.ok();
            let conversation = conversation["id"].as_str().unwrap();
            for _ in 0..2 {
                let told = ask(&served, door, conversation).await;
                check(&told, adapter, door, port);
            }
            let heard = backend.requests();
            assert_eq!(heard.len(), 4, "two attempts each");
            assert!(
                heard
                    .iter()
                    .all(|it| !it.contains(KEY) && !it.contains("POST"))
            );
            stop_at_once(served).await;
        }
    }
}
