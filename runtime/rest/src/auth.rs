//! Basic authentication, as Java's `BasicAuthSecurityRestExtension` with its `PropertyFileLoginModule` does it.
//!
//! Java finds the users by way of JAAS: a file named by the JVM property `java.security.auth.login.config` with an entry `KafkaConnect`, whose
//! module names a properties file of users and passwords. Here the JAAS file is named by the worker property `rest.basic.auth.jaas.config`, or,
//! so that a start script need not change, by that JVM option in the environment variable `KAFKA_OPTS`.
//!
//! Left out: other login modules, which are Java classes. Unlike Java, a file without users lets nobody in rather than everybody: it is refused.
//!
//! Requests between workers carry no password: `POST /connectors/{c}/tasks` and `PUT /connectors/{c}/fence` pass, since they are signed.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::error::Failure;
use crate::route::{OfConnector, Route};

/// The class that `rest.extension.classes` names.
pub(crate) const EXTENSION: &str = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension";
/// The worker property with the JAAS file's path; ours.
pub(crate) const JAAS_KEY: &str = "rest.basic.auth.jaas.config";
const MODULE: &str = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule";
const ENTRY: &str = "KafkaConnect";
/// Far more than any such file has.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Who may use the interface. Holds digests, so that no password is in memory.
#[derive(Clone)]
pub(crate) struct Users(HashMap<String, [u8; 32]>);

impl std::fmt::Debug for Users {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Users({})", self.0.len())
    }
}

fn digest(password: &str) -> [u8; 32] {
    Sha256::digest(password.as_bytes()).into()
}

impl Users {
    /// Reads the JAAS file and the properties file that it names.
    ///
    /// # Errors
    /// What is wrong, and with which file.
    pub(crate) fn read(jaas: &Path) -> Result<Self, String> {
        let users = login_file(&read(jaas)?).map_err(|error| format!("{}: {error}", jaas.display()))?;
        let path = Path::new(&users);
        let users = Self::parse(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        if users.0.is_empty() {
            return Err(format!(
                "{} has no users, so that nobody could use the REST interface; add a line such as user=password",
                path.display()
            ));
        }
        Ok(users)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let pairs = java_properties::read(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Users(pairs.into_iter().map(|(user, password)| (user, digest(&password))).collect()))
    }

    /// Checks a request.
    ///
    /// # Errors
    /// 401.
    pub(crate) fn check(&self, method: &str, route: &Route, authorization: Option<&str>) -> Result<(), Failure> {
        if is_between_workers(method, route) || authorization.is_some_and(|header| self.knows(header)) {
            return Ok(());
        }
        Err(Failure::new(401, "User cannot access the resource."))
    }

    fn knows(&self, header: &str) -> bool {
        let credentials = header
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
            .and_then(|(_, encoded)| STANDARD.decode(encoded.trim()).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let Some((user, password)) = credentials.as_deref().and_then(|text| text.split_once(':')) else { return false };
        // Digests are compared, so the time that it takes tells nothing of the password.
        self.0.get(user).is_some_and(|known| *known == digest(password))
    }
}

fn is_between_workers(method: &str, route: &Route) -> bool {
    matches!(
        (method, route),
        ("POST", Route::Connector(_, OfConnector::Tasks)) | ("PUT", Route::Connector(_, OfConnector::Fence))
    )
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let length = fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("{shown} is longer than {FILE_BYTES_MAX} bytes"));
    }
    fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))
}

/// The path of the JAAS file in the JVM's options.
pub(crate) fn jaas_of_jvm_options(options: &str) -> Option<String> {
    let option = options.split_whitespace().find_map(|word| word.strip_prefix("-Djava.security.auth.login.config="))?;
    Some(option.trim_matches('"').trim_start_matches("file:").to_owned())
}

/// The `file` of the module in the entry `KafkaConnect`.
fn login_file(jaas: &str) -> Result<String, String> {
    let text: String =
        jaas.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
    let entry = text
        .split("};")
        .filter_map(|entry| entry.split_once('{'))
        .find(|(name, _)| name.trim() == ENTRY)
        .map(|(_, body)| body)
        .ok_or_else(|| format!("it has no entry '{ENTRY} {{ … }};'"))?;
    let module = entry.split_whitespace().next().unwrap_or_default();
    if module != MODULE {
        return Err(format!("the entry {ENTRY} names the module '{module}'; only {MODULE} is supported"));
    }
    let (_, after) = entry.split_once("file=").ok_or_else(|| format!("the entry {ENTRY} has no file=\"…\""))?;
    let after = after.trim_start();
    let file = match after.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => after.split([';', ' ', '\n']).next(),
    };
    file.filter(|file| !file.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| format!("the file of the entry {ENTRY} is empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JAAS: &str = "// users\nKafkaServer { x; };\nKafkaConnect {\n  org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required\n  file=\"/etc/a b.properties\";\n};\n";

    #[test]
    fn the_file_of_the_entry_is_found() {
        assert_eq!(login_file(JAAS).as_deref(), Ok("/etc/a b.properties"));
        assert!(login_file("KafkaServer { x; };").is_err());
        assert!(
            login_file("KafkaConnect { com.example.Other required; };")
                .expect_err("other")
                .contains("com.example.Other")
        );
    }

    #[test]
    fn the_jvm_option_is_found() {
        let options = "-Xmx1g -Djava.security.auth.login.config=/etc/jaas.conf -Dx=y";
        assert_eq!(jaas_of_jvm_options(options).as_deref(), Some("/etc/jaas.conf"));
        assert_eq!(jaas_of_jvm_options("-Xmx1g"), None);
    }

    #[test]
    fn only_the_right_password_is_let_in() {
        let users = Users::parse("ann=p:w=d\nbob=\n").expect("users");
        let header = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let check = |text: &str| users.check("GET", &Route::Root, Some(&header(text))).is_ok();
        assert!(check("ann:p:w=d"));
        assert!(!check("ann:p:w"));
        assert!(!check("eve:p:w=d"));
        assert!(!check("ann"));
        for header in ["", "Basic", "Basic %%%", "Bearer x", "Basic \u{ff}"] {
            assert!(users.check("GET", &Route::Root, Some(header)).is_err(), "{header}");
        }
    }

    #[test]
    fn requests_between_workers_pass() {
        let users = Users::parse("ann=x").expect("users");
        let of = |resource| Route::Connector("c".to_owned(), resource);
        assert!(users.check("POST", &of(OfConnector::Tasks), None).is_ok());
        assert!(users.check("PUT", &of(OfConnector::Fence), None).is_ok());
        assert!(users.check("GET", &of(OfConnector::Tasks), None).is_err());
        assert!(users.check("PUT", &of(OfConnector::Pause), None).is_err());
    }
}
