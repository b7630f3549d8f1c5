package dev.postroad;

import java.io.IOException;
import java.net.ConnectException;
import java.net.ProtocolException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** One request and its whole response, within a deadline. */
final class Transport {
    static final String USER_AGENT = "postroad-java/0.1.0";

    private final HttpClient client;
    private final String authorization;

    /** {@code client} may be null: then it is one that asks no proxy. */
    Transport(HttpClient client, String authorization) {
        this.client = client != null ? client : HttpClient.newBuilder()
                .followRedirects(HttpClient.Redirect.NEVER)
                .proxy(HttpClient.Builder.NO_PROXY)
                .build();
        this.authorization = authorization;
    }

    /** One attempt. Without a body or a key they are null. */
    CompletableFuture<Response> exchange(String method, URI uri, byte[] json, String idempotencyKey, long limit) {
        HttpRequest.Builder builder = HttpRequest.newBuilder(uri)
                .method(method, new OneTimeBody(json == null ? new byte[0] : json));
        if (json != null) {
            builder.header("Content-Type", "application/json");
        }
        if (idempotencyKey != null) {
            builder.header("Idempotency-Key", idempotencyKey);
        }
        return exchange(builder, limit);
    }

    private CompletableFuture<Response> exchange(HttpRequest.Builder builder, long limit) {
        HttpRequest request = builder
                .version(HttpClient.Version.HTTP_1_1)
                .timeout(Duration.ofNanos(limit))
                .header("Authorization", authorization)
                .header("User-Agent", USER_AGENT)
                .build();
        String server = request.uri().getRawAuthority();
        CompletableFuture<HttpResponse<byte[]>> exchange = client.sendAsync(request, head -> new BoundedBody());
        // The timeout of the request closes what does not get connected, but ends with the head of the
        // response; this one has the body in it.
        CompletableFuture<HttpResponse<byte[]>> bounded = new CompletableFuture<>();
        bounded.orTimeout(limit, TimeUnit.NANOSECONDS);
        exchange.whenComplete((response, error) -> {
            if (error == null) {
                bounded.complete(response);
            } else {
                bounded.completeExceptionally(error);
            }
        });
        CompletableFuture<Response> result = bounded.handle((response, error) -> {
            if (error != null) {
                throw new CompletionException(failure(server, error instanceof CompletionException ? error.getCause() : error));
            }
            return new Response(response.statusCode(), response.headers(), response.body());
        });
        result.whenComplete((response, error) -> exchange.cancel(true)); // closes the connection, unless all is done
        return result;
    }

    private static Failure failure(String server, Throwable cause) {
        if (cause instanceof Error error) {
            throw error;
        }
        if (cause instanceof TimeoutException || cause instanceof HttpTimeoutException) {
            return Failure.noResponse(Failure.TIMED_OUT, "no complete response from " + server + " in time", cause);
        }
        if (cause instanceof ConnectException) {
            String text = "could not connect to " + server + ": " + reason(cause);
            return Failure.noResponse(Failure.CONNECTION_FAILED, text, cause);
        }
        if (hasCause(cause, IOException.class) && !hasCause(cause, ProtocolException.class)) {
            String text = "the connection to " + server + " failed: " + reason(cause);
            return Failure.noResponse(Failure.CONNECTION_FAILED, text, cause);
        }
        // HttpClient throws all kinds of exceptions at a head that it cannot read.
        String text = "the response of " + server + " is not HTTP: " + reason(cause);
        return Failure.noResponse(Failure.UNEXPECTED_RESPONSE, text, cause);
    }

    /** What the innermost cause says; the ones around it are often silent. */
    private static String reason(Throwable cause) {
        if (hasCause(cause, UnresolvedAddressException.class)) {
            return "its name is not known";
        }
        // Of a refused connection HttpClient says nothing at all.
        String reason = cause instanceof ConnectException ? "connection refused" : cause.getClass().getSimpleName();
        for (Throwable each = cause; each != null; each = each.getCause()) {
            reason = each.getMessage() != null ? each.getMessage() : reason;
        }
        return Response.quote(reason);
    }

    private static boolean hasCause(Throwable cause, Class<? extends Throwable> type) {
        for (Throwable each = cause; each != null; each = each.getCause()) {
            if (type.isInstance(each)) {
                return true;
            }
        }
        return false;
    }
}
