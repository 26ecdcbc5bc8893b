//! Finds the `oncewire` binary under test: ONCEWIRE_BIN, else the one of the profile in which the tests were built, brought up to date once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binary's path.
///
/// # Panics
/// It is neither named nor can be built.
pub fn oncewire() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("ONCEWIRE_BIN") {
        Some(path) => {
            let path = PathBuf::from(path);
            assert!(path.is_file(), "ONCEWIRE_BIN names {}, which is no file", path.display());
            path
        }
        None => build(),
    })
}

/// The tests of one `cargo test` run depend on the library crates only, so cargo has no reason to build the binary for them.
fn build() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let profile_dir = test.ancestors().find(|folder| folder.ends_with("deps")).and_then(Path::parent);
    let profile_dir = profile_dir.expect("cargo puts test programs into target/<profile>/deps");
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let target = profile_dir.parent().expect("a profile's folder is in the target folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "oncewire", "--bin", "oncewire", "--profile", profile])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .status();
    assert!(built.is_ok_and(|status| status.success()), "the oncewire binary can be built");
    profile_dir.join("oncewire")
}
