// Commits transactions of N records with Java's KafkaProducer and prints how long they took, as JSON.
//
//   java -cp 'JARS/*' Transactions.java HOST:PORT TOPIC RECORDS SECONDS WARM_UP_SECONDS
//
// The client as it comes. The topic's name is the transactional id too.

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Transactions {
    static final int RECORD_BYTES = 84;

    public static void main(String[] args) {
        String topic = args[1];
        int records = Integer.parseInt(args[2]);
        long warmUp = Long.parseLong(args[4]) * 1_000_000_000L;
        long length = Long.parseLong(args[3]) * 1_000_000_000L;
        byte[] value = new byte[RECORD_BYTES];
        Arrays.fill(value, (byte) 'x');
        double[] times = new double[1_000_000];
        int count = 0;
        long first = 0;
        long last = 0;
        Map<String, Object> properties = Map.of("bootstrap.servers", args[0], "transactional.id", topic);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            long begin = System.nanoTime() + warmUp;
            while (System.nanoTime() - begin < length && count < times.length) {
                producer.beginTransaction();
                for (int i = 0; i < records; i++) producer.send(new ProducerRecord<>(topic, value));
                producer.commitTransaction();
                long now = System.nanoTime();
                if (first != 0) times[count++] = (now - last) / 1e6;
                else if (now - begin > 0) first = now;
                last = now;
            }
        }
        double[] sorted = Arrays.copyOf(times, count);
        Arrays.sort(sorted);
        System.out.printf(Locale.ROOT, "{\"transactions\":%d,\"seconds\":%.6f,\"p50_ms\":%.4f,\"p99_ms\":%.4f}%n",
                count, (last - first) / 1e9, quantile(sorted, 0.5), quantile(sorted, 0.99));
    }

    static double quantile(double[] sorted, double part) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.round((sorted.length - 1) * part)];
    }
}
