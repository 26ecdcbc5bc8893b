#!/usr/bin/env python3
"""Asks Java Kafka Connect workers to validate configurations, and writes down what they answer (see SOURCE.md).

    record.py DIR            makes DIR/{kafka,connect-*}, starts one broker and one worker at a time, writes configs.jsonl and cases.jsonl

Documentation texts are left out: ours are our own. An entry of `configs` that occurs in many answers is kept once, as a line of
configs.jsonl; a case names the lines.
"""
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SERVICES = os.path.join(HERE, "..", "..", "services")
FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
HEADER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
GOOD = {"name": "c", "connector.class": FILE, "file": "/in", "topic": "t"}


def good(**changes):
    """The good configuration with changes; `_` in a key stands for a dot; the value `...` removes the key."""
    config = dict(GOOD)
    for key, value in changes.items():
        key = key.replace("_", ".")
        if value is ...:
            config.pop(key, None)
        else:
            config[key] = value
    return config


def more(entries, **changes):
    return {**good(**changes), **entries}


TC = "topic.creation."
# What every worker is asked.
ANY = [
    ("good", good()),
    ("required", good(exactly_once_support="required")),
    ("required-not-supported", good(exactly_once_support="required", file=...)),
    ("boundary-connector", good(transaction_boundary="connector")),
    ("boundary-connector-upper", good(transaction_boundary="CONNECTOR", exactly_once_support="REQUIRED")),
    ("override-producer", more({"producer.override.acks": "all", "producer.override.linger.ms": "5"})),
    ("override-producer-unknown-key", more({"producer.override.bogus": "1"})),
    ("override-producer-sasl", more({"producer.override.sasl.jaas.config": "x", "producer.override.sasl.mechanism": "PLAIN",
                                     "producer.override.security.protocol": "SASL_PLAINTEXT"})),
    ("override-admin", more({"admin.override.retries": "3", "admin.override.sasl.mechanism": "PLAIN"})),
    ("override-consumer", more({"consumer.override.max.poll.records": "3", "consumer.override.sasl.mechanism": "PLAIN"})),
    ("override-all-with-offsets-topic", more({"offsets.storage.topic": "o", "admin.override.retries": "3",
                                              "consumer.override.max.poll.records": "3", "producer.override.acks": "1"})),
    ("override-all-with-topic-creation", more({"admin.override.retries": "3", TC + "default.partitions": "1",
                                               TC + "default.replication.factor": "1"})),
]
# What one worker is asked.
ONE = [
    ("alias", good(connector_class="FileStreamSource")),
    ("alias-simple", good(connector_class="FileStreamSourceConnector")),
    ("all-keys", more({
        "tasks.max": "2", "tasks.max.enforce": "false", "key.converter": STRING, "value.converter": JSON, "header.converter": HEADER,
        "value.converter.schemas.enable": "false", "config.action.reload": "none", "errors.retry.timeout": "5",
        "errors.retry.delay.max.ms": "6", "errors.tolerance": "all", "errors.log.enable": "true",
        "errors.log.include.messages": "true", "exactly.once.support": "required", "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "7", "offsets.storage.topic": "o", "batch.size": "8"})),
    ("numbers-of-json", good(tasks_max=2, tasks_max_enforce=True)),
    ("spaces", good(tasks_max=" 2 ", topic=" t ", tasks_max_enforce=" TRUE", name=" c ")),
    ("unknown-key", more({"bogus": "1"})),
    ("no-class", good(connector_class=...)),
    ("null-class", good(connector_class=None)),
    ("other-class", good(connector_class="FileStreamSink")),
    ("unknown-class", good(connector_class="Nobody")),
    ("empty", {}),
    ("only-class", {"connector.class": FILE}),
    ("no-name", good(name=...)),
    ("name-empty", good(name="")),
    ("name-blank", good(name="  ")),
    ("name-control", good(name="a\u0007b")),
    ("name-null", good(name=None)),
    ("topic-null", good(topic=None)),
    ("file-null", good(file=None)),
    ("unknown-null", more({"bogus": None, "another": None})),
    ("nulls", more({"tasks.max": None, "errors.tolerance": None, "exactly.once.support": None, "transaction.boundary": None,
                    "transforms": None, "config.action.reload": None, "tasks.max.enforce": None, "errors.retry.timeout": None,
                    "offsets.storage.topic": None, "topic.creation.groups": None, "batch.size": None})),
    ("converter-nulls", more({"key.converter": None, "value.converter": None, "header.converter": None})),
    ("override-null", more({"producer.override.acks": None})),
    ("topic-missing", good(topic=...)),
    ("topic-empty", good(topic="")),
    ("file-missing", good(file=...)),
    ("batch-size-text", good(batch_size="abc")),
    ("batch-size-zero", good(batch_size="0")),
    ("tasks-max-zero", good(tasks_max="0")),
    ("tasks-max-text", good(tasks_max="abc")),
    ("tasks-max-empty", good(tasks_max="")),
    ("tasks-max-large", good(tasks_max="2147483648")),
    ("tasks-max-plus", good(tasks_max="+3")),
    ("enforce-text", good(tasks_max_enforce="maybe")),
    ("reload-wrong", good(config_action_reload="later")),
    ("reload-upper", good(config_action_reload="NONE")),
    ("tolerance-wrong", good(errors_tolerance="some")),
    ("tolerance-upper", good(errors_tolerance="ALL")),
    ("retry-wrong", more({"errors.retry.timeout": "abc", "errors.retry.delay.max.ms": "9223372036854775808",
                          "errors.log.enable": "1", "errors.log.include.messages": "no"})),
    ("retry-negative", more({"errors.retry.timeout": "-2", "errors.retry.delay.max.ms": "-2"})),
    ("exactly-once-wrong", good(exactly_once_support="sometimes")),
    ("exactly-once-upper", good(exactly_once_support="Requested")),
    ("boundary-wrong", good(transaction_boundary="never")),
    ("boundary-upper", good(transaction_boundary="INTERVAL")),
    ("interval-negative", more({"transaction.boundary": "interval", "transaction.boundary.interval.ms": "-1"})),
    ("interval-zero", more({"transaction.boundary": "interval", "transaction.boundary.interval.ms": "0"})),
    ("interval-text", more({"transaction.boundary": "interval", "transaction.boundary.interval.ms": "x"})),
    ("offsets-topic-empty", more({"offsets.storage.topic": ""})),
    ("offsets-topic-blank", more({"offsets.storage.topic": " "})),
    ("offsets-topic", more({"offsets.storage.topic": "o"})),
    ("key-converter-unknown", more({"key.converter": "org.example.Nobody"})),
    ("value-converter-unknown", more({"value.converter": "Nobody"})),
    ("header-converter-unknown", more({"header.converter": "Nobody"})),
    ("key-converter-empty", more({"key.converter": ""})),
    ("key-converter-no-converter", more({"key.converter": FILE})),
    ("key-converter-for-headers", more({"key.converter": HEADER})),
    ("key-converter-alias", more({"key.converter": "StringConverter"})),
    ("key-converter-short", more({"key.converter": "Json", "header.converter": "Simple", "value.converter": "Long"})),
    ("key-converter-spaces", more({"key.converter": " " + STRING + " "})),
    ("key-converter-class", more({"key.converter": STRING})),
    ("key-converter-encoding", more({"key.converter": STRING, "key.converter.converter.encoding": "nonsense"})),
    ("value-converter-json", more({"value.converter": JSON})),
    ("value-converter-json-wrong", more({"value.converter": JSON, "value.converter.schemas.enable": "maybe",
                                         "value.converter.schemas.cache.size": "-1",
                                         "value.converter.decimal.format": "ROMAN", "value.converter.bogus": "1"})),
    ("value-converter-json-format-case", more({"value.converter": JSON, "value.converter.decimal.format": "numeric"})),
    ("value-converter-bytes", more({"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"})),
    ("value-converter-long", more({"value.converter": "org.apache.kafka.connect.converters.LongConverter"})),
    ("header-converter-simple", more({"header.converter": HEADER})),
    ("header-converter-json", more({"header.converter": JSON, "header.converter.schemas.enable": "false"})),
    ("three-converters", more({"key.converter": JSON, "value.converter": STRING, "header.converter": JSON})),
    ("converter-sub-null", more({"value.converter": JSON, "value.converter.schemas.enable": None})),
    ("override-class-empty", more({"producer.override.partitioner.class": ""})),
    ("interval-null", more({"transaction.boundary.interval.ms": None})),
    ("sub-property-without-class", more({"value.converter.schemas.enable": "maybe"})),
    ("creation-groups", more({TC + "groups": "a,b", TC + "default.partitions": "1", TC + "default.replication.factor": "1",
                              TC + "a.include": "x.*,y", TC + "a.partitions": "3", TC + "b.exclude": "z",
                              TC + "b.replication.factor": "-1", TC + "a.cleanup.policy": "compact"})),
    ("creation-default-only", more({TC + "default.partitions": "1", TC + "default.replication.factor": "1"})),
    ("creation-default-missing", more({TC + "groups": "a"})),
    ("creation-default-half", more({TC + "default.partitions": "1"})),
    ("creation-default-wrong", more({TC + "default.partitions": "0", TC + "default.replication.factor": "-2"})),
    ("creation-default-text", more({TC + "default.partitions": "x", TC + "default.replication.factor": "y"})),
    ("creation-group-wrong", more({TC + "groups": "a", TC + "default.partitions": "1", TC + "default.replication.factor": "1",
                                   TC + "a.partitions": "0", TC + "a.replication.factor": "0"})),
    ("creation-duplicates", more({TC + "groups": "a,a", TC + "default.partitions": "1", TC + "default.replication.factor": "1"})),
    ("creation-group-default", more({TC + "groups": "default,a", TC + "default.partitions": "1",
                                     TC + "default.replication.factor": "1"})),
    ("creation-groups-empty", more({TC + "groups": "", TC + "default.partitions": "1", TC + "default.replication.factor": "1"})),
    ("creation-regex-wrong", more({TC + "groups": "a", TC + "default.partitions": "1", TC + "default.replication.factor": "1",
                                   TC + "a.include": "["})),
    ("creation-no-group", more({TC + "z.partitions": "1"})),
    ("transform-no-type", more({"transforms": "a"})),
    ("transform-unknown", more({"transforms": "a", "transforms.a.type": "org.example.Nobody"})),
    ("transform-not-one", more({"transforms": "a", "transforms.a.type": STRING})),
    ("transform-two", more({"transforms": "a,b", "transforms.a.type": "x.Y", "transforms.b.type": "x.Z", "transforms.b.k": "v"})),
    ("transform-duplicate", more({"transforms": "a, a", "transforms.a.type": "x.Y"})),
    ("transform-empty-alias", more({"transforms": "a,,b", "transforms.a.type": "x.Y"})),
    ("transform-empty", more({"transforms": ""})),
    ("transform-negate", more({"transforms": "a", "transforms.a.type": "x.Y", "transforms.a.negate": "true"})),
    ("transform-negate-no-type", more({"transforms": "a", "transforms.a.negate": "true"})),
    ("transform-type-null", more({"transforms": "a", "transforms.a.type": None})),
    ("transform-predicate-unknown", more({"transforms": "a", "transforms.a.type": "x.Y", "transforms.a.predicate": "p"})),
    ("transform-not-listed", more({"transforms.a.type": "x.Y"})),
    ("transform-version", more({"transforms": "a", "transforms.a.type": "x.Y", "transforms.a.plugin.version": "1.0"})),
    ("predicate-no-type", more({"predicates": "p"})),
    ("predicate-unknown", more({"predicates": "p", "predicates.p.type": "x.Y"})),
    ("predicate-and-transform", more({"predicates": "p", "predicates.p.type": "x.Y", "transforms": "a", "transforms.a.type": "x.Z",
                                      "transforms.a.predicate": "p", "transforms.a.negate": "maybe"})),
    ("predicate-duplicate", more({"predicates": "p,p", "predicates.p.type": "x.Y"})),
    ("version", more({"connector.plugin.version": "VERSION"})),
    ("version-range", more({"connector.plugin.version": "[0.0.1,)"})),
    ("version-other", more({"connector.plugin.version": "99.0"})),
    ("version-wrong", more({"connector.plugin.version": "[1"})),
    ("converter-version", more({"key.converter": STRING, "key.converter.plugin.version": "VERSION"})),
    ("converter-version-other", more({"key.converter": STRING, "key.converter.plugin.version": "99.0"})),
    ("converter-version-wrong", more({"key.converter": STRING, "key.converter.plugin.version": "[1"})),
    ("converter-version-without-class", more({"key.converter.plugin.version": "99.0"})),
    ("override-producer-value-wrong", more({"producer.override.linger.ms": "abc"})),
    ("override-producer-value-refused", more({"producer.override.acks": "some", "producer.override.linger.ms": "-1"})),
    ("override-many", more({"producer.override." + key: value for key, value in [
        ("acks", "all"), ("batch.size", "1"), ("buffer.memory", "2"), ("client.id", "x"), ("compression.type", "lz4"),
        ("delivery.timeout.ms", "3"), ("enable.idempotence", "true"), ("interceptor.classes", ""), ("linger.ms", "4"),
        ("max.block.ms", "5"), ("max.request.size", "6"), ("metadata.max.age.ms", "7"), ("request.timeout.ms", "8"),
        ("retries", "9"), ("ssl.keystore.password", "p"), ("transactional.id", "t")]})),
    ("reference", good(topic="${file:SECRETS/secrets.properties:topic}")),
    ("reference-dir", good(topic="${dir:SECRETS:topic.txt}")),
    ("reference-env", good(topic="a-${env:ONCEWIRE_GOLDEN}-b")),
    ("reference-env-not-allowed", good(topic="${env:HOME}")),
    ("reference-no-such-key", good(topic="${file:SECRETS/secrets.properties:nothing}")),
    ("reference-no-such-file", good(topic="${file:SECRETS/nothing.properties:topic}")),
    ("reference-path-not-allowed", good(topic="${file:/etc/hostname:topic}")),
    ("reference-no-such-provider", good(topic="${vault:a:b}")),
    ("reference-in-class", good(connector_class="${file:SECRETS/secrets.properties:class}")),
    ("reference-in-transforms", more({"transforms": "${file:SECRETS/secrets.properties:topic}"})),
]
LISTINGS = ["FileStreamSource", FILE, JSON, "JsonConverter", STRING, HEADER, "org.apache.kafka.connect.converters.LongConverter",
            "org.apache.kafka.connect.converters.ByteArrayConverter", "Nobody", "Json",
            "FileStreamSource?version=VERSION", "FileStreamSource?version=99.0", "FileStreamSource?version=[1",
            "JsonConverter?version=99.0"]
# A connector that does not say whether it can deliver exactly once; of its answers only the errors of two keys are kept.
UNSUPPORTED = [("support-not-known", {"name": "c", "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
                                      "exactly.once.support": "required", "transaction.boundary": "connector"})]
PROVIDERS = {
    "config.providers": "file,dir,env",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.file.param.allowed.paths": "SECRETS",
    "config.providers.dir.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    "config.providers.dir.param.allowed.paths": "SECRETS",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.env.param.allowlist.pattern": "ONCEWIRE_.*",
}
WORKERS = {
    "enabled-all": {**PROVIDERS, "exactly.once.source.support": "enabled", "connector.client.config.override.policy": "All"},
    "disabled-none": {"exactly.once.source.support": "disabled", "connector.client.config.override.policy": "None"},
    "preparing-principal": {"exactly.once.source.support": "preparing", "connector.client.config.override.policy": "Principal"},
    "disabled-all": {"exactly.once.source.support": "disabled", "connector.client.config.override.policy": "All"},
    "enabled-none": {"exactly.once.source.support": "enabled", "connector.client.config.override.policy": "None"},
    "enabled-allowlist": {"exactly.once.source.support": "enabled", "connector.client.config.override.policy": "Allowlist",
                          "connector.client.config.override.allowlist": "acks,retries"},
}
VERSION = "4.3.1"


def fill(value, secrets):
    if isinstance(value, dict):
        return {key: fill(one, secrets) for key, one in value.items()}
    return value.replace("SECRETS", secrets).replace("VERSION", VERSION) if isinstance(value, str) else value


def unfill(value, secrets):
    return json.loads(json.dumps(value).replace(secrets, "SECRETS").replace(VERSION, "VERSION"))


def ask(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url.replace("[", "%5B"), data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def service(*arguments):
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Recorder:
    def __init__(self):
        self.lines, self.index, self.cases = [], {}, []

    def number(self, entry):
        entry.get("documentation") is not None and entry.pop("documentation")
        if isinstance(entry.get("definition"), dict):
            entry["definition"].pop("documentation")
        text = json.dumps(entry)
        if text not in self.index:
            self.index[text] = len(self.lines)
            self.lines.append(text)
        return self.index[text]

    def add(self, worker, case, what, status, answer):
        line = {"case": case, "worker": worker, **what, "status": status}
        if isinstance(answer, list):
            line["listing"] = [self.number(entry) for entry in answer]
        elif "configs" in answer:
            line.update(answer)
            line["configs"] = [self.number(entry) for entry in answer["configs"]]
        else:
            line["message"] = answer["message"]
        self.cases.append(json.dumps(line))


def main(directory):
    os.makedirs(directory, exist_ok=True)
    secrets = os.path.join(directory, "secrets")
    os.makedirs(secrets, exist_ok=True)
    with open(os.path.join(secrets, "secrets.properties"), "w") as file:
        file.write(f"topic=from-file\nclass={FILE}\n")
    with open(os.path.join(secrets, "topic.txt"), "w") as file:
        file.write("from-dir")
    os.environ["ONCEWIRE_GOLDEN"] = "from-env"
    kafka, recorder = os.path.join(directory, "kafka"), Recorder()
    bootstrap = service(f"{SERVICES}/kafka", "start", "--version", VERSION, "--dir", kafka)
    try:
        for worker, properties in WORKERS.items():
            home = os.path.join(directory, f"connect-{worker}")
            pairs = [f"--property={key}={fill(value, secrets)}" for key, value in properties.items()]
            pairs = [part for pair in pairs for part in pair.split("=", 1)]
            url = service(f"{SERVICES}/connect", "start", "--bootstrap", bootstrap, "--group", f"golden-{worker}", "--dir", home, *pairs)
            try:
                for case, config in ANY + (ONE if worker == "enabled-all" else []):
                    path = f"{url}/connector-plugins/FileStreamSource/config/validate"
                    status, answer = ask("PUT", path, fill(config, secrets))
                    recorder.add(worker, case, {"request": config}, status, unfill(answer, secrets))
                if worker in ("enabled-all", "disabled-none"):
                    for case, config in UNSUPPORTED:
                        path = f"{url}/connector-plugins/{config['connector.class']}/config/validate"
                        status, answer = ask("PUT", path, config)
                        errors = {entry["value"]["name"]: entry["value"]["errors"] for entry in answer["configs"]
                                  if entry["value"]["name"] in ("exactly.once.support", "transaction.boundary")}
                        recorder.cases.append(json.dumps({"case": case, "worker": worker, "errors": errors}))
                if worker == "enabled-all":
                    for plugin in LISTINGS:
                        name, _, query = fill(plugin, secrets).partition("?")
                        status, answer = ask("GET", f"{url}/connector-plugins/{name}/config?{query}")
                        recorder.add(worker, f"listing {plugin}", {"plugin": plugin}, status, unfill(answer, secrets))
                    for case, config in [("create-one", good(tasks_max="0")), ("create-two", good(tasks_max="0", topic=...)),
                                         ("create-null", good(bogus=None))]:
                        status, answer = ask("POST", f"{url}/connectors", {"name": "c", "config": config})
                        recorder.add(worker, case, {"create": config}, status, unfill(answer, secrets))
            finally:
                service(f"{SERVICES}/connect", "stop", home)
    finally:
        service(f"{SERVICES}/kafka", "stop", kafka)
    for name, lines in [("configs.jsonl", recorder.lines), ("cases.jsonl", recorder.cases)]:
        with open(os.path.join(HERE, name), "w") as file:
            file.writelines(line + "\n" for line in lines)


main(sys.argv[1])
