// Watches how far a topic with one partition is committed, and says when the first and the last records became visible to read_committed.
//
//   java -cp 'JARS/*' Watch.java HOST:PORT TOPIC LINES
//
// Makes the topic if it is not there. Prints, one a line, with times in milliseconds since 1970:
//   ready
//   first TIME END_OFFSET     the first committed records
//   last TIME END_OFFSET      the end of the data: at least LINES offsets (transaction markers take offsets too), then quiet for QUIET_MS
//
// A process of its own, ready before the peer starts, so that the measured process answers no questions. It asks every 50 ms, which takes
// 3 % of a core.

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;

public class Watch {
    static final long ASK_EVERY_MS = 50;
    static final long QUIET_MS = 3_000;
    static final long WATCH_MS_MAX = 600_000;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        long lines = Long.parseLong(args[2]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(properties)) {
            make(admin, topic);
            long start = System.currentTimeMillis();
            long end = committedEnd(admin, topic);
            if (end != 0) throw new IllegalStateException("topic " + topic + " already holds records; give a fresh one");
            System.out.println("ready");
            long changed = start;
            while (end < lines || System.currentTimeMillis() - changed < QUIET_MS) {
                Thread.sleep(ASK_EVERY_MS);
                long now = System.currentTimeMillis();
                if (now - start > WATCH_MS_MAX) throw new IllegalStateException("only " + end + " offsets were committed in " + WATCH_MS_MAX + " ms");
                long next = committedEnd(admin, topic);
                if (next == end) continue;
                if (end == 0) System.out.println("first " + now + " " + next);
                end = next;
                changed = now;
            }
            System.out.println("last " + changed + " " + end);
        }
    }

    static void make(Admin admin, String topic) throws Exception {
        try {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.of((short) 1)))).all().get();
        } catch (ExecutionException exception) {
            if (!(exception.getCause() instanceof TopicExistsException)) throw exception;
        }
    }

    static long committedEnd(Admin admin, String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest()), new ListOffsetsOptions(IsolationLevel.READ_COMMITTED))
                .partitionResult(partition).get().offset();
    }
}
