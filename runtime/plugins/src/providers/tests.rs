//! The providers from the outside: references in, values out, secrets hidden.

use std::path::PathBuf;

use super::*;

const PACKAGE: &str = "org.apache.kafka.common.config.provider";

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oncewire-providers-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("db.properties"), "password=hunter2\nuser=scott\nother=${file:x:y}\n").unwrap();
        std::fs::write(path.join("token"), "tiger\n").unwrap();
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn providers(&self) -> ConfigProviders {
        let worker = [
            ("config.providers".to_string(), "file, dir".to_string()),
            ("config.providers.file.class".into(), format!("{PACKAGE}.FileConfigProvider")),
            ("config.providers.file.param.allowed.paths".into(), self.text().into()),
            ("config.providers.dir.class".into(), format!("{PACKAGE}.DirectoryConfigProvider")),
            ("config.providers.dir.param.allowed.paths".into(), self.text().into()),
        ];
        ConfigProviders::from_worker(&worker.into()).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What remains lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn raw(entries: &[(&str, &str)]) -> NullableProperties {
    entries.iter().map(|(key, value)| (key.to_string(), Some(value.to_string()))).collect()
}

#[test]
fn references_are_resolved_and_other_text_is_kept() {
    let directory = Directory::new("resolve");
    let at = directory.text();
    let given = raw(&[
        ("url", &format!("db://${{file:{at}/db.properties:user}}:${{file:{at}/db.properties:password}}@h")),
        ("token", &format!("${{dir:{at}:token}}")),
        ("plain", "${not one} $x"),
        ("nested", &format!("${{file:{at}/db.properties:other}}")),
    ]);
    let resolved = directory.providers().resolve(&given).unwrap();
    assert_eq!(resolved["url"], "db://scott:hunter2@h");
    assert_eq!(resolved["token"], "tiger\n");
    assert_eq!(resolved["plain"], "${not one} $x");
    assert_eq!(resolved["nested"], "${file:x:y}", "what stands in place of a reference is not looked at again");
}

#[test]
fn what_cannot_be_resolved_stays_as_it_is_written() {
    let directory = Directory::new("stays");
    let at = directory.text();
    let given = raw(&[
        ("a", "${vault:x:y}"),
        ("b", &format!("${{file:{at}/db.properties:nothing}}")),
        ("c", "${file:/etc/hostname:x}"),
        ("d", &format!("${{dir:{at}/nowhere:token}}")),
        ("e", &format!("${{dir:{at}:nothing}}")),
        ("f", "${file:x}"),
    ]);
    let resolved = directory.providers().resolve_nullable(&given).unwrap();
    assert_eq!(resolved, given);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it() {
    let directory = Directory::new("missing");
    let path = format!("{}/nothing.properties", directory.text());
    let error = directory.providers().resolve(&raw(&[("a", &format!("${{file:{path}:x}}"))])).unwrap_err();
    assert!(error.to_string().contains(&format!("Could not read properties from file {path}")), "{error}");
}

#[test]
fn nulls_are_kept_or_left_out() {
    let given = NullableProperties::from([("a".into(), None), ("b".into(), Some("x".into()))]);
    let providers = ConfigProviders::default();
    assert_eq!(providers.resolve_nullable(&given).unwrap(), given);
    assert_eq!(providers.resolve(&given).unwrap(), Properties::from([("b".into(), "x".into())]));
}

#[test]
fn a_task_configuration_is_stored_with_the_references_of_the_connector() {
    let connector = raw(&[("password", "${file:f:password}"), ("url", "db://h"), ("topic", "${env:T}")]);
    let task = Properties::from(
        [("password", "hunter2"), ("url", "db://h2"), ("topic", "t-1"), ("table", "x")]
            .map(|(key, value)| (key.to_string(), value.to_string())),
    );
    let stored = ConfigProviders::keep_references(&connector, &task);
    assert_eq!(stored["password"], "${file:f:password}");
    assert_eq!(stored["topic"], "${env:T}", "by key, whatever the task made of the value");
    assert_eq!((&*stored["url"], &*stored["table"]), ("db://h2", "x"));
}

#[test]
fn what_was_resolved_is_hidden_in_text() {
    let directory = Directory::new("hidden");
    let providers = directory.providers();
    let clone = providers.clone();
    assert_eq!(providers.secrets().redact("login with hunter2"), "login with hunter2");
    providers.resolve(&raw(&[("a", &format!("${{file:{}/db.properties:password}}", directory.text()))])).unwrap();
    assert_eq!(clone.secrets().redact("login with hunter2"), "login with [hidden]");
    assert!(!format!("{providers:?}").contains("hunter2"));
}

#[test]
fn the_worker_s_own_properties_are_resolved_except_those_of_the_providers() {
    let directory = Directory::new("worker");
    let reference = format!("${{file:{}/db.properties:password}}", directory.text());
    let worker = Properties::from([
        ("sasl.jaas.config".to_string(), format!("x password=\"{reference}\";")),
        ("config.providers.file.param.x".into(), reference.clone()),
    ]);
    let resolved = directory.providers().resolve_worker(&worker).unwrap();
    assert_eq!(resolved["sasl.jaas.config"], "x password=\"hunter2\";");
    assert_eq!(resolved["config.providers.file.param.x"], reference);
}

#[test]
fn a_provider_that_cannot_be_made_is_named_by_its_property() {
    let error = |entries: &[(&str, &str)]| {
        let worker = entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        ConfigProviders::from_worker(&worker).unwrap_err().to_string()
    };
    assert!(error(&[("config.providers", "a")]).starts_with("property 'config.providers.a.class'"));
    let vault = [("config.providers", "a"), ("config.providers.a.class", "org.example.VaultConfigProvider")];
    assert!(error(&vault).contains("there are FileConfigProvider"));
    let relative = [
        ("config.providers", "a"),
        ("config.providers.a.class", "FileConfigProvider"),
        ("config.providers.a.param.allowed.paths", "secrets"),
    ];
    assert!(error(&relative).starts_with("property 'config.providers.a.param.allowed.paths'"));
}
