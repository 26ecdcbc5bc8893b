//! TLS and SASL against a real broker: every kind of store and mechanism, and what a person reads when something does not fit.
//!
//! One broker for all: its listener SSL wants a client's certificate, SASL_SSL has a certificate for another host, SASL_PLAINTEXT
//! offers one mechanism and short sessions.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use oncewire_client::cluster::Cluster;
use oncewire_client::config::{ClientConfig, ProducerConfig};
use oncewire_client::error::Error;
use oncewire_client::producer::{ProducerRecord, TransactionalProducer};
use oncewire_client::reader::Isolation;
use oncewire_system_tests::binary::oncewire;
use oncewire_system_tests::client::Client;
use oncewire_system_tests::services::{KafkaOptions, Protection, RealKafka, certificates, java_tool};
use oncewire_system_tests::target::alone;

const VERSION: &str = "4.3.1";
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// For what succeeds, however busy the machine is.
const PATIENCE_MS: &str = "30000";
/// For what is refused. Most refusals come at once; what is retried ends here.
const REFUSAL_PATIENCE_MS: &str = "5000";
/// `connections.max.reauth.ms` of SASL_PLAINTEXT. The client renews after 85 %; the rest is for what a busy broker has not read yet.
const SESSION: Duration = Duration::from_millis(4000);

const PASSWORD: &str = "alice-secret";

type Pairs<'a> = [(&'a str, &'a str)];

fn start() -> RealKafka {
    let dir = certificates();
    let elsewhere = format!("listener.name.sasl_ssl.ssl.keystore.location={}/elsewhere.p12", dir.display());
    let session = format!("listener.name.sasl_plaintext.connections.max.reauth.ms={}", SESSION.as_millis());
    let properties = [
        "listener.name.ssl.ssl.client.auth=required",
        &elsewhere,
        &session,
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-256",
    ];
    let options = KafkaOptions { version: VERSION, transaction_version: None, properties: &properties };
    RealKafka::start_protected(
        options,
        Protection {
            listeners: &["SSL", "SASL_PLAINTEXT", "SASL_SSL"],
            users: &["alice=alice-secret", "bob=bob-secret"],
            super_users: Some(&["alice", "CN=client"]),
        },
    )
}

/// The address with the name that the certificate is for, or not.
fn localhost(address: &str) -> String {
    address.replace("127.0.0.1", "localhost")
}

fn config(bootstrap: &str, pairs: &Pairs, patience_ms: &str) -> Result<ClientConfig, Error> {
    let base = [("bootstrap.servers", bootstrap), ("default.api.timeout.ms", patience_ms)];
    let properties: BTreeMap<_, _> =
        base.iter().chain(pairs).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (config, unknown) = ClientConfig::from_properties(&properties)?;
    assert!(unknown.is_empty(), "every key is known: {unknown:?}");
    Ok(config)
}

fn connect(bootstrap: &str, pairs: &Pairs) -> Client {
    let client = config(bootstrap, pairs, PATIENCE_MS).and_then(Client::connect_with);
    client.unwrap_or_else(|error| panic!("{bootstrap} with {pairs:?}: {error}"))
}

/// What a client is told, and that it was told in time. Secrets are not in it.
fn refusal(bootstrap: &str, pairs: &Pairs) -> Error {
    let begun = Instant::now();
    let error = match config(bootstrap, pairs, REFUSAL_PATIENCE_MS).and_then(Client::connect_with) {
        Ok(_) => panic!("{bootstrap} with {pairs:?} connects"),
        Err(error) => error,
    };
    assert!(begun.elapsed() < Duration::from_secs(15), "{error}");
    let text = format!("{error} {error:?}");
    for secret in [PASSWORD, "bob-secret", "wrong-secret"] {
        assert!(!text.contains(secret), "{text}");
    }
    error
}

fn assert_refused(bootstrap: &str, pairs: &Pairs, words: &[&str]) {
    let text = refusal(bootstrap, pairs).to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{bootstrap} with {pairs:?} should say {words:?}: {text}");
}

fn jaas(module: &str, user: &str, password: &str) -> String {
    format!("org.apache.kafka.common.security.{module} required username=\"{user}\" password=\"{password}\";")
}

const PLAIN: &str = "plain.PlainLoginModule";
const SCRAM: &str = "scram.ScramLoginModule";

