//! Whether this processor has the instructions that the cryptography needs.
//!
//! graviola has no other code path: it would panic at its first use. So this is asked before anything of it is touched,
//! and the answer names everything that is missing at once.
//!
//! Source: "Architecture support" in graviola's documentation.

#[cfg(target_arch = "x86_64")]
macro_rules! features {
    ($($feature:tt),*) => {
        [$(($feature, std::arch::is_x86_feature_detected!($feature))),*]
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! features {
    ($($feature:tt),*) => {
        [$(($feature, std::arch::is_aarch64_feature_detected!($feature))),*]
    };
}

/// Nothing, or what an operator has to know.
#[cfg(target_arch = "x86_64")]
pub(super) fn check() -> Result<(), String> {
    verdict(&features!("aes", "ssse3", "avx", "avx2", "adx", "bmi2", "pclmulqdq"))
}

/// Nothing, or what an operator has to know.
#[cfg(target_arch = "aarch64")]
pub(super) fn check() -> Result<(), String> {
    verdict(&features!("aes", "sha2", "pmull", "neon"))
}

/// Nothing, or what an operator has to know.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn check() -> Result<(), String> {
    Err(format!("TLS is not available on {}; it needs x86_64 or aarch64", std::env::consts::ARCH))
}

#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))] // tested everywhere
fn verdict(features: &[(&str, bool)]) -> Result<(), String> {
    let missing: Vec<&str> = features.iter().filter(|(_, found)| !found).map(|(name, _)| *name).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "this processor lacks {}, which TLS needs here; run on another machine, or let the virtual machine pass its host's processor through",
            missing.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        let error = verdict(&[("aes", true), ("adx", false), ("bmi2", false)]).unwrap_err();
        assert!(error.contains("adx, bmi2") && !error.contains("aes"), "{error}");
        assert_eq!(verdict(&[("aes", true)]), Ok(()));
    }
}
