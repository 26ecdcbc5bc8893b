package io.oncewire.connect.sequence;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.TransactionContext;

/** Batches of one sequence at its rate, as in `task.rs`, `pattern.rs`, `pacer.rs` and `boundary.rs`. */
public class SequenceSourceTask extends SourceTask {
    static final String TASK_FIELD = "task";
    static final String N_FIELD = "n";

    private static final String ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    private static final int BATCH_BYTES_MAX = 8 * 1024 * 1024;
    private static final long IDLE_WAIT_NANOS = 500_000_000L;
    private static final long SECOND_NANOS = 1_000_000_000L;

    private final CountDownLatch stopped = new CountDownLatch(1);
    private String topic;
    private int task;
    private Integer kafkaPartition;
    private long rate, recordsMax, commitEvery, abortEvery;
    private int recordBytes, batchRecords;
    private TransactionContext transaction;
    private long next, started, sent;

    @Override public String version() { return SequenceSourceConnector.VERSION; }

    @Override public void start(Map<String, String> properties) {
        SequenceConfig config = new SequenceConfig(properties);
        topic = config.getString(SequenceConfig.TOPIC);
        task = config.getInt(SequenceConfig.TASK_ID);
        int partitions = config.getInt(SequenceConfig.PARTITIONS);
        kafkaPartition = partitions == 0 ? null : task % partitions;
        rate = config.getLong(SequenceConfig.RATE_PER_SECOND);
        recordsMax = config.getLong(SequenceConfig.RECORDS_MAX);
        commitEvery = config.getLong(SequenceConfig.COMMIT_EVERY);
        abortEvery = config.getLong(SequenceConfig.ABORT_EVERY);
        recordBytes = config.getInt(SequenceConfig.RECORD_BYTES);
        int byBytes = recordBytes == 0 ? Integer.MAX_VALUE : Math.max(1, BATCH_BYTES_MAX / recordBytes);
        batchRecords = Math.min(config.getInt(SequenceConfig.BATCH_SIZE), byBytes);
        transaction = context.transactionContext();
        next = next(context.offsetStorageReader().offset(Map.of(TASK_FIELD, (long) task)));
        started = System.nanoTime();
    }

    private static long next(Map<String, Object> offset) {
        if (offset == null) return 0;
        Object last = offset.get(N_FIELD);
        if (!SequenceSourceConnector.isCount(last)) {
            throw new ConnectException("stored offset " + offset
                    + " has no 'n' that is a whole number from 0; correct or remove this connector's stored offset");
        }
        return ((Number) last).longValue() + 1;
    }

    @Override public void stop() { stopped.countDown(); }

    @Override public List<SourceRecord> poll() throws InterruptedException {
        long left = recordsMax < 0 ? Long.MAX_VALUE : Math.max(0, recordsMax - next);
        if (left == 0) {
            stopped.await(IDLE_WAIT_NANOS, TimeUnit.NANOSECONDS);
            return null;
        }
        long wanted = Math.min(batchRecords, left);
        long count = take(wanted);
        if (count == 0) {
            long due = started + ceilingDivide(sent);
            if (stopped.await(Math.min(IDLE_WAIT_NANOS, due - System.nanoTime()), TimeUnit.NANOSECONDS)) return null;
            count = take(wanted);
        }
        return count == 0 ? null : batch(count);
    }

    /** How many records may go now; what was missed for more than a second is not made up for. */
    private long take(long wanted) {
        if (rate == 0) return wanted;
        long elapsed = System.nanoTime() - started;
        if (elapsed >= SECOND_NANOS) sent = Math.max(sent, dueBy(elapsed - SECOND_NANOS));
        long taken = Math.min(wanted, Math.max(0, dueBy(elapsed) - sent));
        sent += taken;
        return taken;
    }

    private long dueBy(long elapsed) {
        // In two steps, because nanoseconds times the rate would not fit.
        return elapsed / SECOND_NANOS * rate + elapsed % SECOND_NANOS * rate / SECOND_NANOS + 1;
    }

    private long ceilingDivide(long records) {
        return records / rate * SECOND_NANOS + (records % rate * SECOND_NANOS + rate - 1) / rate;
    }

    private List<SourceRecord> batch(long count) {
        List<SourceRecord> batch = new ArrayList<>();
        for (long n = next; n < next + count; n++) {
            batch.add(new SourceRecord(Map.of(TASK_FIELD, (long) task), Map.of(N_FIELD, n), topic, kafkaPartition,
                    Schema.STRING_SCHEMA, String.valueOf(task), Schema.STRING_SCHEMA, value(n)));
        }
        if (transaction != null) requestBoundaries(batch);
        next += count;
        return batch;
    }

    private void requestBoundaries(List<SourceRecord> batch) {
        if (commitEvery == 0) {
            transaction.commitTransaction();
            return;
        }
        for (int place = 0; place < batch.size(); place++) {
            long records = next + place + 1;
            if (records % commitEvery == 0) {
                boolean aborted = abortEvery > 0 && records / commitEvery % abortEvery == 0;
                if (aborted) transaction.abortTransaction(batch.get(place));
                else transaction.commitTransaction(batch.get(place));
            } else if (records == recordsMax) {
                transaction.commitTransaction(batch.get(place));
            }
        }
    }

    private String value(long n) {
        String head = "{\"task\":" + task + ",\"n\":" + n + ",\"pad\":\"";
        int letters = ALPHABET.length();
        int letter = (int) ((n % letters + task % letters * 7) % letters);
        byte[] value = new byte[Math.max(recordBytes, head.length() + 2)];
        byte[] headBytes = head.getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(headBytes, 0, value, 0, headBytes.length);
        for (int place = headBytes.length; place < value.length - 2; place++) {
            value[place] = (byte) ALPHABET.charAt(letter);
            letter = letter + 1 == letters ? 0 : letter + 1;
        }
        value[value.length - 2] = '"';
        value[value.length - 1] = '}';
        return new String(value, StandardCharsets.US_ASCII);
    }
}
