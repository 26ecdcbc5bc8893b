// Prints record batches as Java's own classes write them, one a line: a name and the bytes in hex.
// How to run it: see SOURCE.md.

import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.SimpleRecord;

public class Golden {
    static void print(String name, ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        System.out.println(name + " " + HexFormat.of().formatHex(copy));
    }

    static SimpleRecord[] small() {
        Header[] headers = {
            new RecordHeader("a", "1".getBytes()),
            new RecordHeader("a", (byte[]) null),
            new RecordHeader("", new byte[0]),
        };
        return new SimpleRecord[] {
            new SimpleRecord(1700000000000L, "k1".getBytes(), "v1".getBytes(), headers),
            new SimpleRecord(1699999999000L, null, new byte[0]),
            new SimpleRecord(1700003600000L, new byte[0], (byte[]) null),
        };
    }

    static SimpleRecord[] large() {
        byte[] value = new byte[5000];
        for (int i = 0; i < value.length; i++) value[i] = (byte) ("abcdefgh".charAt(i % 8));
        SimpleRecord[] records = new SimpleRecord[40];
        for (int i = 0; i < records.length; i++) {
            records[i] = new SimpleRecord(1700000000000L + i, ("k" + i).getBytes(), value);
        }
        return records;
    }

    public static void main(String[] args) {
        Compression[] codecs = {
            Compression.gzip().build(), Compression.snappy().build(), Compression.lz4().build(), Compression.zstd().build(),
        };
        print("txn", MemoryRecords.withTransactionalRecords(Compression.NONE, 4711L, (short) 3, 2147483646, small()).buffer());
        print("plain", MemoryRecords.withRecords(Compression.NONE, small()).buffer());
        for (Compression codec : codecs) {
            print(codec.type().name, MemoryRecords.withRecords(codec, small()).buffer());
        }
        print("commit", MemoryRecords.withEndTransactionMarker(42L, 1700000000123L, 7, 4711L, (short) 4,
            new EndTransactionMarker(ControlRecordType.COMMIT, 9)).buffer());
        print("abort", MemoryRecords.withEndTransactionMarker(43L, 1700000000124L, 7, 4711L, (short) 4,
            new EndTransactionMarker(ControlRecordType.ABORT, 9)).buffer());
        MemoryRecordsBuilder logAppend = new MemoryRecordsBuilder(ByteBuffer.allocate(512), (byte) 2, Compression.NONE,
            TimestampType.LOG_APPEND_TIME, 100L, 1800000000000L, -1L, (short) -1, -1, false, false, 5, 512);
        for (SimpleRecord record : small()) logAppend.append(record);
        print("logappend", logAppend.build().buffer());
        ByteBuffer empty = ByteBuffer.allocate(512);
        DefaultRecordBatch.writeEmptyHeader(empty, (byte) 2, 4711L, (short) 3, 10, 100L, 109L, 5,
            TimestampType.CREATE_TIME, 1700000000000L, true, false);
        empty.flip();
        print("empty", empty);
        for (Compression codec : codecs) {
            print(codec.type().name + "big", MemoryRecords.withRecords(codec, large()).buffer());
        }
    }
}
