//! A client that proves who it is with a key (RFC 7523).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::secret::Secret;

/// How long an assertion is good.
const LASTS: Duration = Duration::from_mins(5);

/// A key that signs.
enum Key {
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Key {
    /// Reads a key in PEM, as PKCS #8.
    fn read(pem: &Secret) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.expose().as_bytes());
        let der = der.map_err(|_| no_key())?;
        let der = der.secret_pkcs8_der();
        let random = SystemRandom::new();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random) {
            return Ok(Self::P256(key));
        }
        RsaKeyPair::from_pkcs8(der)
            .map(Self::Rsa)
            .map_err(|_| no_key())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let failed = |_| "the key does not sign".to_owned();
        match self {
            Self::P256(key) => {
                let signature = key.sign(&random, message).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

fn no_key() -> String {
    "it is no key of the kinds P-256 or RSA in PEM, as PKCS #8: see `openssl pkcs8 -topk8 -nocrypt`"
        .into()
}

/// Says what is wrong with a key, if anything is.
pub(crate) fn check_key(pem: &Secret) -> Result<(), String> {
    Key::read(pem).map(|_| ())
}

/// The word of a client for itself, to an issuer.
pub(super) fn assertion(client: &str, issuer: &str, pem: &Secret) -> Result<String, String> {
    let key = Key::read(pem)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut unique = [0; 16];
    let random = SystemRandom::new().fill(&mut unique);
    random.map_err(|_| "the system gives no random numbers".to_owned())?;
    let header = json!({"alg": key.algorithm(), "typ": "client-authentication+jwt"});
    let claims = json!({
        "iss": client,
        "sub": client,
        "aud": issuer,
        "iat": now.as_secs(),
        "exp": (now + LASTS).as_secs(),
        "jti": URL_SAFE_NO_PAD.encode(unique),
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = key.sign(signed.as_bytes())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};

    use super::*;

    #[test]
    fn an_assertion_says_who_to_whom_and_is_signed() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let text = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
        let pem = Secret::new(format!(
            "-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n"
        ));
        let made = assertion("robot", "https://as.example", &pem).unwrap();
        let parts: Vec<_> = made.split('.').collect();
        let read = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(read(parts[0])["alg"], "ES256");
        let claims = read(parts[1]);
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (
                &json!("robot"),
                &json!("robot"),
                &json!("https://as.example")
            )
        );
        assert!(claims["exp"].as_u64() > claims["iat"].as_u64());
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random);
        let public = key.unwrap().public_key().as_ref().to_vec();
        let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        let signed = format!("{}.{}", parts[0], parts[1]);
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
            .verify(signed.as_bytes(), &signature)
            .unwrap();
        // No two are the same.
        assert_ne!(
            made,
            assertion("robot", "https://as.example", &pem).unwrap()
        );
    }

    #[test]
    fn what_is_no_key_is_told_without_what_it_is() {
        for pem in [
            "",
            "hunter2",
            "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n",
        ] {
            let told = check_key(&Secret::new(pem)).unwrap_err();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