/// Writes and reads through the same protected connection.
fn round_trip(client: &Client, topic: &str, count: u32) {
    client.make_topic(topic, 1, &[]);
    let large = "x".repeat(100_000);
    client.block_on(async {
        let config = ProducerConfig::new(topic).expect("the id is not empty");
        let producer = TransactionalProducer::new(client.cluster().clone(), config);
        producer.init().await.expect("a producer id can be had");
        let mut transaction = producer.transaction().await.expect("no transaction is open");
        for _ in 0..count {
            let record = ProducerRecord { topic, value: Some(large.as_bytes()), ..ProducerRecord::default() };
            transaction.send(record).await.expect("the record is taken");
        }
        transaction.commit().await.expect("the transaction commits");
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
    });
    let records = client.records(topic, Isolation::Committed);
    assert_eq!(records.len(), count as usize);
    assert!(records.iter().all(|record| record.value.as_deref() == Some(large.as_bytes())));
}

fn every_kind_of_store_opens_and_a_certificate_is_who_we_are(kafka: &RealKafka) {
    let dir = certificates();
    let file = |name: &str| dir.join(name).to_str().expect("the cache has a text name").to_owned();
    let text = |name: &str| fs::read_to_string(dir.join(name)).expect("the certificates are there");
    let (trust_pem, trust_p12, trust_jks) = (file("ca.pem"), file("truststore.p12"), file("truststore.jks"));
    let (key_pem, key_p12, key_jks) = (file("client.pem"), file("client.p12"), file("client.jks"));
    let (ca, chain, sealed) = (text("ca.pem"), text("client-chain.pem"), text("client-key-encrypted.pem"));
    let one_line = sealed.replace('\n', " ");
    let stores: [(&str, &Pairs); 4] = [
        (
            "pem-files",
            &[
                ("ssl.truststore.type", "PEM"),
                ("ssl.truststore.location", &trust_pem),
                ("ssl.keystore.type", "PEM"),
                ("ssl.keystore.location", &key_pem),
                ("ssl.enabled.protocols", "TLSv1.2"),
            ],
        ),
        (
            "pem-text",
            &[
                ("ssl.truststore.type", "PEM"),
                ("ssl.truststore.certificates", &ca),
                ("ssl.keystore.type", "PEM"),
                ("ssl.keystore.certificate.chain", &chain),
                ("ssl.keystore.key", &one_line),
                ("ssl.key.password", "oncewire"),
            ],
        ),
        (
            "pkcs12",
            &[
                ("ssl.truststore.location", &trust_p12),
                ("ssl.truststore.password", "oncewire"),
                ("ssl.keystore.type", "PKCS12"),
                ("ssl.keystore.location", &key_p12),
                ("ssl.keystore.password", "oncewire"),
                ("ssl.cipher.suites", "TLS_AES_256_GCM_SHA384"),
            ],
        ),
        (
            "jks",
            &[
                ("ssl.truststore.location", &trust_jks),
                ("ssl.keystore.location", &key_jks),
                ("ssl.keystore.password", "oncewire"),
                ("ssl.key.password", "oncewire"),
            ],
        ),
    ];
    for (name, store) in stores {
        let pairs = [&[("security.protocol", "SSL")], store].concat();
        // Only a super user may do all this: the broker knows us by the certificate's name.
        let client = connect(&localhost(kafka.listener("SSL")), &pairs);
        round_trip(&client, name, 20);
    }
}

