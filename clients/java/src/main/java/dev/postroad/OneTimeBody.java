package dev.postroad;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpRequest;
import java.nio.ByteBuffer;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The body of a request that is sent only once.
 *
 * <p>HttpClient sends a GET again by itself, at once, when the connection is lost before the response
 * begins, and with {@code jdk.httpclient.enableAllMethodRetry} a POST as well; neither can be turned
 * off for one client. Attempts are counted and spaced by {@link Retries}, so the repetition is
 * stopped here: HttpClient asks for the length each time that it writes the head of a request over
 * HTTP/1.1, and is not told a second time.
 */
final class OneTimeBody implements HttpRequest.BodyPublisher {
    private final HttpRequest.BodyPublisher body;
    private final long length;
    private final AtomicBoolean sent = new AtomicBoolean();

    OneTimeBody(byte[] bytes) {
        this.body = HttpRequest.BodyPublishers.ofByteArray(bytes);
        this.length = bytes.length;
    }

    @Override
    public long contentLength() {
        if (sent.getAndSet(true)) {
            throw new UncheckedIOException(new IOException("it was lost before a response"));
        }
        return length;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super ByteBuffer> subscriber) {
        body.subscribe(subscriber);
    }
}
