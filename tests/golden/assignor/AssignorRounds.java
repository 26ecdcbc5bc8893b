// Drives Kafka Connect's own assignors through random rounds and writes what they were given and what they decided; SOURCE.md says how to run it.
//
// It lies in the assignors' package because their methods are visible only there.

package org.apache.kafka.connect.runtime.distributed;

import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

public class AssignorRounds {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final int[] DELAYS = {0, 100, 10_000, 300_000};
    static final int MEMBERS_MAX = 6;

    static Random random;

    /** What one member runs. Sorted: the assignor revokes the first of what it is given. */
    static class Held {
        final TreeSet<String> connectors = new TreeSet<>();
        final TreeSet<ConnectorTaskId> tasks = new TreeSet<>();

        Held copy() {
            Held copy = new Held();
            copy.connectors.addAll(connectors);
            copy.tasks.addAll(tasks);
            return copy;
        }
    }

    /** Time that passes only when told to. */
    static class StillTime implements Time {
        long now;

        StillTime(long now) { this.now = now; }
        void advance(long ms) { now += ms; }
        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000; }
        @Override public void sleep(long ms) { now += ms; }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { throw new UnsupportedOperationException(); }
    }

    public static void main(String[] arguments) throws Exception {
        for (int scenario = 0; scenario < 200; scenario++) incremental(scenario);
        for (int scenario = 200; scenario < 230; scenario++) eager(scenario);
    }

    static boolean chance(int percent) {
        return random.nextInt(100) < percent;
    }

    static <T> T pick(Collection<T> of) {
        return new ArrayList<>(of).get(random.nextInt(of.size()));
    }

    // One letter: the hash order in which Java goes through members is then that of the alphabet, so a replay can compare everything.
    static String newMember(Set<String> taken) {
        String name;
        do name = String.valueOf((char) ('a' + random.nextInt(15))); while (taken.contains(name));
        return name;
    }

    static void addConnector(Map<String, Integer> configured) {
        configured.put(String.valueOf((char) ('p' + random.nextInt(11))), random.nextInt(6));
    }

    static ClusterConfigState state(long offset, Map<String, Integer> configured) {
        Map<String, Map<String, String>> configs = new TreeMap<>();
        configured.keySet().forEach(connector -> configs.put(connector, Map.of()));
        return new ClusterConfigState(offset, null, configured, configs, Map.of(), Map.of(), Map.of(), Map.of(), Map.of(), Set.of(), Set.of());
    }

    static String text(Collection<String> connectors, Collection<ConnectorTaskId> tasks, String sign) {
        StringBuilder text = new StringBuilder();
        new TreeSet<>(connectors).forEach(connector -> text.append(' ').append(sign).append(connector));
        new TreeSet<>(tasks).forEach(task -> text.append(' ').append(sign).append(task.connector()).append('/').append(task.task()));
        return text.toString();
    }

    static String text(Map<String, Integer> configured) {
        StringBuilder text = new StringBuilder();
        configured.forEach((connector, tasks) -> text.append(' ').append(connector).append('=').append(tasks));
        return text.toString();
    }

    static void incremental(int scenario) throws Exception {
        random = new Random(scenario);
        int delayMax = DELAYS[scenario % DELAYS.length];
        StillTime time = new StillTime(1_000);
        IncrementalCooperativeAssignor assignor = new IncrementalCooperativeAssignor(new LogContext(), time, delayMax);
        TreeMap<String, Integer> configured = new TreeMap<>();
        for (int i = 0; i < 3; i++) addConnector(configured);
        TreeMap<String, Held> members = new TreeMap<>();
        members.put(newMember(members.keySet()), new Held());
        TreeMap<String, Held> gone = new TreeMap<>();
        int generation = 0, lastCompleted = -1;
        boolean followUp = false;
        OUT.println("scenario " + scenario + " delay " + delayMax);
        for (int round = 0; round < 12; round++) {
            if (!followUp) {
                for (int events = 1 + random.nextInt(2); events > 0; events--) event(members, gone, configured);
                if (chance(4)) {
                    assignor = new IncrementalCooperativeAssignor(new LogContext(), time, delayMax);
                    OUT.println("leader");
                }
            }
            generation++;
            forgetDeleted(assignor, lastCompleted, members, configured);
            OUT.println("round " + time.milliseconds() + " " + lastCompleted + " " + generation);
            OUT.println("config" + text(configured));
            Map<String, WorkerCoordinator.ConnectorsAndTasks> held = new TreeMap<>();
            members.forEach((member, load) -> {
                OUT.println("member " + member + text(load.connectors, load.tasks, ""));
                held.put(member, new WorkerCoordinator.ConnectorsAndTasks.Builder()
                        .with(new ArrayList<>(load.connectors), new ArrayList<>(load.tasks)).build());
            });
            IncrementalCooperativeAssignor.ClusterAssignment decided =
                    assignor.performTaskAssignment(state(generation, configured), lastCompleted, generation, held);
            OUT.println("delay " + assignor.delay);
            boolean revoked = false, allGetIt = !chance(12), noneGetsIt = !allGetIt && chance(50);
            for (String member : members.keySet()) {
                OUT.println("to " + member + text(decided.newlyAssignedConnectors(member), decided.newlyAssignedTasks(member), "+")
                        + text(decided.newlyRevokedConnectors(member), decided.newlyRevokedTasks(member), "-"));
                if (noneGetsIt || (!allGetIt && chance(50))) continue;
                Held load = members.get(member);
                load.connectors.removeAll(decided.newlyRevokedConnectors(member));
                load.tasks.removeAll(decided.newlyRevokedTasks(member));
                load.connectors.addAll(decided.newlyAssignedConnectors(member));
                load.tasks.addAll(decided.newlyAssignedTasks(member));
                revoked |= !decided.newlyRevokedConnectors(member).isEmpty() || !decided.newlyRevokedTasks(member).isEmpty();
            }
            if (!noneGetsIt) lastCompleted = generation;
            followUp = revoked && chance(70);
            if (!followUp) pass(time, assignor);
        }
    }

    static void event(TreeMap<String, Held> members, TreeMap<String, Held> gone, TreeMap<String, Integer> configured) {
        int kind = random.nextInt(100);
        if (kind < 22 && members.size() < MEMBERS_MAX) {
            members.put(newMember(members.keySet()), new Held());
        } else if (kind < 42 && members.size() > 1) {
            String member = pick(members.keySet());
            gone.put(member, members.remove(member));
        } else if (kind < 50 && !gone.isEmpty() && members.size() < MEMBERS_MAX) {
            // It comes back with nothing, or, as one that has slept through everything, with all that it had.
            String member = pick(gone.keySet());
            Held load = gone.remove(member);
            members.put(member, chance(40) ? load.copy() : new Held());
        } else if (kind < 60) {
            // A bounce between two rounds.
            members.put(pick(members.keySet()), new Held());
        } else if (kind < 75 && configured.size() < 6) {
            addConnector(configured);
        } else if (kind < 85 && !configured.isEmpty()) {
            configured.remove(pick(configured.keySet()));
        } else if (kind < 92 && !configured.isEmpty()) {
            configured.put(pick(configured.keySet()), random.nextInt(6));
        }
    }

    /** Time passes: not at all, a little, up to the date that the leader has set, or beyond it. */
    static void pass(StillTime time, IncrementalCooperativeAssignor assignor) {
        int kind = random.nextInt(4);
        if (kind == 1) time.advance(1 + random.nextInt(50));
        if (kind == 2 && assignor.delay > 0) time.advance(assignor.delay);
        if (kind == 3) time.advance(assignor.delay + random.nextInt(1_000));
    }

    /** Takes from members what is not configured and unknown to this leader: there ours decides otherwise on purpose (it revokes it). */
    static void forgetDeleted(IncrementalCooperativeAssignor assignor, int lastCompleted, Map<String, Held> members,
                              Map<String, Integer> configured) throws Exception {
        Field field = IncrementalCooperativeAssignor.class.getDeclaredField("previousAssignment");
        field.setAccessible(true);
        WorkerCoordinator.ConnectorsAndTasks previous = assignor.previousGenerationId == lastCompleted
                ? (WorkerCoordinator.ConnectorsAndTasks) field.get(assignor) : WorkerCoordinator.ConnectorsAndTasks.EMPTY;
        for (Held load : members.values()) {
            load.connectors.removeIf(connector -> !configured.containsKey(connector) && !previous.connectors().contains(connector));
            load.tasks.removeIf(task -> task.task() >= configured.getOrDefault(task.connector(), 0) && !previous.tasks().contains(task));
        }
    }

    /** A coordinator without a broker: it knows only the leader's snapshots. */
    static class Snapshots extends WorkerCoordinator {
        ClusterConfigState own, fresh;

        Snapshots() {
            super(null, new LogContext(), null, null, null, null, null, null, null, null, 0);
        }

        @Override public ClusterConfigState configSnapshot() { return own; }
        @Override public void configSnapshot(ClusterConfigState state) { own = state; }
        @Override public ClusterConfigState configFreshSnapshot() { return fresh; }
        @Override public void leaderState(WorkerCoordinator.LeaderState state) { }
    }

    static void eager(int scenario) throws Exception {
        random = new Random(scenario);
        EagerAssignor assignor = new EagerAssignor(new LogContext());
        Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        Snapshots snapshots = (Snapshots) ((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(Snapshots.class);
        TreeMap<String, Integer> configured = new TreeMap<>();
        for (int i = random.nextInt(5); i >= 0; i--) addConnector(configured);
        List<JoinGroupResponseMember> members = new ArrayList<>();
        Set<String> names = new TreeSet<>();
        for (int i = random.nextInt(4); i >= 0; i--) names.add(newMember(names));
        long offset = 10 + random.nextInt(10);
        snapshots.own = state(offset - random.nextInt(2), configured);
        String leader = pick(names);
        TreeMap<String, Long> offsets = new TreeMap<>();
        names.forEach(name -> offsets.put(name, name.equals(leader) ? snapshots.own.offset() : offset - random.nextInt(3)));
        // A leader of ours always takes its freshest snapshot, Java only if it must.
        boolean behind = offsets.values().stream().anyMatch(read -> read > snapshots.own.offset());
        snapshots.fresh = behind && chance(50) ? state(offset, configured) : snapshots.own;
        OUT.println("eager " + scenario + " " + snapshots.fresh.offset());
        OUT.println("config" + text(configured));
        for (String name : names) {
            ByteBuffer bytes = ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState("http://" + name + ":8083/", offsets.get(name)));
            byte[] metadata = new byte[bytes.remaining()];
            bytes.get(metadata);
            members.add(new JoinGroupResponseMember().setMemberId(name).setMetadata(metadata));
            OUT.println("member " + name + " " + hex(metadata));
        }
        OUT.println("leader " + leader);
        Map<String, ByteBuffer> decided = new TreeMap<>(assignor.performAssignment(leader, ConnectProtocolCompatibility.EAGER, members, snapshots));
        decided.forEach((member, bytes) -> {
            byte[] assignment = new byte[bytes.remaining()];
            bytes.get(assignment);
            OUT.println("to " + member + " " + hex(assignment));
        });
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) text.append(String.format("%02x", one));
        return text.toString();
    }
}
