//! `oncewire dev-broker`: the embedded broker as a process of its own.

use crate::exit::{Exit, Stop};
use clap::Args;
use oncewire_dev_broker::{DevBroker, DevBrokerConfig};
use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  oncewire dev-broker --listen 127.0.0.1:9092\n\n\
    It speaks the real protocol, transactions included, keeps everything in memory,\nand forgets it at its end.")]
pub(crate) struct DevBrokerArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092", value_parser = address)]
    listen: SocketAddr,
    /// The finalized level of the feature transaction.version
    #[arg(long, value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(i16).range(0..=2))]
    transaction_version: i16,
    /// Partitions of a topic that is made without a number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    partitions: i32,
    /// Make a topic when a client asks for one that is missing
    #[arg(long)]
    auto_create_topics: bool,
    /// How long transaction markers take, as on a busy cluster
    #[arg(long, value_name = "MS", default_value_t = 0)]
    marker_delay_ms: u64,
}

/// An address, or a name that has one; of several the first of IPv4, which clients try first, too.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found =
        text.to_socket_addrs().map_err(|error| format!("{error}; write it as HOST:PORT, such as 127.0.0.1:9092"))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| "the name has no address".to_owned())
}

pub(crate) async fn run(args: DevBrokerArgs) -> Result<Exit, Stop> {
    let mut config = DevBrokerConfig { listen: args.listen, ..DevBrokerConfig::default() };
    config.broker.transaction_version = args.transaction_version;
    config.broker.default_partitions = args.partitions;
    config.broker.auto_create_topics = args.auto_create_topics;
    config.broker.marker_delay = Duration::from_millis(args.marker_delay_ms);
    let broker = DevBroker::start(config).await.map_err(|error| {
        let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
        Stop::not_started(format!("dev broker: {error}{cause}"))
    })?;
    println!("{}", broker.bootstrap());
    tracing::info!("dev broker listens on {}; data is in memory; Ctrl-C ends it", broker.bootstrap());
    crate::standalone::asked_to_stop().await;
    broker.shutdown().await;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_name_and_a_wrong_one_is_told_with_an_example() {
        assert_eq!(address("127.0.0.1:0").unwrap().to_string(), "127.0.0.1:0");
        assert_eq!(address("localhost:9092").unwrap().port(), 9092);
        assert!(address("9092").unwrap_err().contains("such as 127.0.0.1:9092"));
    }
}
