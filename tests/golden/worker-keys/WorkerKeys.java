import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;

/** Writes the properties of a distributed worker: name, type, default. A default is written `=value`, or `null`; `required`: there is none. */
public class WorkerKeys {
    public static void main(String[] arguments) throws Exception {
        String text = "org.apache.kafka.connect.storage.StringConverter";
        Map<String, String> least = new HashMap<>(Map.of("key.converter", text, "value.converter", text));
        for (String key : List.of("bootstrap.servers", "group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic"))
            least.put(key, "x:1");
        Field definition = AbstractConfig.class.getDeclaredField("definition");
        definition.setAccessible(true);
        ConfigDef def = (ConfigDef) definition.get(new DistributedConfig(least));
        for (ConfigDef.ConfigKey key : new TreeMap<>(def.configKeys()).values()) {
            boolean required = !key.hasDefault();
            String fallback = required ? "required" : key.defaultValue == null ? "null" : "=" + ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(String.join("\t", key.name, key.type.name(), fallback));
        }
    }
}
