// Writes the golden vectors of this directory; SOURCE.md says how to run it.

import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.json.JsonConverter;

public class JsonVectors {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    static JsonConverter converter(String... settings) {
        Map<String, String> map = new LinkedHashMap<>();
        for (int i = 0; i < settings.length; i += 2) map.put(settings[i], settings[i + 1]);
        JsonConverter converter = new JsonConverter();
        converter.configure(map, false);
        return converter;
    }

    static final JsonConverter ENVELOPE = converter();
    static final JsonConverter PLAIN = converter("schemas.enable", "false");

    static void one(String name, JsonConverter converter, Schema schema, Object value) {
        String text;
        try {
            byte[] bytes = converter.fromConnectData("t", schema, value);
            text = bytes == null ? "NULL" : new String(bytes, StandardCharsets.UTF_8);
        } catch (Exception e) {
            text = "ERROR";
        }
        OUT.println(name + "\t" + text);
    }

    static void both(String name, Schema schema, Object value) {
        one("envelope " + name, ENVELOPE, schema, value);
        one("plain " + name, PLAIN, schema, value);
    }

    static Map<Object, Object> map(Object... entries) {
        Map<Object, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < entries.length; i += 2) map.put(entries[i], entries[i + 1]);
        return map;
    }

    static void values() {
        both("null without schema", null, null);
        both("null of optional string", Schema.OPTIONAL_STRING_SCHEMA, null);
        both("null of required string", Schema.STRING_SCHEMA, null);
        both("null of default", SchemaBuilder.int32().optional().defaultValue(7).build(), null);
        one("envelope keep null of default", converter("replace.null.with.default", "false"), SchemaBuilder.int32().optional().defaultValue(7).build(), null);
        one("plain keep null of default", converter("schemas.enable", "false", "replace.null.with.default", "false"), SchemaBuilder.int32().optional().defaultValue(7).build(), null);
        both("text without schema", null, "x");
        both("text", Schema.STRING_SCHEMA, "x");
        both("empty text", Schema.STRING_SCHEMA, "");
        both("boolean", Schema.BOOLEAN_SCHEMA, true);
        both("int8", Schema.INT8_SCHEMA, (byte) -128);
        both("int16", Schema.INT16_SCHEMA, (short) 32767);
        both("int32", Schema.INT32_SCHEMA, -2147483648);
        both("int64", Schema.INT64_SCHEMA, Long.MIN_VALUE);
        both("float", Schema.FLOAT32_SCHEMA, 1.5f);
        both("double", Schema.OPTIONAL_FLOAT64_SCHEMA, 1e10);
        both("NaN", Schema.FLOAT64_SCHEMA, Double.NaN);
        both("infinity", Schema.FLOAT64_SCHEMA, Double.POSITIVE_INFINITY);
        both("minus infinity float", Schema.FLOAT32_SCHEMA, Float.NEGATIVE_INFINITY);
        both("bytes", Schema.BYTES_SCHEMA, new byte[] {1, 2, 3, (byte) 0xff});
        both("byte buffer", Schema.BYTES_SCHEMA, ByteBuffer.wrap(new byte[] {1, 2}));
        both("no bytes", Schema.BYTES_SCHEMA, new byte[0]);
        both("bytes without schema", null, new byte[] {(byte) 0xfb, (byte) 0xff, (byte) 0xfe});
        both("wrong type", Schema.INT32_SCHEMA, "x");
        both("array", SchemaBuilder.array(Schema.OPTIONAL_INT64_SCHEMA).build(), Arrays.asList(1L, null, 3L));
        both("array without schema", null, Arrays.asList(1L, null, "a", true, 1.5));
        both("empty array", SchemaBuilder.array(Schema.STRING_SCHEMA).build(), List.of());
        both("map", SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.INT32_SCHEMA).build(), map("a", 1, "b", 2));
        both("map of ints", SchemaBuilder.map(Schema.INT32_SCHEMA, Schema.STRING_SCHEMA).build(), map(1, "a", 2, "b"));
        both("empty map of ints", SchemaBuilder.map(Schema.INT32_SCHEMA, Schema.STRING_SCHEMA).build(), map());
        both("map without schema", null, map("a", 1, "b", null));
        both("mixed map without schema", null, map("a", 1, 2, null, null, 3));
        both("empty map without schema", null, map());
        Schema described = SchemaBuilder.int16().optional().name("n\"é").version(-3).doc("d\n").parameter("z", "1").parameter("a", "2").defaultValue((short) 5).build();
        both("described", described, (short) 4);
        both("named array", SchemaBuilder.array(Schema.INT8_SCHEMA).name("list").optional().build(), List.of((byte) 1));
        Schema inner = SchemaBuilder.struct().name("inner").optional().field("b", Schema.OPTIONAL_BYTES_SCHEMA).build();
        Schema outer = SchemaBuilder.struct().name("outer").version(1).doc("o")
                .field("id", Schema.INT32_SCHEMA)
                .field("s", SchemaBuilder.string().optional().doc("d").build())
                .field("m", SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.INT64_SCHEMA).build())
                .field("in", inner)
                .field("in2", inner)
                .field("def", SchemaBuilder.int64().defaultValue(9L).build())
                .build();
        both("struct", outer, new Struct(outer).put("id", 1).put("m", map("a", 2L)).put("in2", new Struct(inner).put("b", new byte[] {7})));
        both("struct with a required null", outer, new Struct(outer).put("m", map()));
        both("struct of another schema", inner, new Struct(outer).put("id", 1).put("m", map()));
        both("empty struct", SchemaBuilder.struct().build(), new Struct(SchemaBuilder.struct().build()));
        both("struct without schema", null, new Struct(inner).put("b", new byte[] {7}));
        Schema defaults = SchemaBuilder.struct().field("l", SchemaBuilder.array(Schema.INT32_SCHEMA).defaultValue(List.of(1, 2)).build()).build();
        both("default of a list", defaults, new Struct(defaults));
    }

    static void logical() {
        for (String format : List.of("BASE64", "numeric")) {
            JsonConverter envelope = converter("decimal.format", format);
            JsonConverter plain = converter("decimal.format", format, "schemas.enable", "false");
            for (String number : List.of("1.23", "-1.23", "0.00", "12345678901234567890123.45", "-0.01", "1.28", "655.36")) {
                one(format + " envelope decimal " + number, envelope, Decimal.schema(2), new BigDecimal(number));
                one(format + " plain decimal " + number, plain, Decimal.schema(2), new BigDecimal(number));
            }
            one(format + " plain decimal scale -3", plain, Decimal.schema(-3), new BigDecimal(BigInteger.valueOf(12), -3));
            one(format + " plain decimal scale 0", plain, Decimal.schema(0), new BigDecimal("-12"));
            one(format + " plain decimal scale 7", plain, Decimal.schema(7), new BigDecimal(BigInteger.ONE, 7));
            one(format + " plain decimal scale 6", plain, Decimal.schema(6), new BigDecimal(BigInteger.ONE, 6));
            one(format + " plain decimal scale 12", plain, Decimal.schema(12), new BigDecimal(BigInteger.valueOf(-12345), 12));
            one(format + " plain decimal wrong scale", plain, Decimal.schema(2), new BigDecimal("1.5"));
            one(format + " envelope decimal default", envelope, Decimal.builder(2).optional().defaultValue(new BigDecimal("1.00")).build(), null);
            one(format + " plain decimal without schema", plain, null, new BigDecimal("1.5"));
        }
        java.util.Date day = new java.util.Date(86400000L * 19000);
        both("date", Date.SCHEMA, day);
        both("date before 1970", Date.SCHEMA, new java.util.Date(-86400000L));
        both("time", Time.SCHEMA, new java.util.Date(86399999L));
        both("timestamp", Timestamp.SCHEMA, new java.util.Date(1700000000123L));
        both("optional timestamp null", Timestamp.builder().optional().build(), null);
        both("optional decimal null", Decimal.builder(2).optional().build(), null);
        both("timestamp without schema", null, day);
        both("timestamp schema with a long", Timestamp.SCHEMA, 5L);
        both("long of another name", SchemaBuilder.int64().name("x.Timestamp").build(), 5L);
    }

    static void texts() {
        StringBuilder controls = new StringBuilder();
        for (char c = 0; c <= 0x20; c++) controls.append(c);
        both("controls", Schema.STRING_SCHEMA, controls.append("\u007f\u0080\"\\/").toString());
        both("latin, bmp", Schema.STRING_SCHEMA, "é ß € 漢 \u2028\u2029\ufffd\uffff");
        both("beyond the bmp", Schema.STRING_SCHEMA, "a😀b\uD834\uDD1E");
        both("long beyond the bmp", Schema.STRING_SCHEMA, "x".repeat(3000) + "😀" + "é".repeat(3000) + "\n");
        both("key beyond the bmp", null, map("😀\n\"", 1));
        both("long key beyond the bmp", null, map("k".repeat(3000) + "😀\u0001", 1));
    }

    static Set<Long> doubleBits() {
        Set<Long> bits = new LinkedHashSet<>();
        double[] chosen = {0.0, -0.0, 1.0, -1.0, 1e10, 0.1, 1e-5, 100.0, Double.MAX_VALUE, Double.MIN_VALUE, Double.MIN_NORMAL, 1e7, 9999999.0, 9999999.999,
            1e-3, 0.00099999, 0.001, 123456.789, 2e23, 1e23, 8.41e21, 2e-3, 5e-324, 1e-323, 1.5e-323, 9.007199254740993e15, 4.35, 1.1e-3, 2.0e-44, 2.2250738585072011e-308,
            1.7976931348623157e308, 0.3, 1.0 / 3, 2.0 / 3, 12345678.9, 1e6, 1e21, 1e22, 5e-3, 2.5, 4.9e-324};
        for (double d : chosen) bits.add(Double.doubleToRawLongBits(d));
        for (int e = -1074; e < 1024; e += 7) bits.add(Double.doubleToRawLongBits(Math.scalb(1.0, e)));
        for (int e = -323; e <= 308; e += 5) bits.add(Double.doubleToRawLongBits(Double.parseDouble("1e" + e)));
        Random random = new Random(7);
        while (bits.size() < 1500) {
            double d = Double.longBitsToDouble(random.nextLong());
            if (Double.isFinite(d)) bits.add(Double.doubleToRawLongBits(d));
            bits.add(Double.doubleToRawLongBits(random.nextInt(1000000000) / 1000.0));
        }
        return bits;
    }

    static Set<Integer> floatBits() {
        Set<Integer> bits = new LinkedHashSet<>();
        float[] chosen = {0f, -0f, 1f, 1.5f, 0.1f, 1e10f, Float.MAX_VALUE, Float.MIN_VALUE, Float.MIN_NORMAL, 3.3f, 16777216f, 1e7f, 9999999f, 1e-3f, 2e-3f, 1.17549435E-38f, 3.4028235E38f, 8.4E-45f};
        for (float f : chosen) bits.add(Float.floatToRawIntBits(f));
        for (int e = -149; e < 128; e++) bits.add(Float.floatToRawIntBits(Math.scalb(1f, e)));
        Random random = new Random(8);
        while (bits.size() < 800) {
            float f = Float.intBitsToFloat(random.nextInt());
            if (Float.isFinite(f)) bits.add(Float.floatToRawIntBits(f));
        }
        return bits;
    }

    static void numbers() {
        for (long bits : doubleBits()) {
            String text = new String(PLAIN.fromConnectData("t", Schema.FLOAT64_SCHEMA, Double.longBitsToDouble(bits)), StandardCharsets.UTF_8);
            OUT.println("f64\t" + String.format("%016x", bits) + "\t" + text);
        }
        for (int bits : floatBits()) {
            String text = new String(PLAIN.fromConnectData("t", Schema.FLOAT32_SCHEMA, Float.intBitsToFloat(bits)), StandardCharsets.UTF_8);
            OUT.println("f32\t" + String.format("%08x", bits) + "\t" + text);
        }
    }

    public static void main(String[] arguments) {
        if (arguments[0].equals("numbers")) {
            numbers();
        } else {
            values();
            logical();
            texts();
        }
    }
}
