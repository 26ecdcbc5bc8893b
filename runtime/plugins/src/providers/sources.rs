//! The three providers that Kafka ships: a properties file, files of a directory, the environment (KIP-297, KIP-632, KIP-887).
//!
//! They read when they are asked and keep nothing, so that a value that changed is seen at the next start. They read files in the calling
//! thread: small ones, of [`FILE_BYTES_MAX`] at most.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use oncewire_api::Properties;
use regex::Regex;

use super::properties_file;

/// The largest file that is read: 1 MiB, more than any secret or properties file has.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

const ALLOWED_PATHS: &str = "allowed.paths";
const ALLOWLIST_PATTERN: &str = "allowlist.pattern";

/// A provider.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Keys of a properties file; the path is the file's.
    File(AllowedPaths),
    /// Files of a directory, which is the path; the key is the file's name.
    Directory(AllowedPaths),
    /// Environment variables; no path.
    Environment(Option<Regex>),
}

impl Source {
    /// Makes a provider of a class.
    ///
    /// # Errors
    /// The parameter that is wrong (empty: the class), and what to change.
    pub(super) fn new(class: &str, parameters: &Properties) -> Result<Self, (&'static str, String)> {
        let simple = class.trim().rsplit('.').next().unwrap_or_default();
        match simple {
            "FileConfigProvider" => Ok(Self::File(AllowedPaths::new(parameters)?)),
            "DirectoryConfigProvider" => Ok(Self::Directory(AllowedPaths::new(parameters)?)),
            "EnvVarConfigProvider" => match parameters.get(ALLOWLIST_PATTERN) {
                None => Ok(Self::Environment(None)),
                Some(text) => Regex::new(&format!("^(?:{text})$"))
                    .map(|pattern| Self::Environment(Some(pattern)))
                    .map_err(|error| (ALLOWLIST_PATTERN, format!("it is no regular expression: {error}"))),
            },
            _ => Err((
                "",
                format!(
                    "there is no config provider '{class}'; there are FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider"
                ),
            )),
        }
    }

    /// All of a path that one reference, or several, may ask for; `None` when the path is none that this provider reads.
    ///
    /// # Errors
    /// What is there but cannot be read, without any of its content.
    pub(super) fn open(&self, path: &str) -> Result<Option<Opened>, String> {
        match self {
            Self::Environment(pattern) if path.is_empty() => Ok(Some(Opened::Environment(pattern.clone()))),
            Self::Environment(_) => Ok(None),
            Self::File(_) | Self::Directory(_) if path.is_empty() => Ok(None),
            Self::File(allowed) => match allowed.check(path) {
                None => Ok(None),
                Some(file) => {
                    let text =
                        read(&file).map_err(|error| format!("Could not read properties from file {path}: {error}"))?;
                    let entries = properties_file::parse(&text)
                        .map_err(|error| format!("Could not read properties from file {path}: {error}"))?;
                    Ok(Some(Opened::File(entries)))
                }
            },
            Self::Directory(allowed) => Ok(allowed.check(path).filter(|path| path.is_dir()).map(Opened::Directory)),
        }
    }
}

/// A path of a provider.
pub(super) enum Opened {
    File(BTreeMap<String, String>),
    Directory(PathBuf),
    Environment(Option<Regex>),
}

