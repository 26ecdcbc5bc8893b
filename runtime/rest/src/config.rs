//! The worker's keys that concern REST. Pure, apart from `KAFKA_OPTS`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::auth::{EXTENSION, JAAS_KEY, Users, jaas_of_jvm_options};
use crate::client::RestClient;
use crate::cors::Cors;
use crate::header_rules::{self, HeaderRule};
use crate::tls::TlsSettings;

/// Java's default of `listeners`.
const DEFAULT_LISTENERS: &str = "http://:8083";
/// Why there is no URL to give out.
pub(crate) const NOT_LISTENED_TO: &str =
    "rest.advertised.listener names a scheme that no listener has; add such a listener to listeners";
/// Of the prefixed `ssl.*` keys.
const MAIN_PREFIX: &str = "listeners.https.";
const ADMIN_PREFIX: &str = "admin.listeners.https.";

/// How a listener is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In plain text.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// As in a URL.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Plain or TLS.
    pub scheme: Scheme,
    /// Empty for every interface; an IPv6 address without brackets.
    pub host: String,
    /// 0 for any free one.
    pub port: u16,
}

/// `admin.listeners`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    /// Unset: on the main listeners.
    OnMain,
    /// Empty: nowhere.
    Off,
    /// On its own listeners only.
    Own(Vec<Listener>),
}

/// `rest.advertised.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advertised {
    /// Which kind of listener.
    pub scheme: Option<Scheme>,
    /// Its name for others.
    pub host: Option<String>,
    /// Its port for others.
    pub port: Option<u16>,
}

/// Everything that the REST interface takes from the worker's properties.
#[derive(Clone, Debug)]
pub struct RestConfig {
    /// `listeners`.
    pub listeners: Vec<Listener>,
    /// `admin.listeners`.
    pub admin: Admin,
    /// `rest.advertised.*`.
    pub advertised: Advertised,
    /// For the main listeners, and for requests to other workers.
    pub tls: TlsSettings,
    /// For the admin listeners.
    pub admin_tls: TlsSettings,
    /// `access.control.*`.
    pub cors: Option<Cors>,
    /// `response.http.headers.config`.
    pub headers: Vec<HeaderRule>,
    /// The JAAS file, when the basic-auth extension is on.
    pub basic_auth_jaas: Option<PathBuf>,
    /// `topic.tracking.enable`.
    pub topic_tracking: bool,
    /// `topic.tracking.allow.reset`.
    pub topic_tracking_reset: bool,
}

impl RestConfig {
    /// Reads the keys; the second part are warnings to log.
    ///
    /// # Errors
    /// A value is wrong; the text names the key.
    pub fn from_properties(properties: &BTreeMap<String, String>) -> Result<(Self, Vec<String>), String> {
        Self::parse(properties, std::env::var("KAFKA_OPTS").ok().as_deref())
    }

    fn parse(properties: &BTreeMap<String, String>, jvm_options: Option<&str>) -> Result<(Self, Vec<String>), String> {
        let value = |key: &str| properties.get(key).map(|value| value.trim());
        let filled = |key: &str| value(key).filter(|value| !value.is_empty());
        let admin = match value("admin.listeners") {
            None => Admin::OnMain,
            Some("") => Admin::Off,
            Some(list) => Admin::Own(listeners("admin.listeners", list)?),
        };
        let cors = Cors::from_keys(
            value("access.control.allow.origin").unwrap_or_default(),
            value("access.control.allow.methods").unwrap_or_default(),
        );
        let headers = header_rules::parse(value("response.http.headers.config").unwrap_or_default())
            .map_err(|error| format!("response.http.headers.config: {error}"))?;
        let config = RestConfig {
            listeners: listeners("listeners", filled("listeners").unwrap_or(DEFAULT_LISTENERS))?,
            admin,
            advertised: advertised(&filled)?,
            tls: TlsSettings::from_properties(properties, MAIN_PREFIX)?,
            admin_tls: TlsSettings::from_properties(properties, ADMIN_PREFIX)?,
            cors,
            headers,
            basic_auth_jaas: basic_auth(&filled, jvm_options)?,
            topic_tracking: flag("topic.tracking.enable", value("topic.tracking.enable"))?,
            topic_tracking_reset: flag("topic.tracking.allow.reset", value("topic.tracking.allow.reset"))?,
        };
        Ok((config, warnings(properties)))
    }
}

