package dev.postroad;

import java.net.URI;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * The client: sends a message, and reads what became of one.
 *
 * <p>Make one and share it: it may be used by several threads at the same time, keeps connections
 * for later calls, and needs no closing.
 *
 * <pre>{@code
 * Postroad postroad = Postroad.builder("https://mail.example.com").token(token).build();
 * Receipt receipt = postroad.send(email, "order-1042-receipt");
 * Message message = postroad.get(receipt.id());
 * }</pre>
 */
public final class Postroad {
    private static final long FIRST_POLL = TimeUnit.SECONDS.toNanos(1);
    private static final long LONGEST_POLL = TimeUnit.SECONDS.toNanos(10);

    private final URI emails;
    private final Transport transport;
    private final Retries retries;
    private final Timing timing;
    private final Api api;

    private Postroad(Builder builder, URI baseUrl, String authorization, Timing timing) {
        this.emails = URI.create(baseUrl + "/emails");
        this.transport = new Transport(builder.httpClient, authorization);
        this.retries = new Retries(builder.timeout, builder.maxElapsed, timing);
        this.timing = timing;
        this.api = new Api(baseUrl.toString(), transport, retries, timing);
    }

    /**
     * Begins a client.
     *
     * @param baseUrl where Postroad runs: {@code http} or {@code https}, a host, and perhaps a path
     * @return a builder that still needs a credential
     */
    public static Builder builder(String baseUrl) {
        return new Builder(baseUrl);
    }

    /**
     * Sends a message with a key of its own, a random UUID.
     *
     * @param email the message
     * @return the receipt: the message is stored, and will be delivered
     * @throws PostroadException if it was refused, or could not be handed over in time
     */
    public Receipt send(Email email) {
        return send(email, null);
    }

    /**
     * Sends a message with a key that the caller has chosen. As long as the key is the same, the
     * message is sent and charged only once, even if the application starts again in between.
     *
     * @param email the message
     * @param idempotencyKey what names this message, such as {@code order-1042-receipt}; null makes one
     * @return the receipt: the message is stored, and will be delivered
     * @throws PostroadException if it was refused, or could not be handed over in time
     * @throws IllegalArgumentException if the key holds anything but printable ASCII
     */
    public Receipt send(Email email, String idempotencyKey) {
        String key = key(idempotencyKey);
        return retries.run(key, true, post(email, key), this::receipt);
    }

    /**
     * Sends a message as {@link #send(Email, String)} does, without a thread that waits for it. Cancelling
     * the future ends the call; the message may have been sent all the same.
     *
     * @param email the message
     * @param idempotencyKey what names this message, such as {@code order-1042-receipt}; null makes one
     * @return the receipt, or a {@link PostroadException}
     * @throws IllegalArgumentException if the key holds anything but printable ASCII
     */
    public CompletableFuture<Receipt> sendAsync(Email email, String idempotencyKey) {
        String key = key(idempotencyKey);
        return retries.start(key, true, post(email, key), this::receipt);
    }

    /**
     * Reads a message.
     *
     * @param id the {@code id} of its receipt
     * @return the message as it is now
     * @throws PostroadException if there is none with this id, or it could not be read in time
     * @throws IllegalArgumentException if the id holds anything but letters, digits, '_' and '-'
     */
    public Message get(String id) {
        return retries.run(null, true, read(id), this::message);
    }

    /**
     * Reads a message as {@link #get} does, without a thread that waits for it.
     *
     * @param id the {@code id} of its receipt
     * @return the message as it is now, or a {@link PostroadException}
     * @throws IllegalArgumentException if the id holds anything but letters, digits, '_' and '-'
     */
    public CompletableFuture<Message> getAsync(String id) {
        return retries.start(null, true, read(id), this::message);
    }

    /**
     * Reads a message, and when each of its recipients is tried next.
     *
     * @param id the id of the receipt
     * @return the message
     * @throws PostroadException if it could not be read
     */
    public Message getWithQueue(String id) {
        return api.call("GET", "/emails/" + Arguments.id(id) + "?include=queue", null, true, Message::from);
    }

