package dev.postroad;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A server on a free port of this machine that plays one step for each request, and keeps what it was asked. */
public final class ScriptedServer implements AutoCloseable {
    public static final String RECEIPT = "{\"id\":\"em_1\",\"status\":\"queued\"}";
    static final String MESSAGE = "{\"id\":\"em_1\",\"status\":\"delivered\"}";

    public final List<String> requests = new CopyOnWriteArrayList<>();
    final AtomicInteger connections = new AtomicInteger();
    private final BlockingQueue<Step> steps = new LinkedBlockingQueue<>();
    private final CountDownLatch clientGone = new CountDownLatch(1);
    private final ServerSocket listener;

    /** What happens after a request was read; the connection ends when it throws. */
    public interface Step {
        void play(Socket socket) throws IOException;
    }

    public ScriptedServer(Step... steps) throws IOException {
        this("127.0.0.1", steps);
    }

    ScriptedServer(String address, Step... steps) throws IOException {
        this.steps.addAll(List.of(steps));
        this.listener = new ServerSocket(0, 50, InetAddress.getByName(address));
        start(this::accept);
    }

    public static Step answer(int status, String body, String... headers) {
        String head = "HTTP/1.1 " + status + " Whatever\r\n"
                + (status == 204 ? "" : "Content-Length: " + body.getBytes(StandardCharsets.UTF_8).length + "\r\n")
                + (headers.length == 0 ? "" : String.join("\r\n", headers) + "\r\n");
        return raw(head + "\r\n" + body);
    }

    static Step raw(String bytes) {
        return socket -> socket.getOutputStream().write(bytes.getBytes(StandardCharsets.UTF_8));
    }

    /** The same, and the connection ends in good order. */
    static Step rawThenClose(String bytes) {
        return socket -> {
            raw(bytes).play(socket);
            throw new IOException("closed, as the step says");
        };
    }

    public static Step reset() {
        return socket -> {
            socket.setSoLinger(true, 0);
            throw new IOException("reset, as the step says");
        };
    }

    /** Says the head and then a piece again and again, until the client has gone. */
    Step forEver(String head, String piece) {
        return socket -> {
            try {
                raw(head).play(socket);
                while (true) {
                    raw(piece).play(socket);
                }
            } catch (IOException e) {
                clientGone.countDown();
                throw e;
            }
        };
    }

    /** Says the head and then nothing, until the client has gone. */
    Step hang(String head) {
        return socket -> {
            try {
                raw(head).play(socket);
                while (socket.getInputStream().read() >= 0) {
                    continue;
                }
            } finally {
                clientGone.countDown();
            }
            throw new IOException("gone");
        };
    }

    void then(Step step) {
        steps.add(step);
    }

    public String url() {
        String host = listener.getInetAddress().getHostAddress();
        return "http://" + (host.contains(":") ? "[::1]" : host) + ":" + listener.getLocalPort();
    }

    /** A client without pauses for this server. */
    Postroad client() {
        return Postroad.builder(url()).token("pr_live_test").build(new FakeTiming());
    }

    /** Whether the client of the step before has closed its connection. */
    boolean clientHasGone() throws InterruptedException {
        return clientGone.await(10, TimeUnit.SECONDS);
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }

    private void accept() {
        while (true) {
            try {
                Socket socket = listener.accept();
                connections.incrementAndGet();
                start(() -> serve(socket));
            } catch (IOException e) {
                return; // closed
            }
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            for (String request = read(socket.getInputStream()); request != null; request = read(socket.getInputStream())) {
                requests.add(request);
                Step step = steps.poll();
                if (step == null) {
                    answer(599, "there is no step for this request").play(socket);
                } else {
                    step.play(socket);
                }
            }
        } catch (IOException e) {
            // Either side has ended it; the test looks at what the client makes of that.
        }
    }

    private static String read(InputStream in) throws IOException {
        ByteArrayOutputStream head = new ByteArrayOutputStream();
        while (!head.toString(StandardCharsets.UTF_8).endsWith("\r\n\r\n")) {
            int next = in.read();
            if (next < 0) {
                return null;
            }
            head.write(next);
        }
        String text = head.toString(StandardCharsets.UTF_8);
        int length = text.lines().filter(line -> line.startsWith("Content-Length: "))
                .mapToInt(line -> Integer.parseInt(line.substring(16))).findFirst().orElse(0);
        return text + new String(in.readNBytes(length), StandardCharsets.UTF_8);
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }
}
