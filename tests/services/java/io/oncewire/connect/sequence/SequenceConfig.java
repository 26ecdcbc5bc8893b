package io.oncewire.connect.sequence;

import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;

/** The properties of the connector, as in `config.rs`. */
final class SequenceConfig extends AbstractConfig {
    static final String TOPIC = "topic";
    static final String TASKS = "tasks";
    static final String RECORDS_MAX = "records.max";
    static final String RATE_PER_SECOND = "rate.per.second";
    static final String RECORD_BYTES = "record.bytes";
    static final String BATCH_SIZE = "batch.size";
    static final String PARTITIONS = "partitions";
    static final String COMMIT_EVERY = "commit.every";
    static final String ABORT_EVERY = "abort.every";
    static final String TASK_ID = "task.id";

    static final ConfigDef DEF = new ConfigDef()
            .define(TOPIC, Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(), Importance.HIGH, "The topic to write to.")
            .define(TASKS, Type.INT, 1, Range.between(1, 10_000), Importance.MEDIUM,
                    "How many tasks there are, each with a sequence of its own; tasks.max must allow them.")
            .define(RECORDS_MAX, Type.LONG, -1L, Range.atLeast(-1), Importance.MEDIUM, "How many records each task writes; -1: no end.")
            .define(RATE_PER_SECOND, Type.LONG, 0L, Range.atLeast(0), Importance.MEDIUM,
                    "How many records each task writes in a second; 0: as many as it can.")
            .define(RECORD_BYTES, Type.INT, 84, Range.between(0, 64 << 20), Importance.MEDIUM,
                    "How many bytes the value of a record has; at least as many as its numbers need.")
            .define(BATCH_SIZE, Type.INT, 2000, Range.between(1, 1_000_000), Importance.MEDIUM, "How many records a batch has at most.")
            .define(PARTITIONS, Type.INT, 0, Range.atLeast(0), Importance.MEDIUM,
                    "Task t writes to partition t modulo this number; 0: to the one that its key leads to.")
            .define(COMMIT_EVERY, Type.LONG, 0L, Range.atLeast(0), Importance.MEDIUM,
                    "With transaction.boundary=connector: how many records a transaction has; 0: those of a batch.")
            .define(ABORT_EVERY, Type.LONG, 0L, Range.atLeast(0), Importance.MEDIUM,
                    "With commit.every: each transaction of this number is aborted instead; 0: none.")
            .define(TASK_ID, Type.INT, 0, Range.atLeast(0), Importance.MEDIUM, "Set by the connector for each of its tasks.");

    SequenceConfig(Map<String, String> properties) {
        super(DEF, properties, false);
        if (getLong(ABORT_EVERY) > 0 && getLong(COMMIT_EVERY) == 0) {
            throw new ConfigException("property 'abort.every': it counts transactions of 'commit.every' records; set that too");
        }
    }
}
