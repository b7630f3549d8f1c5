package dev.postroad;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.io.InputStream;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * Receives webhooks: verifies each request and gives its event to a function. It is a handler of the JDK's
 * {@code HttpServer}; {@link #receive} serves servlets and controllers, whatever their API is called.
 *
 * <p>An exception of the function is passed on and, by {@link #handle}, answered with 500, so that Postroad sends the
 * event again. {@code HttpServer} itself does not log it.
 */
public final class WebhookReceiver implements HttpHandler {
    /** Postroad's have a few hundred bytes. */
    static final int LARGEST_BODY = 1 << 20;

    private final List<String> secrets;
    private final Consumer<Event> consumer;

    /**
     * A receiver for one secret.
     *
     * @param secret the whole secret, {@code whsec_} included
     * @param consumer gets each event; the same can come twice
     * @throws IllegalArgumentException if the secret is empty
     */
    public WebhookReceiver(String secret, Consumer<Event> consumer) {
        this(Collections.singletonList(secret), consumer);
    }

    /**
     * A receiver for several secrets, as while one is replaced.
     *
     * @param secrets the secrets of which one has to match
     * @param consumer gets each event; the same can come twice
     * @throws IllegalArgumentException if there is none, or one is empty
     */
    public WebhookReceiver(List<String> secrets, Consumer<Event> consumer) {
        if (secrets.isEmpty()) {
            throw new IllegalArgumentException("a webhook needs a secret");
        }
        secrets.forEach(secret -> Arguments.notEmpty("secret", secret));
        this.secrets = List.copyOf(secrets);
        this.consumer = Objects.requireNonNull(consumer, "consumer");
    }

    /**
     * Takes one request, and gives its event to the function.
     *
     * @param method the method of the request
     * @param body its body as it came, before anything reads JSON; at most 1 MiB is read
     * @param header the value of {@code Service-Signature}, or null when the request has none
     * @return the status to respond with: 204; 400 for what Postroad has not signed; 405 for what is no POST; 413 for
     *     what is too long
     * @throws IOException if the body cannot be read
     */
    public int receive(String method, InputStream body, String header) throws IOException {
        if (!method.equals("POST")) {
            return 405;
        }
        byte[] rawBody = body.readNBytes(LARGEST_BODY + 1);
        if (rawBody.length > LARGEST_BODY) {
            return 413;
        }
        Event event;
        try {
            event = Webhooks.parseEvent(rawBody, header, secrets, Webhooks.TOLERANCE);
        } catch (SignatureVerificationException | IllegalArgumentException e) {
            return 400;
        }
        consumer.accept(event);
        return 204;
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        int status = 500;
        try {
            String header = exchange.getRequestHeaders().getFirst("Service-Signature");
            status = receive(exchange.getRequestMethod(), exchange.getRequestBody(), header);
        } finally {
            if (status == 405) {
                exchange.getResponseHeaders().set("Allow", "POST");
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        }
    }
}
