//! How the tools that a person waits for reach a cluster: by an address, and by Kafka's own client properties where it wants TLS or a login.

use crate::exit::Stop;
use clap::Args;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_worker::config::clients::usable_stores;
use oncewire_worker::config::properties::read_properties;
use std::path::PathBuf;
use std::time::Duration;

/// How long the tools try to reach a cluster, unless the file says `default.api.timeout.ms`: a person waits for the answer.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the cluster is.
#[derive(Debug, Args)]
pub(crate) struct ReachArgs {
    /// A broker of the cluster (several: separated by commas)
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap_server: String,
    /// Client properties (security.protocol, ssl.*, sasl.*, …), as for Kafka's tools
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,
}

impl ReachArgs {
    /// Connects. A slow start is told on standard error.
    pub(crate) async fn reach(&self) -> Result<Cluster, Stop> {
        let (config, unknown) = self.config()?;
        if let (Some(file), false) = (&self.command_config, unknown.is_empty()) {
            eprintln!(
                "oncewire: {}: these are not properties of a client and have no effect: {}",
                file.display(),
                unknown.join(", ")
            );
        }
        Cluster::connect_aloud(config).await.map_err(|error| Stop::not_started(error.to_string()))
    }

    /// What the file says, with the address of the command line. The second value lists the keys that are not a client's.
    fn config(&self) -> Result<(ClientConfig, Vec<String>), Stop> {
        // First, so that a slip in the address is not put down to the file.
        let mut plain = ClientConfig::new(&self.bootstrap_server)
            .map_err(|error| Stop::usage(format!("--bootstrap-server: {error}")))?;
        plain.default_api_timeout = REACH_TIMEOUT;
        let Some(file) = &self.command_config else { return Ok((plain, Vec::new())) };
        let mut properties =
            read_properties(file).map_err(|error| Stop::usage(format!("--command-config: {error}")))?;
        properties.insert("bootstrap.servers".to_owned(), self.bootstrap_server.clone());
        let of_file = |problem: String| Stop::usage(format!("{}: {problem}", file.display()));
        let (mut config, unknown) =
            ClientConfig::from_properties(&properties).map_err(|error| of_file(error.to_string()))?;
        usable_stores(&config).map_err(of_file)?;
        if !properties.contains_key("default.api.timeout.ms") {
            config.default_api_timeout = REACH_TIMEOUT;
        }
        Ok((config, unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Result<(ClientConfig, Vec<String>), Stop> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.properties");
        std::fs::write(&file, text).unwrap();
        ReachArgs { bootstrap_server: "h:1".to_owned(), command_config: Some(file) }.config()
    }

    #[test]
    fn the_files_properties_hold_and_the_address_is_the_command_lines() {
        let (config, unknown) = with("bootstrap.servers=elsewhere:2\nclient.id=me\nsecurity.protocl=SSL\n").unwrap();
        assert_eq!(config.client_id, "me");
        assert_eq!(config.bootstrap_servers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["h:1"]);
        assert_eq!(config.default_api_timeout, REACH_TIMEOUT);
        assert_eq!(unknown, ["security.protocl"], "it is told");
        let (config, _) = with("default.api.timeout.ms=700\n").unwrap();
        assert_eq!(config.default_api_timeout, Duration::from_millis(700));
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let stop = with("security.protocol=TLS\n").unwrap_err();
        assert!(stop.exit.code() == 2 && stop.message.contains("client.properties: "), "{stop:?}");
        let stop = with("security.protocol=SSL\nssl.truststore.location=/no/such.p12\n").unwrap_err();
        assert!(stop.exit.code() == 2 && stop.message.contains("/no/such.p12"), "{stop:?}");
        let missing = ReachArgs { bootstrap_server: "h:1".to_owned(), command_config: Some("/no/such".into()) };
        let stop = missing.config().unwrap_err();
        assert!(stop.exit.code() == 2 && stop.message.contains("/no/such"), "{stop:?}");
        let address = ReachArgs { bootstrap_server: "h".to_owned(), command_config: Some("/no/such".into()) };
        assert!(address.config().unwrap_err().message.contains("--bootstrap-server"));
    }
}
