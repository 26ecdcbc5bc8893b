//! Serves a dev broker until Enter or the end of standard input: `cargo run -p oncewire-dev-broker --example serve -- [PORT] [TRANSACTION_VERSION] [MARKER_DELAY_MICROS]`.

use std::time::Duration;

use oncewire_dev_broker::{BrokerSettings, DevBroker, DevBrokerConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let transaction_version: i16 = arguments.next().map_or(Ok(2), |version| version.parse())?;
    let marker_delay: u64 = arguments.next().map_or(Ok(0), |micros| micros.parse())?;
    let broker = BrokerSettings {
        transaction_version,
        marker_delay: Duration::from_micros(marker_delay),
        ..BrokerSettings::default()
    };
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let broker = DevBroker::start(DevBrokerConfig { listen, broker, ..DevBrokerConfig::default() }).await?;
    println!("{}", broker.bootstrap());
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    broker.shutdown().await;
    Ok(())
}
