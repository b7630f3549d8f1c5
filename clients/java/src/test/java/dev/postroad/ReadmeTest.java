package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compiles and runs the code of the README against a little server, so that it cannot rot. */
class ReadmeTest {
    private static final String SECRET = "whsec_readme";
    private static final String EVENT = "{\"id\":\"evt_1\",\"type\":\"email.delivered\"}";
    private static final String REFUSAL = "{\"error\":\"too few\",\"code\":\"insufficient_credits\"}";
    private static final String READY = "{\"id\":\"em_1\",\"status\":\"delivered\",\"recipients\":[{\"email\":\"ada@example.net\",\"status\":\"delivered\"}]}";

    @TempDir
    Path folder;

    @Test
    void runs() throws Exception {
        Files.writeString(folder.resolve("receipt.pdf"), "%PDF");
        try (ScriptedServer server = new ScriptedServer(
                ScriptedServer.answer(202, ScriptedServer.RECEIPT),
                ScriptedServer.answer(200, READY),
                ScriptedServer.answer(200, "{\"template\":{}}"),
                ScriptedServer.answer(202, "{\"results\":[{\"id\":\"em_2\"}]}"),
                ScriptedServer.answer(200, "{\"id\":\"em_2\"}"),
                ScriptedServer.answer(200, "{\"messages\":[{\"id\":\"em_3\",\"status\":\"queued\"}]}"),
                ScriptedServer.answer(402, REFUSAL))) {
            HttpHandler hooks = run(server.url());
            assertEquals(7, server.requests.size());
            assertTrue(server.requests.get(0).contains("\r\nIdempotency-Key: order-1042-receipt\r\n"));
            assertTrue(server.requests.get(0).contains("{\"filename\":\"receipt.pdf\",\"content\":\"JVBERg==\"}"));
            assertEquals(204, post(hooks, EVENT, EVENT));
            assertEquals(400, post(hooks, EVENT, EVENT + " "));
        }
    }

    @Test
    void namesTheVersionOfThePom() throws IOException {
        String pom = Files.readString(Path.of("pom.xml"));
        String version = Transport.USER_AGENT.substring("postroad-java/".length());
        assertTrue(pom.contains("<artifactId>postroad-client</artifactId>\n  <version>" + version + "</version>"));
        assertTrue(Files.readString(Path.of("README.md")).contains("postroad-client-" + version + ".jar"));
    }

    /** All blocks as one method; the environment and the addresses are the test's. */
    private HttpHandler run(String url) throws Exception {
        String code = String.join("", blocks())
                .replace("https://mail.example.com", url)
                .replace("System.getenv(\"POSTROAD_API_KEY\")", "\"pr_live_readme\"")
                .replace("System.getenv(\"POSTROAD_WEBHOOK_SECRET\")", "\"" + SECRET + "\"")
                .replace("receipt.pdf", folder.resolve("receipt.pdf").toString().replace("\\", "/"))
                .replaceAll("System\\.(out|err)\\.println\\(", "said.add(");
        Path source = Files.writeString(folder.resolve("Readme.java"), """
                import com.sun.net.httpserver.HttpHandler;
                import dev.postroad.*;
                import java.nio.file.Path;
                import java.time.*;
                import java.util.*;
                public class Readme {
                    public static final List<String> said = new ArrayList<>();
                    public static HttpHandler run() throws Exception {
                %s
                        return hooks;
                    }
                }
                """.formatted(code));
        int result = ToolProvider.getSystemJavaCompiler().run(null, null, null,
                "-cp", System.getProperty("java.class.path") + classPath(), "-d", folder.toString(), source.toString());
        assertEquals(0, result, "the code of the README compiles");
        try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()}, getClass().getClassLoader())) {
            Class<?> readme = loader.loadClass("Readme");
            HttpHandler hooks = (HttpHandler) readme.getMethod("run").invoke(null);
            assertEquals(List.of("ada@example.net: delivered", "em_3: queued", "Add credits, then send again with the key order-1042-receipt"),
                    readme.getField("said").get(null));
            return hooks;
        } catch (InvocationTargetException e) {
            throw (Exception) e.getCause();
        }
    }

    /** Where the library's classes are; the launcher's loader may not be the system's. */
    private static String classPath() throws Exception {
        URI library = Postroad.class.getProtectionDomain().getCodeSource().getLocation().toURI();
        return System.getProperty("path.separator") + Path.of(library);
    }

    /** Those for Spring have a test of their own, which needs Spring. */
    private static List<String> blocks() throws IOException {
        String readme = Files.readString(Path.of("README.md")).replaceFirst("(?s)\n## Spring\n.*?\n## ", "\n## ");
        return Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(readme)
                .results().map(block -> block.group(1)).toList();
    }

    private static int post(HttpHandler hooks, String signed, String sent) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.createContext("/", hooks);
        server.start();
        try {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.getAddress().getPort()))
                    .header("Service-Signature", WebhookReceiverTest.header(signed, SECRET))
                    .POST(HttpRequest.BodyPublishers.ofString(sent)).build();
            return HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).build()
                    .send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
        } finally {
            server.stop(0);
        }
    }
}
