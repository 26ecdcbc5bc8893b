import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

/** Writes the properties of Kafka's clients, without their documentation: clients, name, type, default, importance.
 * Clients: p producer, c consumer, a admin. A default is written `=value`, or `null`; `required`: there is none. */
public class ClientKeys {
    private static final Map<String, String> rows = new LinkedHashMap<>();

    public static void main(String[] arguments) {
        add('p', ProducerConfig.configDef());
        add('c', ConsumerConfig.configDef());
        add('a', AdminClientConfig.configDef());
        rows.forEach((row, clients) -> System.out.println(clients + "\t" + row));
    }

    private static void add(char client, ConfigDef def) {
        for (ConfigDef.ConfigKey key : def.configKeys().values()) {
            if (key.internalConfig)
                continue;
            boolean required = !key.hasDefault();
            String fallback = required || key.defaultValue == null ? "null" : "=" + ConfigDef.convertToString(key.defaultValue, key.type);
            if (key.group != null || key.orderInGroup != -1 || key.width != ConfigDef.Width.NONE || !key.displayName.equals(key.name)
                    || !key.dependents.isEmpty())
                throw new IllegalStateException(key.name);
            String row = String.join("\t", key.name, key.type.name(), required ? "required" : fallback, key.importance.name());
            rows.merge(row, String.valueOf(client), String::concat);
        }
    }
}