fn what_does_not_fit_in_tls_is_told_by_side_and_remedy(kafka: &RealKafka) {
    let dir = certificates();
    let file = |name: &str| dir.join(name).to_str().expect("the cache has a text name").to_owned();
    let (ca, stranger) = (file("ca.pem"), file("stranger.pem"));
    let p12 = file("truststore.p12");
    let ssl = localhost(kafka.listener("SSL"));
    let tls = ("security.protocol", "SSL");
    let pem = ("ssl.truststore.type", "PEM");
    let trusting = [tls, pem, ("ssl.truststore.location", ca.as_str())];

    assert_refused(&ssl, &trusting, &["the broker refused us", "ssl.keystore.location"]);
    let both = [&trusting[..], &[("ssl.enabled.protocols", "TLSv1.2")]].concat();
    assert_refused(&ssl, &both, &["the broker refused us", "ssl.keystore.location"]);
    let other = [tls, pem, ("ssl.truststore.location", stranger.as_str())];
    assert_refused(&ssl, &other, &["we refused the broker", "ssl.truststore.location"]);
    // No trust store: the system's authorities, of which none signed this.
    assert_refused(&ssl, &[tls], &["we refused the broker", "ssl.truststore.location"]);
    let password = [tls, ("ssl.truststore.location", &p12), ("ssl.truststore.password", "wrong-secret")];
    assert_refused(&ssl, &password, &["ssl.truststore.location", "password is wrong", &p12]);
    assert_refused(&ssl, &[tls, ("ssl.truststore.location", &p12)], &["set ssl.truststore.password"]);
    assert_refused(&ssl, &[tls, ("ssl.truststore.location", &ca)], &["PEM", &ca]);
    assert_refused(&ssl, &[tls, ("ssl.truststore.location", "/nowhere.p12")], &["/nowhere.p12"]);
    let unsealed = [tls, ("ssl.keystore.type", "PEM"), ("ssl.keystore.location", &ca)];
    assert_refused(&ssl, &unsealed, &["ssl.keystore.location", "BEGIN PRIVATE KEY"]);
    let suites = [&trusting[..], &[("ssl.cipher.suites", "TLS_RSA_WITH_AES_128_CBC_SHA")]].concat();
    assert_refused(&ssl, &suites, &["ssl.cipher.suites", "TLS_AES_128_GCM_SHA256"]);
}

fn host_names_are_checked_unless_that_is_turned_off(kafka: &RealKafka) {
    let dir = certificates();
    let ca = dir.join("ca.pem");
    let login = jaas(PLAIN, "alice", PASSWORD);
    let pairs = [
        ("security.protocol", "SASL_SSL"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", ca.to_str().expect("the cache has a text name")),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.jaas.config", login.as_str()),
    ];
    for address in [localhost(kafka.listener("SASL_SSL")), kafka.listener("SASL_SSL").to_owned()] {
        let words = ["elsewhere.invalid", "advertised.listeners", "ssl.endpoint.identification.algorithm"];
        assert_refused(&address, &pairs, &words);
    }
    let unchecked = [&pairs[..], &[("ssl.endpoint.identification.algorithm", "")]].concat();
    round_trip(&connect(kafka.listener("SASL_SSL"), &unchecked), "unchecked", 20);
}

fn each_mechanism_logs_in_and_a_wrong_password_is_told_at_once(kafka: &RealKafka) {
    let dir = certificates();
    let ca = dir.join("ca.pem");
    let over_tls = [
        ("security.protocol", "SASL_SSL"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", ca.to_str().expect("the cache has a text name")),
        ("ssl.endpoint.identification.algorithm", ""),
    ];
    let address = kafka.listener("SASL_SSL");
    for (mechanism, module) in [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)] {
        let good = jaas(module, "alice", PASSWORD);
        let pairs = [&over_tls[..], &[("sasl.mechanism", mechanism), ("sasl.jaas.config", &good)]].concat();
        round_trip(&connect(address, &pairs), &format!("login-{mechanism}"), 3);

        for user in ["alice", "nobody=,\u{e9}"] {
            let wrong = jaas(module, user, "wrong-secret");
            let pairs = [&over_tls[..], &[("sasl.mechanism", mechanism), ("sasl.jaas.config", &wrong)]].concat();
            let error = refusal(address, &pairs);
            assert!(is_authentication(&error) && !error.retriable(), "{error}");
            let text = error.to_string();
            assert!([mechanism, user, address].iter().all(|word| text.contains(word)), "{text}");
        }
    }
    let plain = jaas(PLAIN, "alice", PASSWORD);
    let pairs = [("security.protocol", "SASL_PLAINTEXT"), ("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", &plain)];
    assert_refused(kafka.listener("SASL_PLAINTEXT"), &pairs, &["SCRAM-SHA-256", "sasl.mechanism"]);
}

fn is_authentication(error: &Error) -> bool {
    match error {
        Error::Authentication { .. } => true,
        Error::NoBroker { attempts } => attempts.iter().all(|(_, error)| is_authentication(error)),
        _ => false,
    }
}

fn scram_pairs(login: &str) -> [(&str, &str); 3] {
    [("security.protocol", "SASL_PLAINTEXT"), ("sasl.mechanism", "SCRAM-SHA-256"), ("sasl.jaas.config", login)]
}

