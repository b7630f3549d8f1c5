package dev.postroad;

import java.io.ByteArrayOutputStream;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** Reads the body of a response to a limit and no further. One that is longer ends one byte behind it. */
final class BoundedBody implements HttpResponse.BodySubscriber<byte[]> {
    static final int LIMIT = 4 << 20;

    private final CompletableFuture<byte[]> body = new CompletableFuture<>();
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private Flow.Subscription subscription;

    @Override
    public CompletionStage<byte[]> getBody() {
        return body;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        this.subscription = subscription;
        subscription.request(1);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        for (ByteBuffer buffer : buffers) {
            byte[] part = new byte[Math.min(buffer.remaining(), LIMIT + 1 - bytes.size())];
            buffer.get(part);
            bytes.writeBytes(part);
        }
        if (bytes.size() > LIMIT) {
            subscription.cancel();
            body.complete(bytes.toByteArray());
        } else {
            subscription.request(1);
        }
    }

    @Override
    public void onError(Throwable error) {
        body.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
        body.complete(bytes.toByteArray());
    }
}
