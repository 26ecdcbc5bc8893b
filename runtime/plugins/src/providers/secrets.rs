//! The values that config providers gave to this worker, and the mask over them for all that it says.
//!
//! ```text
//! ConfigProviders ──remember──► Secrets ──redact──► status records · REST answers · the last words of the process
//!                                       ──masking─► every line of the log
//! ```
//!
//! A connector may quote its configuration in any error, and the worker passes errors on in many places. So the mask sits at the outlets,
//! which are few, and not at the places that word something. A value is remembered before whoever asked for it gets it.
//!
//! Without a secret the mask is one look at a flag.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::redactor::{Redactor, SECRET_BYTES_MIN};

/// So many values are remembered: ten for each of a thousand connectors. Of more, the one that was not asked for the longest is forgotten.
pub const SECRETS_MAX: usize = 10_000;
/// So many bytes of values are remembered, the same way: 16 MiB.
pub const SECRETS_BYTES_MAX: usize = 16 << 20;

/// The secrets of a worker. A cheap clone; all clones are the same register.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Register>);

#[derive(Default)]
struct Register {
    /// Whether there is anything to mask.
    any: AtomicBool,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    redactor: Redactor,
    /// When each was last asked for, counted in questions.
    values: HashMap<Arc<str>, u64>,
    bytes: usize,
    questions: u64,
}

impl Secrets {
    /// Masks this value from now on, unless it is shorter than [`SECRET_BYTES_MIN`].
    pub fn remember(&self, value: &str) {
        if value.len() < SECRET_BYTES_MIN {
            return;
        }
        self.0.known.write().unwrap_or_else(PoisonError::into_inner).remember(value, SECRETS_BYTES_MAX);
        self.0.any.store(true, Ordering::Release);
    }

    /// The text with a mask in place of every value that was resolved so far.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.0.any.load(Ordering::Acquire) {
            return Cow::Borrowed(text);
        }
        self.0.known.read().unwrap_or_else(PoisonError::into_inner).redactor.redact(text)
    }

    /// The same text; nothing is copied unless something is masked.
    pub fn redacted(&self, text: String) -> String {
        match self.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        }
    }

    /// What is written through it is masked. Each call of `write` has to be a whole message: a secret that is cut in two is not seen.
    pub fn masking<W: Write>(&self, inner: W) -> Masking<W> {
        Masking { secrets: self.clone(), inner }
    }
}

impl Known {
    fn remember(&mut self, value: &str, bytes_max: usize) {
        self.questions += 1;
        if let Some(asked) = self.values.get_mut(value) {
            *asked = self.questions;
            return;
        }
        while self.values.len() >= SECRETS_MAX || self.bytes + value.len() > bytes_max {
            if !self.forget_oldest() {
                break;
            }
        }
        self.bytes += value.len();
        self.redactor.hide(value);
        self.values.insert(value.into(), self.questions);
    }

    fn forget_oldest(&mut self) -> bool {
        let oldest = self.values.iter().min_by_key(|(_, asked)| **asked).map(|(value, _)| value.clone());
        let Some(value) = oldest else { return false };
        self.values.remove(&value);
        self.bytes -= value.len();
        self.redactor.forget(&value);
        true
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.known.read().unwrap_or_else(PoisonError::into_inner).values.len())
    }
}

/// See [`Secrets::masking`].
#[derive(Debug)]
pub struct Masking<W> {
    secrets: Secrets,
    inner: W,
}

impl<W: Write> Write for Masking<W> {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        if self.secrets.0.any.load(Ordering::Acquire) {
            // Log lines are UTF-8; of anything else the mask is worth more than the odd byte.
            self.inner.write_all(self.secrets.redact(&String::from_utf8_lossy(message)).as_bytes())?;
        } else {
            self.inner.write_all(message)?;
        }
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_secrets_the_one_not_asked_for_the_longest_is_forgotten() {
        let secrets = Secrets::default();
        let name = |n: usize| format!("secret-{n:06}");
        (0..SECRETS_MAX).for_each(|n| secrets.remember(&name(n)));
        secrets.remember(&name(0));
        secrets.remember(&name(SECRETS_MAX));
        assert_eq!(secrets.redact(&name(0)), "[hidden]", "asked for again");
        assert_eq!(secrets.redact(&name(1)), name(1));
        assert_eq!(secrets.redact(&name(2)), "[hidden]");
        assert_eq!(format!("{secrets:?}"), format!("{SECRETS_MAX} secrets"));
    }

    #[test]
    fn the_bytes_of_all_secrets_are_bounded_and_the_newest_is_known_whatever_its_size() {
        let mut known = Known::default();
        for value in ["aaaaaa", "bbbbbb", "cccccccccccccccc"] {
            known.remember(value, 12);
        }
        assert_eq!(known.redactor.redact("aaaaaa bbbbbb cccccccccccccccc"), "aaaaaa bbbbbb [hidden]");
        assert_eq!((known.values.len(), known.bytes), (1, 16));
    }

    #[test]
    fn what_is_written_is_masked_and_goes_through_untouched_without_a_secret() {
        let secrets = Secrets::default();
        let mut out = Vec::new();
        let odd = [0xff, b'\n'];
        secrets.masking(&mut out).write_all(&odd).unwrap();
        secrets.masking(&mut out).write_all(b"before: hunter2\n").unwrap();
        secrets.remember("hunter2");
        let mut masking = secrets.masking(&mut out);
        masking.write_all(b"after: hunter2\n").unwrap();
        masking.flush().unwrap();
        assert_eq!(&out[..2], odd);
        assert_eq!(&out[2..], b"before: hunter2\nafter: [hidden]\n");
    }
}
