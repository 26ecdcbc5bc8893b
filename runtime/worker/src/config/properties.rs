//! Properties files and connector files as people have them: Java's `.properties` syntax, and Connect's two JSON forms.
//!
//! A connector file is one of: `{"name": …, "key": "value", …}`; a create request `{"name": …, "config": {…},
//! "initial_state": …}` (KIP-980); or Java properties with a `name`. Files are read as UTF-8; where that fails, as
//! ISO-8859-1, which is what Java reads (`\uXXXX` works in both). Limit: [`FILE_BYTES_MAX`].

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest configuration file that is read: 1 MiB.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

pub use oncewire_api::Properties;

/// A configuration file that can't be used, and why.
#[derive(Debug)]
pub struct FileError {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it, and what to change.
    pub problem: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for FileError {}

/// What a connector file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectorFile {
    /// The connector's name.
    pub name: String,
    /// Its configuration, `name` included.
    pub config: Properties,
    /// True when the file asks for the connector to begin paused.
    pub paused: bool,
}

/// Reads a `.properties` file.
///
/// # Errors
/// When it can't be opened or read, is larger than [`FILE_BYTES_MAX`], or is not in properties syntax.
pub fn read_properties(path: &Path) -> Result<Properties, FileError> {
    parse_properties(path, &read(path)?)
}

/// Reads a connector file in any of its three forms.
///
/// # Errors
/// As [`read_properties`]; and when the name is missing, or a JSON value is not a string, number, boolean or null.
pub fn read_connector(path: &Path) -> Result<ConnectorFile, FileError> {
    let text = read(path)?;
    let looks_like_json = text.trim_ascii_start().first() == Some(&b'{');
    let (mut config, name, paused) = if looks_like_json {
        parse_connector_json(path, &text)?
    } else {
        (parse_properties(path, &text)?, None, false)
    };
    let name = name.or_else(|| config.get("name").cloned()).filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(problem(path, "no connector name; add a line name=<connector name>"));
    };
    config.insert("name".to_owned(), name.clone());
    Ok(ConnectorFile { name, config, paused })
}

fn problem(path: &Path, problem: impl Into<String>) -> FileError {
    FileError { path: path.to_owned(), problem: problem.into() }
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let file = File::open(path).map_err(|error| problem(path, format!("can't be opened: {error}")))?;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|error| problem(path, format!("can't be read: {error}")))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(problem(path, format!("is larger than {FILE_BYTES_MAX} bytes, which no configuration file is")));
    }
    Ok(text)
}

fn parse_properties(path: &Path, text: &[u8]) -> Result<Properties, FileError> {
    let mut out = Properties::new();
    // The parser decodes ISO-8859-1, one character a byte. Handing it UTF-8 and turning each character back into its byte
    // keeps UTF-8 files readable; characters that came from a \u escape are above one byte and pass as they are.
    let utf8 = std::str::from_utf8(text).is_ok();
    java_properties::PropertiesIter::new(text)
        .read_into(|key, value| {
            let (key, value) = if utf8 { (utf8_again(&key), utf8_again(&value)) } else { (key, value) };
            out.insert(key, value);
        })
        .map_err(|error| problem(path, format!("is not a properties file: {error}")))?;
    Ok(out)
}

fn utf8_again(latin: &str) -> String {
    let mut bytes = Vec::with_capacity(latin.len());
    for character in latin.chars() {
        match u8::try_from(u32::from(character)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    // A \u00e9 escape in a UTF-8 file makes a lone byte: then the text stands as the parser gave it.
    String::from_utf8(bytes).unwrap_or_else(|_| latin.to_owned())
}

type Parsed = (Properties, Option<String>, bool);

fn parse_connector_json(path: &Path, text: &[u8]) -> Result<Parsed, FileError> {
    let json: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| problem(path, format!("is not valid JSON: {error}")))?;
    let serde_json::Value::Object(object) = json else {
        return Err(problem(path, "must hold one JSON object"));
    };
    let name = match object.get("name") {
        None | Some(serde_json::Value::Null) => None,
        Some(serde_json::Value::String(name)) => Some(name.clone()),
        Some(other) => return Err(problem(path, format!("\"name\" must be a string, not {other}"))),
    };
    match object.get("config") {
        Some(serde_json::Value::Object(config)) => {
            let paused = match object.get("initial_state").and_then(|state| state.as_str()) {
                None => false,
                Some(state) if state.eq_ignore_ascii_case("RUNNING") => false,
                Some(state) if state.eq_ignore_ascii_case("PAUSED") => true,
                Some(state) => {
                    return Err(problem(
                        path,
                        format!("\"initial_state\" is \"{state}\"; here it can be RUNNING or PAUSED"),
                    ));
                }
            };
            Ok((flat(path, config)?, name, paused))
        }
        _ => Ok((flat(path, &object)?, name, false)),
    }
}

fn flat(path: &Path, object: &serde_json::Map<String, serde_json::Value>) -> Result<Properties, FileError> {
    let mut out = Properties::new();
    for (key, value) in object {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::Bool(flag) => flag.to_string(),
            serde_json::Value::Null => continue,
            _ => return Err(problem(path, format!("\"{key}\" must be a string; write lists as \"a,b\""))),
        };
        out.insert(key.clone(), text);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn properties_keep_java_syntax() {
        let file = written(b"# comment\na = 1\nb:two\\\n   lines\nfile=/tmp/\xc3\xa9\\u0041\n! c\nempty=\n");
        let read = read_properties(file.path()).unwrap();
        assert_eq!(read["a"], "1");
        assert_eq!(read["b"], "twolines");
        assert_eq!(read["file"], "/tmp/éA");
        assert_eq!(read["empty"], "");
        assert_eq!(read.len(), 4);
    }

    #[test]
    fn a_file_that_is_not_utf8_is_read_as_java_reads_it() {
        let file = written(b"file=/tmp/\xe9\n");
        assert_eq!(read_properties(file.path()).unwrap()["file"], "/tmp/é");
    }

    /// H109 standalone-config-files
    #[test]
    fn a_connector_comes_in_three_forms() {
        let properties = written(b"name=c\ntopic=t\n");
        let flat = written(br#"{"name":"c","topic":"t"}"#);
        let request = written(br#"{"name":"c","config":{"topic":"t"},"initial_state":"paused","x":1}"#);
        for (file, paused) in [(&properties, false), (&flat, false), (&request, true)] {
            let connector = read_connector(file.path()).unwrap();
            assert_eq!(connector.name, "c");
            assert_eq!(connector.config["topic"], "t");
            assert_eq!(connector.config["name"], "c");
            assert_eq!(connector.paused, paused);
        }
    }

    #[test]
    fn bad_files_are_named_with_their_problem() {
        for (text, says) in [
            (&b"topic=t\n"[..], "no connector name"),
            (b"{\"name\":", "not valid JSON"),
            (b"{\"name\":\"c\",\"config\":{\"a\":[1]}}", "\"a\" must be a string"),
            (b"{\"name\":\"c\",\"config\":{},\"initial_state\":\"FAST\"}", "RUNNING or PAUSED"),
        ] {
            let file = written(text);
            let error = read_connector(file.path()).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(file.path().to_str().unwrap()), "{error}");
        }
        assert!(read_properties(Path::new("/nowhere/x")).unwrap_err().to_string().contains("/nowhere/x"));
    }

    #[test]
    fn an_endless_file_is_refused() {
        assert!(read_properties(Path::new("/dev/zero")).unwrap_err().to_string().contains("larger than"));
    }
}
