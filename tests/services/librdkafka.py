"""The clients behind `librdkafka`; see there."""

import sys
import time

import confluent_kafka

DEADLINE_SECONDS = 30


def settings(bootstrap, properties):
    chosen = {"bootstrap.servers": bootstrap}
    for property in properties:
        name, _, value = property.partition("=")
        chosen[name] = value
    return chosen


def produce(bootstrap, topic, *properties):
    failures = []

    def delivered(error, _message):
        if error is not None:
            failures.append(str(error))

    producer = confluent_kafka.Producer(settings(bootstrap, properties))
    for line in sys.stdin:
        producer.produce(topic, line.rstrip("\n"), on_delivery=delivered)
        producer.poll(0)
    left = producer.flush(DEADLINE_SECONDS)
    if failures or left:
        sys.exit(f"{len(failures)} records failed, {left} are not answered: {failures[:3]}")


def consume(bootstrap, topic, count, *properties):
    chosen = settings(bootstrap, properties)
    chosen.update({"group.id": "librdkafka", "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    # Java checks checksums always; librdkafka when asked.
    chosen["check.crcs"] = "true"
    consumer = confluent_kafka.Consumer(chosen)
    consumer.subscribe([topic])
    left, deadline = int(count), time.monotonic() + DEADLINE_SECONDS
    while left and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error():
            sys.exit(str(message.error()))
        print(message.value().decode())
        left -= 1
    consumer.close()
    if left:
        sys.exit(f"{left} of {count} records did not come")


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "produce" and len(sys.argv) >= 4:
        produce(*sys.argv[2:])
    elif command == "consume" and len(sys.argv) >= 5:
        consume(*sys.argv[2:])
    elif command == "version":
        print(confluent_kafka.libversion()[0])
    else:
        sys.exit("usage: librdkafka produce|consume|version …; see the head of the script")