impl RestConfig {
    /// What would keep the server from starting although each value is well formed: stores, files of users, an advertised listener
    /// that there is not. Reads those files, and binds nothing.
    pub fn problems(&self) -> Vec<String> {
        let is_https = |listeners: &[Listener]| listeners.iter().any(|listener| listener.scheme == Scheme::Https);
        let mut checks = vec![RestClient::new(self).map(drop)];
        if is_https(&self.listeners) {
            checks.insert(0, self.tls.server_config().map(drop));
        }
        if matches!(&self.admin, Admin::Own(listeners) if is_https(listeners)) {
            checks.push(self.admin_tls.server_config().map(drop));
        }
        checks.extend(self.basic_auth_jaas.as_deref().map(|jaas| Users::read(jaas).map(drop)));
        if advertised_url(&self.advertised, &self.listeners, "localhost").is_none() {
            checks.push(Err(NOT_LISTENED_TO.to_owned()));
        }
        let mut problems: Vec<String> = Vec::new();
        for problem in checks.into_iter().filter_map(Result::err) {
            // A store that listeners and requests share is read by both.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}

fn warnings(properties: &BTreeMap<String, String>) -> Vec<String> {
    let ignored =
        ["ssl.provider", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.secure.random.implementation"];
    let prefixed = |key: &&String| {
        [MAIN_PREFIX, ADMIN_PREFIX]
            .iter()
            .any(|prefix| key.strip_prefix(prefix).is_some_and(|rest| ignored.contains(&rest)))
    };
    properties
        .keys()
        .filter(prefixed)
        .map(|key| format!("{key} is not used: the TLS library chooses for itself"))
        .collect()
}

fn flag(key: &str, value: Option<&str>) -> Result<bool, String> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(format!("{key} is '{other}'; it can be true or false")),
    }
}

fn listeners(key: &str, list: &str) -> Result<Vec<Listener>, String> {
    list.split(',').map(str::trim).map(|url| listener(url).map_err(|error| format!("{key}: '{url}' {error}"))).collect()
}

fn scheme(name: &str) -> Result<Scheme, String> {
    match name.to_ascii_lowercase().as_str() {
        "http" => Ok(Scheme::Http),
        "https" => Ok(Scheme::Https),
        _ => Err("is spoken to by http or https alone".to_owned()),
    }
}

fn listener(url: &str) -> Result<Listener, String> {
    let format = || "has not the form scheme://host:port, such as http://0.0.0.0:8083".to_owned();
    let (name, rest) = url.split_once("://").ok_or_else(format)?;
    let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(format)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if !host.chars().all(|character| character.is_ascii_alphanumeric() || "-%._:".contains(character)) {
        return Err(format());
    }
    Ok(Listener { scheme: scheme(name)?, host: host.to_owned(), port: port.parse().map_err(|_| format())? })
}

fn advertised<'a>(filled: &dyn Fn(&str) -> Option<&'a str>) -> Result<Advertised, String> {
    let told = |key: &'static str| move |error: String| format!("{key}: {error}");
    let scheme =
        filled("rest.advertised.listener").map(scheme).transpose().map_err(told("rest.advertised.listener"))?;
    let port = filled("rest.advertised.port")
        .map(|port| port.parse().map_err(|_| format!("rest.advertised.port: '{port}' is no port")))
        .transpose()?;
    let host = filled("rest.advertised.host.name").map(str::to_owned);
    if host.as_deref().is_some_and(|host| host.contains(['/', ' ', '@', '?', '#'])) {
        return Err("rest.advertised.host.name: it is a host's name alone, without scheme and path".to_owned());
    }
    Ok(Advertised { scheme, host, port: port.filter(|port| *port != 0) })
}

fn basic_auth<'a>(
    filled: &dyn Fn(&str) -> Option<&'a str>,
    jvm_options: Option<&str>,
) -> Result<Option<PathBuf>, String> {
    let mut on = false;
    for class in
        filled("rest.extension.classes").unwrap_or_default().split(',').map(str::trim).filter(|class| !class.is_empty())
    {
        if class != EXTENSION && class != "BasicAuthSecurityRestExtension" {
            return Err(format!("rest.extension.classes: '{class}' is a Java class; only {EXTENSION} is built in"));
        }
        on = true;
    }
    if !on {
        return Ok(None);
    }
    let jaas = filled(JAAS_KEY).map(str::to_owned).or_else(|| jvm_options.and_then(jaas_of_jvm_options));
    jaas.map(|path| Some(PathBuf::from(path))).ok_or_else(|| {
        format!("rest.extension.classes names the basic-auth extension, but not who may log in: set {JAAS_KEY} to the JAAS file (or -Djava.security.auth.login.config in the environment variable KAFKA_OPTS)")
    })
}