    /**
     * Sends many emails with one request.
     *
     * @param emails the emails
     * @param allOrNothing refuse all of them when one is refused
     * @param idempotencyKey names the batch; null for a random one
     * @return for each, in order, its {@code id} or its {@code error}
     * @throws PostroadException if the batch was not accepted, or nobody knows whether it was
     */
    public List<Map<String, Object>> sendBatch(List<Email> emails, boolean allOrNothing, String idempotencyKey) {
        return sendTemplateBatch(Email.batch(emails, allOrNothing), idempotencyKey);
    }

    /**
     * Sends one template to many recipients, each with an email of their own.
     *
     * @param batch the members of the API: from, template, recipients and so on
     * @param idempotencyKey names the batch; null for a random one
     * @return for each, in order, its {@code id} or its {@code error}
     * @throws PostroadException if the batch was not accepted, or nobody knows whether it was
     */
    public List<Map<String, Object>> sendTemplateBatch(Map<String, ?> batch, String idempotencyKey) {
        String key = key(idempotencyKey);
        return retries.run(key, true, post(URI.create(emails + "/batch"), batch, key),
                response -> response.read(members -> members.requiredMaps("results"), timing.now()));
    }

    /**
     * Sends a scheduled email at another time.
     *
     * @param id the id of the receipt
     * @param sendAt when; null for now
     * @return the id, the status and the new times
     */
    public Map<String, Object> reschedule(String id, Instant sendAt) {
        Map<String, Object> body = Collections.singletonMap("send_at", sendAt == null ? null : sendAt.toString());
        return api.call("PATCH", "/emails/" + Arguments.id(id), body, true, Members::map);
    }

    /** Cancels the recipients for which no attempt has begun. */
    public Map<String, Object> cancel(String id) {
        return api.call("POST", "/emails/" + Arguments.id(id) + "/cancel", null, true, Members::map);
    }

    /**
     * Counts what became of the mail.
     *
     * @param period {@code 24h}, {@code 7d} or {@code 30d}
     * @return the statistics
     */
    public Map<String, Object> statistics(String period) {
        return api.call("GET", "/v1/statistics?period=" + Api.segment(period).substring(1), null, "statistics");
    }

    /** The balance, and whether the account may send. */
    public Map<String, Object> account() {
        return api.call("GET", "/v1/account", null, "account");
    }

    /** Counts what became of the mail of the last 24 hours. */
    public Map<String, Object> statistics() {
        return api.call("GET", "/v1/statistics", null, "statistics");
    }

    /** The API keys. */
    public ApiKeys apiKeys() {
        return new ApiKeys(api);
    }

    /** The message log. */
    public MessageLog messages() {
        return new MessageLog(api);
    }

    /** The templates. */
    public Templates templates() {
        return new Templates(api);
    }

    /** The suppressed addresses. */
    public Suppressions suppressions() {
        return new Suppressions(api);
    }

    /** The sender domains. */
    public Domains domains() {
        return new Domains(api);
    }

    /** The webhooks. */
    public WebhookEndpoints webhooks() {
        return new WebhookEndpoints(api);
    }

    private static String key(String given) {
        return given == null ? UUID.randomUUID().toString() : Arguments.headerValue("idempotencyKey", given);
    }

    private Retries.Attempt post(Email email, String key) {
        Objects.requireNonNull(email, "email");
        return post(emails, email.members(), key);
    }

    private Retries.Attempt post(URI uri, Map<String, ?> members, String key) {
        byte[] body = JsonWriter.write(members).getBytes(StandardCharsets.UTF_8);
        return limit -> transport.exchange("POST", uri, body, key, limit);
    }

    private Retries.Attempt read(String id) {
        URI message = URI.create(emails + "/" + Arguments.id(id));
        return limit -> transport.exchange("GET", message, null, null, limit);
    }

    private Receipt receipt(Response response) throws Failure {
        return response.read(Receipt::from, timing.now());
    }

    private Message message(Response response) throws Failure {
        return response.read(Message::from, timing.now());
    }

