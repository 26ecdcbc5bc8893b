//! A password or key on its way from the configuration to the one place that needs it.
//!
//! The invariant: nothing prints it. `Debug` is redacted and there is no `Display`; whoever needs the text asks for it by
//! [`Secret::expose`], which is easy to search for. Left out: wiping memory, which strings that were copied before defeat.

use std::fmt;

/// A text that must not appear in logs, errors or reports.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text over.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Must not end up in anything that a person reads.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_it() {
        let text = format!("{:?} {:#?}", Secret::new("hunter2"), Some(Secret::new("hunter2")));
        assert!(!text.contains("hunter2"), "{text}");
    }
}
