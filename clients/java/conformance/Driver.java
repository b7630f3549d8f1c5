package dev.postroad;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The driver of the conformance suite: a line of JSON in, a line of JSON out. It is in the package
 * only for its JSON; everything else that it uses is public.
 */
public final class Driver {
    private static final Map<Class<? extends PostroadException>, String> KINDS = Map.ofEntries(
            Map.entry(InvalidRequestException.class, "invalid_request"),
            Map.entry(AuthenticationException.class, "authentication"),
            Map.entry(InsufficientCreditsException.class, "insufficient_credits"),
            Map.entry(PermissionDeniedException.class, "permission_denied"),
            Map.entry(NotFoundException.class, "not_found"),
            Map.entry(IdempotencyException.class, "idempotency"),
            Map.entry(RateLimitException.class, "rate_limited"),
            Map.entry(ServerException.class, "server"),
            Map.entry(ConnectionFailedException.class, "connection_failed"),
            Map.entry(TimedOutException.class, "timed_out"),
            Map.entry(UnexpectedResponseException.class, "unexpected_response"),
            Map.entry(SignatureVerificationException.class, "signature"));

    private Driver() {
    }

    /**
     * Answers every line of the standard input.
     *
     * @param arguments none
     * @throws IOException if a file cannot be read
     */
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JsonWriter.write(answer(map(JsonReader.read(line)))));
        }
    }

    private static Map<String, ?> answer(Map<?, ?> call) throws IOException {
        try {
            return Collections.singletonMap("result", result(call));
        } catch (PostroadException e) {
            return Map.of("error", error(e));
        } catch (IllegalArgumentException e) {
            return Map.of("refused", e.getMessage());
        }
    }

    private static Object result(Map<?, ?> call) throws IOException {
        switch (text(call, "operation")) {
            case "send":
                return receipt(client(map(call.get("client")))
                        .send(email(map(call.get("email"))), text(call, "idempotency_key")));
            case "call":
                return called(client(map(call.get("client"))), call);
            case "get":
                return message(client(map(call.get("client"))).get(text(call, "id")));
            case "wait":
                return message(client(map(call.get("client")))
                        .waitFor(text(call, "id"), seconds(call.get("timeout"))));
            case "parse_event":
                return event(Webhooks.parseEvent(
                        Base64.getDecoder().decode(text(call, "body_base64")),
                        text(call, "header"),
                        List.of(texts(call, "secrets")),
                        seconds(call.get("tolerance")),
                        Instant.EPOCH.plus(seconds(call.get("now")))));
            case "verify":
                return Webhooks.verify(
                        Base64.getDecoder().decode(text(call, "body_base64")),
                        text(call, "header"),
                        text(call, "secret"),
                        seconds(call.get("tolerance")),
                        Instant.EPOCH.plus(seconds(call.get("now"))));
            default:
                throw new IllegalStateException("unknown operation: " + call.get("operation"));
        }
    }

    private static Object called(Postroad client, Map<?, ?> call) throws IOException {
        List<?> arguments = list(call.get("arguments"));
        Map<?, ?> parameters = map(call.get("parameters"));
        if (!text(call, "name").equals("send_batch")) {
            return ResourceCalls.perform(client, text(call, "name"), arguments, parameters);
        }
        List<Email> emails = new ArrayList<>();
        for (Object each : list(arguments.get(0))) {
            emails.add(email(map(each)));
        }
        boolean allOrNothing = Boolean.TRUE.equals(parameters.get("all_or_nothing"));
        return client.sendBatch(emails, allOrNothing, text(parameters, "idempotency_key"));
    }

    private static Postroad client(Map<?, ?> options) {
        Postroad.Builder builder = Postroad.builder(text(options, "base_url"));
        if (options.containsKey("username") || options.containsKey("password")) {
            builder.credential(text(options, "username"), text(options, "password"));
        }
        if (options.containsKey("token")) {
            builder.token(text(options, "token"));
        }
        if (options.containsKey("timeout")) {
            builder.timeout(seconds(options.get("timeout")));
        }
        if (options.containsKey("max_elapsed")) {
            builder.maxElapsed(seconds(options.get("max_elapsed")));
        }
        return builder.build();
    }

    private static Email email(Map<?, ?> given) throws IOException {
        Email.Builder builder = Email.builder()
                .from(text(given, "from"))
                .to(texts(given, "to"))
                .cc(texts(given, "cc"))
                .bcc(texts(given, "bcc"))
                .replyTo(texts(given, "reply_to"))
                .subject(text(given, "subject"))
                .text(text(given, "text"))
                .html(text(given, "html"))
                .template(text(given, "template"))
                .tag(texts(given, "tags"));
        map(given.get("metadata")).forEach((name, value) -> builder.metadata((String) name, (String) value));
        if (given.containsKey("send_at")) {
            builder.sendAt(Instant.parse(text(given, "send_at")));
        }
        if (given.containsKey("expires_in")) {
            builder.expiresIn((int) seconds(given.get("expires_in")).toSeconds());
        }
        map(given.get("variables")).forEach((name, value) -> builder.variable((String) name, value));
        map(given.get("headers")).forEach((name, value) -> builder.header((String) name, (String) value));
        for (Object each : list(given.get("attachments"))) {
            builder.attach(attachment(map(each)));
        }
        return builder.build();
    }

    private static Attachment attachment(Map<?, ?> given) throws IOException {
        String filename = text(given, "filename");
        Attachment attachment;
        if (given.containsKey("path")) {
            attachment = Attachment.ofFile(Path.of(text(given, "path")));
            attachment = filename == null ? attachment : attachment.withFilename(filename);
        } else {
            attachment = Attachment.of(filename, Base64.getDecoder().decode(text(given, "bytes_base64")));
        }
        return attachment
                .withContentType(text(given, "content_type"))
                .withContentId(text(given, "content_id"));
    }

    private static Map<String, Object> receipt(Receipt receipt) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("id", receipt.id());
        members.put("status", receipt.status());
        members.put("source", receipt.source());
        members.put("request_id", receipt.requestId());
        members.put("from", receipt.from());
        members.put("to", receipt.to());
        members.put("cc", receipt.cc());
        members.put("bcc", receipt.bcc());
        List<String> replies = receipt.replyTo();
        members.put("reply_to", replies.isEmpty() ? null : replies.size() == 1 ? replies.get(0) : replies);
        members.put("subject", receipt.subject());
        members.put("billing_status", receipt.billingStatus());
        members.put("recipient_count", receipt.recipientCount());
        members.put("credits_reserved", receipt.creditsReserved());
        members.put("headers", receipt.headers());
        members.put("tags", receipt.tags());
        members.put("attachments", receipt.attachments().stream().map(Driver::attachmentInfo).toList());
        members.put("send_at", time(receipt.sendAt()));
        members.put("expires_at", time(receipt.expiresAt()));
        members.put("metadata", receipt.metadata());
        return members;
    }

    private static Map<String, Object> attachmentInfo(AttachmentInfo attachment) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("filename", attachment.filename());
        members.put("content_type", attachment.contentType());
        members.put("size", attachment.size());
        members.put("content_id", attachment.contentId());
        return members;
    }

    private static Map<String, Object> message(Message message) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("id", message.id());
        members.put("status", message.status());
        members.put("source", message.source());
        members.put("from", message.from());
        members.put("subject", message.subject());
        members.put("billing_status", message.billingStatus());
        members.put("recipient_count", message.recipientCount());
        members.put("credits_reserved", message.creditsReserved());
        members.put("created_at", time(message.createdAt()));
        members.put("recipients", message.recipients().stream().map(Driver::recipient).toList());
        members.put("request_id", message.requestId());
        members.put("send_at", time(message.sendAt()));
        members.put("expires_at", time(message.expiresAt()));
        members.put("metadata", message.metadata());
        return members;
    }

    private static Map<String, Object> recipient(Recipient recipient) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("id", recipient.id());
        members.put("email", recipient.email());
        members.put("status", recipient.status());
        members.put("billing_status", recipient.billingStatus());
        members.put("attempt_count", recipient.attemptCount());
        members.put("last_smtp_code", recipient.lastSmtpCode());
        members.put("last_smtp_response", recipient.lastSmtpResponse());
        members.put("delivered_at", time(recipient.deliveredAt()));
        members.put("bounced_at", time(recipient.bouncedAt()));
        return members;
    }

    private static Map<String, Object> event(Event event) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("email_id", event.data().emailId());
        data.put("recipient_id", event.data().recipientId());
        data.put("to", event.data().to());
        data.put("from", event.data().from());
        data.put("subject", event.data().subject());
        data.put("smtp_code", event.data().smtpCode());
        data.put("smtp_response", event.data().smtpResponse());
        data.put("test", event.data().test());
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("id", event.id());
        members.put("type", event.type());
        members.put("created_at", time(event.createdAt()));
        members.put("data", data);
        return members;
    }

    private static Map<String, Object> error(PostroadException error) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("kind", KINDS.get(error.getClass()));
        members.put("status", error.status() == 0 ? null : error.status());
        members.put("code", error.code());
        members.put("request_id", error.requestId());
        members.put("message", error.getMessage());
        members.put("retry_after", error.retryAfter() == null ? null : error.retryAfter().toMillis() / 1000.0);
        members.put("idempotency_key", error.idempotencyKey());
        members.put("is_retryable", error.isRetryable());
        members.put("is_insufficient_credits", error.isInsufficientCredits());
        members.put("is_idempotency_conflict", error.isIdempotencyConflict());
        return members;
    }

    private static String time(Instant time) {
        return time == null ? null : time.toString();
    }

    private static Duration seconds(Object number) {
        return Duration.ofNanos(new BigDecimal(number.toString()).movePointRight(9).longValue());
    }

    private static String text(Map<?, ?> members, String name) {
        return (String) members.get(name);
    }

    private static String[] texts(Map<?, ?> members, String name) {
        Object value = members.get(name);
        return value instanceof String text ? new String[] {text} : list(value).toArray(String[]::new);
    }

    private static Map<?, ?> map(Object value) {
        return value == null ? Map.of() : (Map<?, ?>) value;
    }

    private static List<?> list(Object value) {
        return value == null ? List.of() : (List<?>) value;
    }
}
