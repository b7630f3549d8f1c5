package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TransportTest {
    private static final Email EMAIL = Email.builder().from("a@example.com").build();
    private static final String HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n";

    @Test
    void doesNotLetHttpClientRepeatAGet() throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.reset())) {
            assertEquals("connection_failed", failedGet(server, Duration.ofSeconds(10)).code());
            assertEquals(1, server.requests.size());
        }
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.rawThenClose(""))) {
            PostroadException error = failedGet(server, Duration.ofSeconds(10));
            assertTrue(error.getMessage().endsWith("failed: it was lost before a response"), error.getMessage());
            assertEquals(1, server.requests.size());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "HTTP/1.1 202 OK\r\nContent-Length: 99\r\n\r\n{\"id\":\"em_1\"}",
        "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{\"id\":\"em_1\"}\r\n",
        "HTTP/1.1 202 OK\r\nContent-Le", ""})
    void doesNotBelieveHalfAnAnswer(String bytes) throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.rawThenClose(bytes),
                ScriptedServer.answer(202, "{\"id\":\"em_2\"}"))) {
            assertEquals("em_2", server.client().send(EMAIL).id());
            assertEquals(2, server.requests.size());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n8\r\n:\"em_1\"}\r\n0\r\n\r\n",
        "HTTP/1.1 202 OK\r\nConnection: close\r\n\r\n{\"id\":\"em_1\"}",
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 202 OK\r\nContent-Length: 13\r\n\r\n{\"id\":\"em_1\"}"})
    void readsAnswersInEveryFrame(String bytes) throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.rawThenClose(bytes))) {
            assertEquals("em_1", server.client().send(EMAIL).id());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n{}",
        "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n",
        "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\u001f\u008b"})
    void takesOtherAnswersAsUnexpected(String bytes) throws Exception {
        try (ScriptedServer server = new ScriptedServer(ScriptedServer.rawThenClose(bytes))) {
            PostroadException error = assertThrows(PostroadException.class, () -> server.client().send(EMAIL));
            assertEquals("unexpected_response", error.code(), error.getMessage());
            assertEquals(1, server.requests.size());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "HTTP/1.1 200", HEAD, HEAD + "{"})
    void boundsTheWholeAttemptAndHangsUp(String beginning) throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            PostroadException error;
            Duration timeout = Duration.ofMillis(100);
            do { // again with more time, if it was too short to get there
                server.then(server.hang(beginning));
                error = failedGet(server, timeout);
                timeout = timeout.multipliedBy(2);
            } while (server.requests.isEmpty());
            assertEquals("timed_out", error.code());
            assertEquals(0, error.status());
            assertTrue(error.getMessage().startsWith("timed_out: no complete response from 127.0.0.1:"), error.getMessage());
            assertTrue(server.clientHasGone());
        }
    }

    @Test
    void readsNoFurtherThanTheLimit() throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            server.then(server.forEver(HEAD, " ".repeat(65536)));
            PostroadException error = failedGet(server, Duration.ofSeconds(10));
            assertEquals("unexpected_response", error.code());
            assertEquals(200, error.status());
            assertTrue(server.clientHasGone());
            String largest = ScriptedServer.MESSAGE + " ".repeat(BoundedBody.LIMIT - ScriptedServer.MESSAGE.length());
            server.then(ScriptedServer.answer(200, largest));
            assertEquals("em_1", server.client().get("em_1").id());
            server.then(ScriptedServer.answer(200, largest + " "));
            assertEquals("unexpected_response", failedGet(server, Duration.ofSeconds(10)).code());
        }
    }

    @Test
    void saysWhereNobodyListens() throws Exception {
        int port;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            port = socket.getLocalPort();
        }
        Postroad postroad = Postroad.builder("http://127.0.0.1:" + port).token("t").build(new FakeTiming());
        PostroadException error = assertThrows(PostroadException.class, () -> postroad.get("em_1"));
        assertEquals("connection_failed: could not connect to 127.0.0.1:" + port + ": connection refused (14 attempts)",
                error.getMessage());
    }

    @Test
    void endsWhenInterrupted() throws Exception {
        try (ScriptedServer server = new ScriptedServer()) {
            CountDownLatch asked = new CountDownLatch(1);
            server.then(socket -> {
                asked.countDown();
                server.hang("").play(socket);
            });
            AtomicReference<PostroadException> error = new AtomicReference<>();
            Thread caller = new Thread(() -> {
                try {
                    server.client().get("em_1");
                } catch (PostroadException e) {
                    error.set(Thread.currentThread().isInterrupted() ? e : null);
                }
            });
            caller.start();
            asked.await();
            caller.interrupt();
            caller.join();
            assertEquals("interrupted", error.get().code());
            assertFalse(error.get().isRetryable());
            assertTrue(server.clientHasGone());
        }
    }

    private static PostroadException failedGet(ScriptedServer server, Duration timeout) {
        Postroad postroad = Postroad.builder(server.url()).token("t").maxElapsed(Duration.ZERO).timeout(timeout).build();
        return assertThrows(PostroadException.class, () -> postroad.get("em_1"));
    }
}