fn the_wrong_protocol_for_a_port_is_told_and_never_hangs(kafka: &RealKafka) {
    let dir = certificates();
    let ca = dir.join("ca.pem");
    let tls = [
        ("security.protocol", "SSL"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", ca.to_str().expect("the cache has a text name")),
    ];
    let login = jaas(SCRAM, "alice", PASSWORD);
    let sasl = scram_pairs(&login);
    assert_refused(kafka.listener("SSL"), &[], &["TLS", "security.protocol"]);
    assert_refused(kafka.listener("SASL_SSL"), &sasl, &["TLS", "security.protocol"]);
    assert_refused(kafka.bootstrap(), &tls, &["TLS", "security.protocol"]);
    assert_refused(kafka.bootstrap(), &sasl, &["SASL", "security.protocol"]);
    assert_refused(kafka.listener("SASL_PLAINTEXT"), &[], &["SASL", "security.protocol"]);
}

/// A broker closes a connection whose session has ended at the next request: one that is not renewed would show as an error.
fn sessions_are_renewed_and_no_request_fails_for_it(kafka: &RealKafka) {
    let login = jaas(SCRAM, "alice", PASSWORD);
    let client = connect(kafka.listener("SASL_PLAINTEXT"), &scram_pairs(&login));
    client.make_topic("sessions", 1, &[]);
    let until = Instant::now() + 5 * SESSION / 2;
    let written = client.block_on(async {
        let config = ProducerConfig::new("sessions").expect("the id is not empty");
        let producer = TransactionalProducer::new(client.cluster().clone(), config);
        producer.init().await.expect("a producer id can be had");
        let mut written = 0;
        while Instant::now() < until {
            let mut transaction = producer.transaction().await.expect("no transaction is open");
            for _ in 0..50 {
                let record = ProducerRecord { topic: "sessions", value: Some(&[7; 5000]), ..ProducerRecord::default() };
                transaction.send(record).await.expect("the record is taken");
            }
            written += transaction.commit().await.expect("the transaction commits").records;
        }
        let metrics = producer.metrics();
        assert_eq!(metrics.batch_retries, 0, "no request was lost");
        producer.close(CLOSE_TIMEOUT).await.expect("the producer closes");
        written
    });
    assert_eq!(client.records("sessions", Isolation::Committed).len() as u64, written);
    // Idle for longer than a session: the next request renews it first.
    std::thread::sleep(3 * SESSION / 2);
    client.block_on(client.cluster().refresh(&[])).expect("the connection lives on");
    assert!(client.end("sessions", Isolation::Committed) > 0);
}

fn acls_bind_who_logged_in(kafka: &RealKafka) {
    let bob = jaas(SCRAM, "bob", "bob-secret");
    let client = connect(kafka.listener("SASL_PLAINTEXT"), &scram_pairs(&bob));
    let topic = oncewire_client::admin::NewTopic {
        name: "bobs".to_owned(),
        partitions: Some(1),
        replication_factor: Some(1),
        configs: Default::default(),
    };
    let error = client.block_on(client.admin().create_topic(&topic)).expect_err("no ACL allows it");
    assert!(error.to_string().contains("TOPIC_AUTHORIZATION_FAILED"), "{error}");
}

/// A trust store with the broker's own certificate and no authority, as one-machine set-ups have it.
fn a_certificate_that_is_trusted_itself_needs_no_authority(kafka: &RealKafka) {
    let dir = certificates();
    let chain = fs::read_to_string(dir.join("elsewhere-chain.pem")).expect("the certificates are there");
    let end = chain.find("-----END CERTIFICATE-----").expect("it is PEM") + "-----END CERTIFICATE-----".len();
    let login = jaas(PLAIN, "alice", PASSWORD);
    let pairs = [
        ("security.protocol", "SASL_SSL"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.certificates", &chain[..end]),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.jaas.config", login.as_str()),
    ];
    assert_refused(kafka.listener("SASL_SSL"), &pairs, &["elsewhere.invalid"]);
    connect(kafka.listener("SASL_SSL"), &[&pairs[..], &[("ssl.endpoint.identification.algorithm", "")]].concat());
}

fn the_tools_read_through_tls(kafka: &RealKafka) {
    let dir = tempfile::tempdir().expect("a folder can be made");
    let file = dir.path().join("client.properties");
    let (trust, key) = (certificates().join("truststore.p12"), certificates().join("client.p12"));
    let text = format!(
        "security.protocol=SSL\nssl.truststore.location={}\nssl.truststore.password=oncewire\n\
         ssl.keystore.type=PKCS12\nssl.keystore.location={}\nssl.keystore.password=oncewire\n",
        trust.display(),
        key.display()
    );
    fs::write(&file, text).expect("the file can be written");
    let address = localhost(kafka.listener("SSL"));
    let tool = |command: &str, more: &[&str]| {
        let mut tool = Command::new(oncewire());
        tool.args([command, "--bootstrap-server", &address, "--topic", "pkcs12"])
            .args(more)
            .output()
            .expect("it starts")
    };
    let config = file.to_str().expect("it is text");
    let read = tool("consume", &["--from-beginning", "--max-messages", "20", "--command-config", config]);
    assert_eq!(String::from_utf8_lossy(&read.stdout).lines().count(), 20, "{}", String::from_utf8_lossy(&read.stderr));
    let audited = tool("verify", &["--json", "--command-config", config]);
    assert!(audited.status.success(), "{}", String::from_utf8_lossy(&audited.stderr));
    let refused = tool("consume", &["--from-beginning"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(3) && told.contains("security.protocol"), "{told}");
}

fn java_reads_what_went_through_tls(kafka: &RealKafka) {
    let class = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    let arguments = [
        "--bootstrap-server",
        kafka.bootstrap(),
        "--topic",
        "pkcs12",
        "--from-beginning",
        "--max-messages",
        "20",
        "--timeout-ms",
        "30000",
    ];
    let read = java_tool(VERSION, class, &arguments, "");
    assert_eq!(read.lines().filter(|line| line.len() == 100_000).count(), 20);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn tls_with_every_store_and_every_mistake() {
    let _alone = alone();
    let kafka = start();
    every_kind_of_store_opens_and_a_certificate_is_who_we_are(&kafka);
    what_does_not_fit_in_tls_is_told_by_side_and_remedy(&kafka);
    host_names_are_checked_unless_that_is_turned_off(&kafka);
    a_certificate_that_is_trusted_itself_needs_no_authority(&kafka);
    the_tools_read_through_tls(&kafka);
    java_reads_what_went_through_tls(&kafka);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn sasl_with_every_mechanism_and_every_mistake() {
    let _alone = alone();
    let kafka = start();
    each_mechanism_logs_in_and_a_wrong_password_is_told_at_once(&kafka);
    the_wrong_protocol_for_a_port_is_told_and_never_hangs(&kafka);
    sessions_are_renewed_and_no_request_fails_for_it(&kafka);
    acls_bind_who_logged_in(&kafka);
}

#[test]
#[ignore = "needs Apache Kafka"]
fn older_brokers_are_spoken_to_in_the_same_way() {
    let _alone = alone();
    let options = KafkaOptions { version: "3.9.2", transaction_version: None, properties: &[] };
    let users = ["alice=alice-secret"];
    let protection = Protection { listeners: &["SASL_SSL"], users: &users, super_users: None };
    let kafka = RealKafka::start_protected(options, protection);
    let login = jaas(SCRAM, "alice", PASSWORD);
    let trust = certificates().join("truststore.p12");
    let pairs = [
        ("security.protocol", "SASL_SSL"),
        ("ssl.truststore.location", trust.to_str().expect("the cache has a text name")),
        ("ssl.truststore.password", "oncewire"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("sasl.jaas.config", login.as_str()),
    ];
    round_trip(&connect(kafka.listener("SASL_SSL"), &pairs), "older", 20);
}

/// Dropping a handshake at any moment leaves nothing behind that a later one trips over.
#[test]
#[ignore = "needs Apache Kafka"]
fn a_connect_that_the_caller_dropped_harms_nobody() {
    let _alone = alone();
    let kafka = start();
    let login = jaas(SCRAM, "alice", PASSWORD);
    let runtime = tokio::runtime::Runtime::new().expect("threads can be made");
    for round in 0..20_u64 {
        let config =
            config(kafka.listener("SASL_PLAINTEXT"), &scram_pairs(&login), PATIENCE_MS).expect("it is complete");
        let connecting = runtime
            .block_on(async { tokio::time::timeout(Duration::from_millis(round), Cluster::connect(config)).await });
        if let Ok(connected) = connecting {
            let cluster = connected.expect("the broker answers");
            runtime.block_on(cluster.close());
        }
    }
    connect(kafka.listener("SASL_PLAINTEXT"), &scram_pairs(&login));
}