impl Opened {
    /// The value of a key; `None` when there is none, or none that may be read.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub(super) fn value(&self, key: &str) -> Result<Option<String>, String> {
        match self {
            Self::File(entries) => Ok(entries.get(key).cloned()),
            Self::Directory(directory) => {
                // A key is a name in the directory; it must not lead out of it.
                let is_name = matches!(Path::new(key).components().collect::<Vec<_>>()[..], [Component::Normal(name)] if name == key);
                let file = directory.join(key);
                if !is_name || !file.is_file() {
                    return Ok(None);
                }
                read(&file).map(Some).map_err(|error| format!("Could not read file {}: {error}", file.display()))
            }
            Self::Environment(pattern) => {
                let is_allowed = pattern.as_ref().is_none_or(|pattern| pattern.is_match(key));
                // A name with these would make the lookup panic.
                let is_name = !key.is_empty() && !key.contains(['=', '\0']);
                Ok(if is_allowed && is_name { std::env::var(key).ok() } else { None })
            }
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    let mut text = Vec::new();
    let file = File::open(file).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(text).map_err(|_| "it is not UTF-8".into())
}

/// Below which paths a provider may read; everywhere when there are none.
#[derive(Clone, Debug)]
pub(super) struct AllowedPaths(Option<Vec<PathBuf>>);

impl AllowedPaths {
    fn new(parameters: &Properties) -> Result<Self, (&'static str, String)> {
        let Some(listed) = parameters.get(ALLOWED_PATHS).filter(|text| !text.trim().is_empty()) else {
            return Ok(Self(None));
        };
        let one = |text: &str| {
            let path = PathBuf::from(text);
            if !path.is_absolute() {
                return Err((ALLOWED_PATHS, format!("path {text} is not absolute")));
            }
            if !path.exists() {
                return Err((ALLOWED_PATHS, format!("path {text} does not exist")));
            }
            Ok(normalized(&path))
        };
        listed.split(',').map(str::trim).map(one).collect::<Result<_, _>>().map(|paths| Self(Some(paths)))
    }

    /// The path without `.` and `..`, when it may be read.
    fn check(&self, path: &str) -> Option<PathBuf> {
        let path = normalized(Path::new(path));
        let is_allowed = self.0.as_ref().is_none_or(|allowed| allowed.iter().any(|prefix| path.starts_with(prefix)));
        is_allowed.then_some(path)
    }
}

/// As Java's `Path.normalize`: by the text alone, links are not followed.
fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    out.push(component);
                }
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_paths_cannot_be_left() {
        let allowed = AllowedPaths(Some(vec!["/run/secrets".into()]));
        assert!(allowed.check("/run/secrets/db.properties").is_some());
        assert!(allowed.check("/run/secrets/./x/../db.properties").is_some());
        for outside in ["/run/secrets/../passwd", "/run/secretsx", "/etc/passwd", "run/secrets", "../run/secrets", ""] {
            assert!(allowed.check(outside).is_none(), "{outside}");
        }
    }

    #[test]
    fn a_key_of_a_directory_is_a_name_in_it() {
        let opened = Opened::Directory("/etc".into());
        for key in ["../etc/hostname", "/etc/hostname", ".", "..", "", "ssl/openssl.cnf", "./hostname"] {
            assert_eq!(opened.value(key), Ok(None), "{key}");
        }
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let parameters = |key: &str, value: &str| Properties::from([(key.into(), value.into())]);
        let wrong = |class, key, value| Source::new(class, &parameters(key, value)).unwrap_err().0;
        assert_eq!(wrong("FileConfigProvider", "allowed.paths", "relative"), "allowed.paths");
        assert_eq!(wrong("a.b.DirectoryConfigProvider", "allowed.paths", "/no/such/path"), "allowed.paths");
        assert_eq!(wrong("EnvVarConfigProvider", "allowlist.pattern", "["), "allowlist.pattern");
        assert_eq!(wrong("VaultConfigProvider", "x", "y"), "");
    }

    #[test]
    fn the_environment_gives_only_what_its_pattern_matches_whole() {
        let source = Source::Environment(Some(Regex::new("^(?:PAT)$").unwrap()));
        let opened = source.open("").unwrap().unwrap();
        assert_eq!(opened.value("PATH"), Ok(None));
        assert!(Source::Environment(None).open("").unwrap().unwrap().value("PATH").unwrap().is_some());
        assert!(source.open("path").unwrap().is_none());
        for odd in ["", "A=B", "A\0"] {
            assert_eq!(Opened::Environment(None).value(odd), Ok(None));
        }
    }
}
