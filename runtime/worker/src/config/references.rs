//! References to config providers (`${provider:path:key}`, KIP-297) in the files of a standalone worker.
//!
//! They are resolved once, when the worker starts and before anything else is checked: a value that changes later needs a new start. A
//! distributed worker keeps references and resolves them at each start of a connector; it does not come here.

use super::ConfigErrors;
use super::properties::ConnectorFile;
use oncewire_api::Properties;
use oncewire_plugins::providers::{ConfigProviders, ProviderError, Secrets};

/// The worker's properties and its connectors' files with all references resolved; what was resolved is remembered in `secrets`.
/// `of` names the worker's properties in errors.
///
/// # Errors
/// A provider that can't be made, or what one could not read, by the file that asked for it.
pub fn resolve_references(
    of: &str,
    worker: &Properties,
    mut files: Vec<ConnectorFile>,
    secrets: &Secrets,
) -> Result<(Properties, Vec<ConnectorFile>), ConfigErrors> {
    let failed = |of: String| move |error: ProviderError| ConfigErrors::one(of, error.to_string());
    let providers = ConfigProviders::from_worker(worker).map_err(failed(of.to_owned()))?.remembering_in(secrets);
    let resolved = providers.resolve_worker(worker).map_err(failed(of.to_owned()))?;
    for file in &mut files {
        let raw = std::mem::take(&mut file.config).into_iter().map(|(key, value)| (key, Some(value))).collect();
        file.config = providers.resolve(&raw).map_err(failed(format!("connector {:?}", file.name)))?;
    }
    Ok((resolved, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Properties {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn references_of_the_worker_and_of_connectors_are_resolved_and_remembered() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "hunter2").unwrap();
        let reference = format!("${{dir:{}:key}}", folder.path().display());
        let worker = map(&[
            ("config.providers", "dir"),
            ("config.providers.dir.class", "DirectoryConfigProvider"),
            ("sasl.jaas.config", &reference),
        ]);
        let file = ConnectorFile { name: "c".into(), config: map(&[("password", &reference)]), paused: false };
        let secrets = Secrets::default();
        let (worker, files) = resolve_references("w", &worker, vec![file], &secrets).unwrap();
        assert_eq!((&*worker["sasl.jaas.config"], &*files[0].config["password"]), ("hunter2", "hunter2"));
        assert_eq!(secrets.redact("no hunter2"), "no [hidden]");
    }

    #[test]
    fn what_cannot_be_resolved_is_told_by_its_file() {
        let providers = map(&[("config.providers", "f"), ("config.providers.f.class", "FileConfigProvider")]);
        let resolve = |worker: &Properties, config| {
            let file = ConnectorFile { name: "c".into(), config, paused: false };
            resolve_references("w", worker, vec![file], &Secrets::default()).unwrap_err().to_string()
        };
        let error = resolve(&providers, map(&[("password", "${f:/no/such/file:x}")]));
        assert!(
            error.starts_with("connector \"c\": config provider 'f'") && error.contains("/no/such/file"),
            "{error}"
        );
        let error = resolve(&map(&[("config.providers", "f")]), Properties::new());
        assert!(error.starts_with("w: property 'config.providers.f.class'"), "{error}");
    }
}
