//! SCRAM, the client's side, as a state machine without I/O.
//!
//! ```text
//! ─► n,,n=user,r=ours          ◄─ r=ours+theirs,s=salt,i=iterations
//! ─► c=biws,r=…,p=proof        ◄─ v=signature, or e=error
//! ```
//!
//! The broker proves that it knows the password's keys, too: its signature is checked, and a login without it fails. The
//! number of iterations is bounded on both sides: few would make a stolen answer easy to guess from (RFC 5802 asks for
//! 4096), many would keep us computing. Left out: channel binding (Kafka has none), SASLprep (Java does none either).
//!
//! Source: RFC 5802, RFC 7677, KIP-84.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::digest::{Digest, KeyInit};
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha512};

use crate::config::Secret;

/// What RFC 5802 asks for, and Kafka refuses to store less.
const ITERATIONS_MIN: u32 = 4096;
/// A tenth of a second or so of computing.
const ITERATIONS_MAX: u32 = 1_000_000;
/// A server's message is a few hundred bytes.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// "No channel binding", in base64.
const NO_CHANNEL_BINDING: &str = "c=biws";

/// The hash of a mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

pub(super) struct Scram {
    hash: Hash,
    password: Secret,
    nonce: String,
    first_bare: String,
    stage: Stage,
}

enum Stage {
    First,
    /// The signature that only who knows the password can make.
    Final(Vec<u8>),
    Done,
}

impl Scram {
    /// The nonce must be fresh and random, and of printable ASCII without commas.
    pub(super) fn new(hash: Hash, username: &str, password: Secret, nonce: String) -> Self {
        let first_bare = format!("n={},r={nonce}", escape(username));
        Self { hash, password, nonce, first_bare, stage: Stage::First }
    }

    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.first_bare)
    }

    /// The answer to a server's message; `None` once the server has proved itself.
    pub(super) fn answer(&mut self, message: &[u8]) -> Result<Option<String>, String> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err("the broker's SCRAM message is too long".to_owned());
        }
        let message = std::str::from_utf8(message).map_err(|_| malformed("it is not text"))?;
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::First => {
                let (reply, signature) = self.prove(message)?;
                self.stage = Stage::Final(signature);
                Ok(Some(reply))
            }
            Stage::Final(signature) => check_final(message, &signature).map(|()| None),
            Stage::Done => Err(malformed("it comes after the last one")),
        }
    }

    fn prove(&self, server_first: &str) -> Result<(String, Vec<u8>), String> {
        if let Some(error) = server_first.strip_prefix("e=") {
            return Err(server_error(error));
        }
        let mut fields = server_first.split(',');
        let mut field = |name: &str| fields.next().and_then(|field| field.strip_prefix(name));
        let nonce = field("r=").ok_or_else(|| malformed("no nonce"))?;
        let salt = field("s=").and_then(|salt| BASE64.decode(salt).ok()).ok_or_else(|| malformed("no salt"))?;
        let iterations: u32 =
            field("i=").and_then(|count| count.parse().ok()).ok_or_else(|| malformed("no number of iterations"))?;
        // Theirs must begin with ours, or somebody replays an old login.
        if nonce.strip_prefix(self.nonce.as_str()).is_none_or(str::is_empty) {
            return Err(malformed("its nonce does not begin with ours"));
        }
        if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations) {
            return Err(format!(
                "the broker asks for {iterations} iterations of SCRAM; {ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted"
            ));
        }
        let without_proof = format!("{NO_CHANNEL_BINDING},r={nonce}");
        let signed = format!("{},{server_first},{without_proof}", self.first_bare);
        let password = self.password.expose().as_bytes();
        let (proof, signature) = match self.hash {
            Hash::Sha256 => {
                let mut salted = [0; 32];
                pbkdf2::pbkdf2_hmac::<Sha256>(password, &salt, iterations, &mut salted);
                keys::<Sha256, Hmac<Sha256>>(&salted, &signed)
            }
            Hash::Sha512 => {
                let mut salted = [0; 64];
                pbkdf2::pbkdf2_hmac::<Sha512>(password, &salt, iterations, &mut salted);
                keys::<Sha512, Hmac<Sha512>>(&salted, &signed)
            }
        };
        Ok((format!("{without_proof},p={}", BASE64.encode(proof)), signature))
    }
}

