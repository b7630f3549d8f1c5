package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class WaitForTest {
    private final FakeTiming timing = new FakeTiming();

    @Test
    void readsUntilEveryRecipientIsFinal() throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            for (int i = 0; i < 9; i++) {
                server.then(ScriptedServer.answer(200, message("delivered", i < 8 ? "deferred" : "bounced")));
            }
            assertEquals("bounced", client(server).waitFor("em_1").recipients().get(1).status());
            assertEquals(9, server.requests.size());
            assertEquals(seconds(1, 1.5, 2.25, 3.375, 5.0625, 7.59375, 10, 10), timing.pauses);
        }
    }

    @Test
    void endsWithTheTimeAndTheLastMessage() throws Exception {
        for (double[] pauses : new double[][] {{}, {0.9}, {1, 1.5, 1}}) {
            timing.pauses.clear();
            try (ScriptedServer server = new ScriptedServer()) {
                for (int i = 0; i <= pauses.length; i++) {
                    server.then(ScriptedServer.answer(200, message("queued")));
                }
                Duration timeout = Duration.ofNanos((long) (Arrays.stream(pauses).sum() * 1e9));
                TimedOutException error = assertThrows(TimedOutException.class, () -> client(server).waitFor("em_1", timeout));
                assertEquals("queued", error.lastMessage().recipients().get(0).status());
                assertTrue(error.getMessage().startsWith("timed_out: em_1 is not final after "), error.getMessage());
                assertTrue(error.isRetryable());
                assertEquals(seconds(pauses), timing.pauses);
                assertEquals(pauses.length + 1, server.requests.size());
            }
        }
    }

    @Test
    void givesTheErrorOfGet() throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.answer(404, "{\"code\":\"not_found\"}"))) {
            assertThrows(NotFoundException.class, () -> client(server).waitFor("em_1"));
        }
    }

    @Test
    void endsWhenInterrupted() throws Exception {
        try (ScriptedServer server = new ScriptedServer(socket -> { })) {
            Thread.currentThread().interrupt();
            assertEquals("interrupted", assertThrows(PostroadException.class, () -> client(server).waitFor("em_1")).code());
            assertTrue(Thread.interrupted(), "the flag is kept");
        }
        timing.stuck = true;
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.answer(200, message("queued")))) {
            timing.atPause = Thread.currentThread()::interrupt;
            assertEquals("interrupted", assertThrows(PostroadException.class, () -> client(server).waitFor("em_1")).code());
            assertTrue(Thread.interrupted(), "the flag is kept");
        }
    }

    @Test
    void knowsWhatIsFinal() {
        assertTrue(read(message("delivered")).isFinal());
        assertTrue(read(message("bounced", "failed", "delivered")).isFinal());
        assertFalse(read(message()).isFinal());
        assertFalse(read(message("delivered", "snoozed")).isFinal());
        assertFalse(read("{\"id\":\"em_1\",\"status\":\"delivered\",\"recipients\":[{}]}").isFinal());
    }

    private Postroad client(ScriptedServer server) {
        return Postroad.builder(server.url()).token("t").build(timing);
    }

    private static Message read(String json) {
        return Message.from(new Members((java.util.Map<?, ?>) JsonReader.read(json)));
    }

    private static String message(String... statuses) {
        String recipients = Arrays.stream(statuses).map(each -> "{\"status\":\"" + each + "\"}").collect(Collectors.joining(","));
        return "{\"id\":\"em_1\",\"status\":\"partial\",\"recipients\":[" + recipients + "]}";
    }

    private static List<Duration> seconds(double... seconds) {
        return Arrays.stream(seconds).mapToObj(each -> Duration.ofNanos((long) (each * 1e9))).toList();
    }
}