/// The URL that others reach this worker by. `bound` are the main listeners with their real ports; `local` is the address to give out for a
/// listener on every interface. `None` when there is no listener of the scheme that `rest.advertised.listener` asks for.
pub fn advertised_url(advertised: &Advertised, bound: &[Listener], local: &str) -> Option<String> {
    let has = |scheme| bound.iter().find(|listener| listener.scheme == scheme);
    let listener = match advertised.scheme {
        Some(scheme) => has(scheme)?,
        None => has(Scheme::Http).or_else(|| has(Scheme::Https))?,
    };
    let everywhere = matches!(listener.host.as_str(), "" | "0.0.0.0" | "::");
    let host = advertised.host.as_deref().unwrap_or(if everywhere { local } else { &listener.host });
    let host = if host.contains(':') { format!("[{}]", host.trim_matches(['[', ']'])) } else { host.to_owned() };
    let port = advertised.port.unwrap_or(listener.port);
    Some(format!("{}://{host}:{port}/", listener.scheme.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<RestConfig, String> {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        RestConfig::parse(&properties, None).map(|(config, _)| config)
    }

    fn url(pairs: &[(&str, &str)]) -> Option<String> {
        let config = read(pairs).expect("a configuration");
        advertised_url(&config.advertised, &config.listeners, "10.0.0.7")
    }

    #[test]
    fn the_advertised_url_follows_javas_rule() {
        assert_eq!(url(&[]).as_deref(), Some("http://10.0.0.7:8083/"));
        assert_eq!(url(&[("listeners", "https://a:1,http://b:2")]).as_deref(), Some("http://b:2/"));
        assert_eq!(
            url(&[("listeners", "https://a:1,http://b:2"), ("rest.advertised.listener", "https")]).as_deref(),
            Some("https://a:1/")
        );
        assert_eq!(
            url(&[("listeners", "https://a:1"), ("rest.advertised.host.name", "c"), ("rest.advertised.port", "9")])
                .as_deref(),
            Some("https://c:9/")
        );
        assert_eq!(url(&[("listeners", "http://[::1]:1")]).as_deref(), Some("http://[::1]:1/"));
        assert_eq!(url(&[("rest.advertised.listener", "https")]), None);
    }

    #[test]
    fn admin_listeners_are_unset_empty_or_their_own() {
        assert_eq!(read(&[]).expect("config").admin, Admin::OnMain);
        assert_eq!(read(&[("admin.listeners", " ")]).expect("config").admin, Admin::Off);
        let own = Listener { scheme: Scheme::Http, host: "127.0.0.1".to_owned(), port: 1 };
        assert_eq!(read(&[("admin.listeners", "HTTP://127.0.0.1:1")]).expect("config").admin, Admin::Own(vec![own]));
    }

    #[test]
    fn what_is_wrong_names_its_key() {
        for (key, value) in [
            ("listeners", "8083"),
            ("listeners", "ftp://a:1"),
            ("listeners", "http://a:99999"),
            ("admin.listeners", "x"),
            ("rest.advertised.port", "x"),
            ("rest.advertised.listener", "ftp"),
            ("rest.advertised.host.name", "http://a"),
            ("rest.extension.classes", "com.example.Mine"),
            ("rest.extension.classes", EXTENSION),
            ("response.http.headers.config", "x"),
            ("topic.tracking.enable", "x"),
        ] {
            let error = read(&[(key, value)]).expect_err(value);
            assert!(error.starts_with(key), "{key}={value}: {error}");
        }
    }

    #[test]
    fn what_only_a_start_would_show_is_found_before_it() {
        let wrong = |pairs: &[(&str, &str)]| read(pairs).expect("well formed").problems();
        assert_eq!(wrong(&[]), [""; 0]);
        let https = ("listeners", "https://127.0.0.1:0");
        let told = wrong(&[https]);
        assert_eq!(told, ["https: setting listeners.https.ssl.keystore.location is missing; set it"]);
        let told = wrong(&[
            https,
            ("listeners.https.ssl.keystore.location", "/nowhere.p12"),
            ("listeners.https.ssl.keystore.type", "PKCS12"),
        ]);
        assert!(
            told.len() == 1
                && told[0].contains("listeners.https.ssl.keystore.location")
                && told[0].contains("/nowhere.p12"),
            "{told:?}"
        );
        let told = wrong(&[("admin.listeners", "https://127.0.0.1:0")]);
        assert_eq!(told, ["https: setting admin.listeners.https.ssl.keystore.location is missing; set it"]);
        // Nobody speaks https here.
        assert_eq!(wrong(&[("listeners.https.ssl.keystore.location", "/nowhere.p12")]), [""; 0]);
        let told = wrong(&[("rest.extension.classes", EXTENSION), (JAAS_KEY, "/nowhere.conf")]);
        assert!(told.len() == 1 && told[0].contains("/nowhere.conf"), "{told:?}");
        let told = wrong(&[("rest.advertised.listener", "https")]);
        assert!(told.len() == 1 && told[0].starts_with("rest.advertised.listener"), "{told:?}");
    }

    #[test]
    fn the_jaas_file_is_found_in_either_place() {
        let properties: BTreeMap<String, String> = [("rest.extension.classes".to_owned(), EXTENSION.to_owned())].into();
        let (config, _) = RestConfig::parse(&properties, Some("-Djava.security.auth.login.config=/a")).expect("config");
        assert_eq!(config.basic_auth_jaas, Some(PathBuf::from("/a")));
        let own = read(&[("rest.extension.classes", EXTENSION), (JAAS_KEY, "/b")]).expect("config");
        assert_eq!(own.basic_auth_jaas, Some(PathBuf::from("/b")));
    }
}