/// The client's proof and the server's signature.
fn keys<D: Digest, M: Mac + KeyInit>(salted: &[u8], signed: &str) -> (Vec<u8>, Vec<u8>) {
    let client_key = mac::<M>(salted, b"Client Key");
    let stored_key = D::digest(&client_key);
    let client_signature = mac::<M>(&stored_key, signed.as_bytes());
    let proof = client_key.iter().zip(&client_signature).map(|(key, signature)| key ^ signature).collect();
    let server_key = mac::<M>(salted, b"Server Key");
    (proof, mac::<M>(&server_key, signed.as_bytes()))
}

fn mac<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

fn check_final(message: &str, signature: &[u8]) -> Result<(), String> {
    let first = message.split(',').next().unwrap_or_default();
    if let Some(error) = first.strip_prefix("e=") {
        return Err(server_error(error));
    }
    let theirs = first.strip_prefix("v=").and_then(|text| BASE64.decode(text).ok());
    match theirs.ok_or_else(|| malformed("no signature"))? == signature {
        true => Ok(()),
        false => {
            Err("the broker does not know the password: its signature is wrong; it may not be the broker that it says"
                .to_owned())
        }
    }
}

/// `=` and `,` have a meaning of their own in a message.
fn escape(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

fn server_error(words: &str) -> String {
    format!("the broker refused it ({words})")
}

fn malformed(what: &str) -> String {
    format!("the broker's SCRAM message is not valid: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT_NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    fn scram(hash: Hash) -> Scram {
        Scram::new(hash, "user", Secret::new("pencil"), CLIENT_NONCE.to_owned())
    }

    /// The example of RFC 7677.
    #[test]
    fn the_example_of_rfc_7677_is_followed_to_the_letter() {
        let mut scram = scram(Hash::Sha256);
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let reply = scram.answer(SERVER_FIRST.as_bytes()).unwrap().unwrap();
        assert_eq!(
            reply,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(scram.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(None));
        assert!(scram.answer(b"v=").is_err());
    }

    #[test]
    fn a_server_that_does_not_know_the_password_is_not_believed() {
        for last in ["v=AAAA", "v=", "", "x", "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5="] {
            for hash in [Hash::Sha256, Hash::Sha512] {
                let mut scram = scram(hash);
                scram.answer(SERVER_FIRST.as_bytes()).unwrap();
                assert!(scram.answer(last.as_bytes()).is_err(), "{last}");
            }
        }
        let mut scram = scram(Hash::Sha512);
        scram.answer(SERVER_FIRST.as_bytes()).unwrap();
        assert!(scram.answer(b"e=invalid-proof").unwrap_err().contains("invalid-proof"));
    }

    #[test]
    fn replays_and_iterations_out_of_bounds_are_refused() {
        let cases = [
            SERVER_FIRST.replace("rOpr", "xOpr"),
            SERVER_FIRST.replace("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", ""),
            SERVER_FIRST.replace("4096", "4095"),
            SERVER_FIRST.replace("4096", "1000001"),
            SERVER_FIRST.replace("4096", "99999999999999"),
            SERVER_FIRST.replace("s=W", "s=%"),
            "e=other-error".to_owned(),
            String::new(),
            "x".repeat(MESSAGE_BYTES_MAX + 1),
        ];
        for first in cases {
            assert!(scram(Hash::Sha256).answer(first.as_bytes()).is_err(), "{first}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let scram = Scram::new(Hash::Sha256, "a=b,c", Secret::new("p"), "n".to_owned());
        assert_eq!(scram.first(), "n,,n=a=3Db=2Cc,r=n");
    }

    proptest::proptest! {
        #[test]
        fn any_message_is_answered_or_refused(message in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
            let _ = scram(Hash::Sha256).answer(&message);
        }
    }
}