    /**
     * Waits until a message is final, for 5 minutes.
     *
     * @param id the {@code id} of its receipt
     * @return the message, of which every recipient has a final status
     * @throws TimedOutException if it is not final then
     * @throws PostroadException if the message could not be read
     */
    public Message waitFor(String id) {
        return waitFor(id, Duration.ofMinutes(5));
    }

    /**
     * Waits until a message is final. It is read after 1 second, then in pauses that grow to 10 seconds.
     *
     * @param id the {@code id} of its receipt
     * @param timeout for how long; zero reads it once
     * @return the message, of which every recipient has a final status
     * @throws TimedOutException if it is not final then
     * @throws PostroadException if the message could not be read
     */
    public Message waitFor(String id, Duration timeout) {
        long most = TimeUnit.NANOSECONDS.convert(Arguments.notNegative("timeout", timeout));
        long start = timing.nanoTime();
        for (long pause = FIRST_POLL; ; pause = Math.min(LONGEST_POLL, pause / 2 * 3)) {
            Message message = get(id);
            if (message.isFinal()) {
                return message;
            }
            long left = most - (timing.nanoTime() - start);
            if (left <= 0) {
                throw new TimedOutException(id + " is not final after " + timeout.toMillis() / 1000.0 + " s", message);
            }
            retries.pause(Math.min(pause, left));
        }
    }

    /** Where the client sends to; nothing of its credential. */
    @Override
    public String toString() {
        return "Postroad[" + emails + "]";
    }

    /** What a {@link Postroad} is made of: a base URL, one credential, and perhaps options. */
    public static final class Builder {
        private final String baseUrl;
        private String username;
        private String password;
        private String token;
        private Duration timeout = Duration.ofSeconds(30);
        private Duration maxElapsed = Duration.ofSeconds(60);
        private HttpClient httpClient;

        private Builder(String baseUrl) {
            this.baseUrl = baseUrl;
        }

        /**
         * Signs in with an SMTP credential.
         *
         * @param username its name
         * @param password its password
         * @return this builder
         */
        public Builder credential(String username, String password) {
            this.username = username;
            this.password = password;
            return this;
        }

        /**
         * Signs in with an API key or a JWT.
         *
         * @param token the key or the JWT
         * @return this builder
         */
        public Builder token(String token) {
            this.token = token;
            return this;
        }

        /**
         * Bounds one attempt, from connecting to the last byte; 30 seconds by default.
         *
         * @param timeout more than nothing
         * @return this builder
         */
        public Builder timeout(Duration timeout) {
            this.timeout = Arguments.positive("timeout", timeout);
            return this;
        }

        /**
         * Bounds a whole call, all attempts and pauses together; 60 seconds by default.
         *
         * @param maxElapsed zero turns retries off
         * @return this builder
         */
        public Builder maxElapsed(Duration maxElapsed) {
            this.maxElapsed = Arguments.notNegative("maxElapsed", maxElapsed);
            return this;
        }

        /**
         * Sends through an HTTP client of the application's own, with its TLS context or its proxy.
         * It must not follow redirects: the credential is for one host only.
         *
         * @param httpClient the HTTP client
         * @return this builder
         */
        public Builder httpClient(HttpClient httpClient) {
            if (httpClient.followRedirects() != HttpClient.Redirect.NEVER) {
                throw new IllegalArgumentException("httpClient must not follow redirects");
            }
            this.httpClient = httpClient;
            return this;
        }

        /**
         * Makes the client.
         *
         * @return the client
         * @throws IllegalArgumentException if the base URL or the credential cannot be used
         */
        public Postroad build() {
            return build(Timing.SYSTEM);
        }

        /** For tests: a client with another clock. */
        Postroad build(Timing timing) {
            return new Postroad(this, Arguments.baseUrl(baseUrl), authorization(), timing);
        }

        private String authorization() {
            boolean basic = username != null || password != null;
            if (basic == (token != null)) {
                throw new IllegalArgumentException("give either a username and a password, or a token");
            }
            if (!basic) {
                return "Bearer " + Arguments.headerValue("token", token);
            }
            String pair = Arguments.username(username) + ":" + Arguments.notEmpty("password", password);
            return "Basic " + Base64.getEncoder().encodeToString(pair.getBytes(StandardCharsets.UTF_8));
        }
    }
}
