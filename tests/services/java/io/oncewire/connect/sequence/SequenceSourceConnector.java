package io.oncewire.connect.sequence;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;

/** Numbers in a checkable pattern, one task for each sequence; as in `connector.rs`. */
public class SequenceSourceConnector extends SourceConnector {
    static final String VERSION = "0.1.0";

    private Map<String, String> properties;

    @Override public String version() { return VERSION; }
    @Override public ConfigDef config() { return SequenceConfig.DEF; }
    @Override public Class<? extends Task> taskClass() { return SequenceSourceTask.class; }
    @Override public void stop() { }

    @Override public void start(Map<String, String> properties) {
        new SequenceConfig(properties);
        this.properties = properties;
    }

    @Override public List<Map<String, String>> taskConfigs(int tasksMax) {
        int tasks = new SequenceConfig(properties).getInt(SequenceConfig.TASKS);
        if (tasks > tasksMax) {
            throw new ConnectException("'tasks' is " + tasks + ", but 'tasks.max' allows " + tasksMax + "; raise 'tasks.max' or lower 'tasks'");
        }
        List<Map<String, String>> configs = new ArrayList<>();
        for (int task = 0; task < tasks; task++) {
            Map<String, String> config = new HashMap<>(properties);
            config.put(SequenceConfig.TASK_ID, String.valueOf(task));
            configs.add(config);
        }
        return configs;
    }

    @Override public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> properties) { return ExactlyOnceSupport.SUPPORTED; }

    @Override public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> properties) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }

    @Override public boolean alterOffsets(Map<String, String> properties, Map<Map<String, ?>, Map<String, ?>> offsets) {
        offsets.forEach((partition, offset) -> {
            if (!isCount(partition.get(SequenceSourceTask.TASK_FIELD))) {
                throw new ConnectException("partition " + partition + " has no 'task' that is a whole number from 0");
            }
            if (offset != null && !isCount(offset.get(SequenceSourceTask.N_FIELD))) {
                throw new ConnectException("offset " + offset + " has no 'n' that is a whole number from 0");
            }
        });
        return true;
    }

    static boolean isCount(Object value) {
        return (value instanceof Long || value instanceof Integer) && ((Number) value).longValue() >= 0;
    }
}
