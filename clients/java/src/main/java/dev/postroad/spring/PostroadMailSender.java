package dev.postroad.spring;

import dev.postroad.AuthenticationException;
import dev.postroad.ConnectionFailedException;
import dev.postroad.Email;
import dev.postroad.InvalidRequestException;
import dev.postroad.Postroad;
import dev.postroad.PostroadException;
import dev.postroad.Receipt;
import dev.postroad.TimedOutException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.springframework.mail.MailAuthenticationException;
import org.springframework.mail.MailException;
import org.springframework.mail.MailParseException;
import org.springframework.mail.MailSendException;
import org.springframework.mail.MailSender;
import org.springframework.mail.SimpleMailMessage;

/**
 * The {@link MailSender} of Spring, through Postroad.
 *
 * <p>It is no {@code JavaMailSender}: a MIME message is of {@code javax.mail} or of {@code jakarta.mail}, as the
 * version of Spring wants it. HTML, files, tags and metadata are added to {@link #email}; MIME messages that an
 * application makes already go to Postroad over SMTP, with Spring's own {@code JavaMailSenderImpl}.
 *
 * <p>Errors are Spring's: {@link MailAuthenticationException} for a credential that is not accepted,
 * {@link MailParseException} for a message that is refused as it is, and {@link MailSendException} for all others. The
 * cause is the {@link PostroadException}, which has the idempotency key.
 */
public final class PostroadMailSender implements MailSender {
    private final Postroad postroad;

    /**
     * Sends with this client, which may have other users.
     *
     * @param postroad the client
     */
    public PostroadMailSender(Postroad postroad) {
        this.postroad = Objects.requireNonNull(postroad, "postroad");
    }

    /**
     * A message of Spring as one of Postroad, to which more can be added. The date is left out: Postroad writes it.
     *
     * @param message the message
     * @return a builder with what it says
     */
    public static Email.Builder email(SimpleMailMessage message) {
        return Email.builder()
                .from(message.getFrom())
                .to(given(message.getTo()))
                .cc(given(message.getCc()))
                .bcc(given(message.getBcc()))
                .replyTo(message.getReplyTo())
                .subject(message.getSubject())
                .text(message.getText());
    }

    /**
     * Sends a message of Postroad, with the errors of Spring.
     *
     * @param email the message
     * @param idempotencyKey what names this message, such as {@code order-1042-receipt}; null makes one
     * @return the receipt: the message is stored, and will be delivered
     * @throws MailException if it was refused, or could not be handed over in time
     */
    public Receipt send(Email email, String idempotencyKey) {
        return send(email, idempotencyKey, email);
    }

    /** Sends a message, with a random idempotency key. */
    @Override
    public void send(SimpleMailMessage message) {
        send(email(message).build(), null, message);
    }

    /**
     * Sends messages one by one, each with a random idempotency key. One that fails does not keep the others back,
     * unless the service cannot be reached or does not accept the credential: then the rest is not tried.
     *
     * @throws MailSendException if some failed; it has them, each with its error
     */
    @Override
    public void send(SimpleMailMessage... messages) {
        Map<Object, Exception> failed = new LinkedHashMap<>();
        Throwable end = null;
        for (SimpleMailMessage message : messages) {
            if (end != null) {
                failed.put(message, new MailSendException("not tried after the error of another message", end));
                continue;
            }
            try {
                send(message);
            } catch (MailException e) {
                failed.put(message, e);
                end = isOfAll(e.getCause()) ? e.getCause() : null;
            }
        }
        if (!failed.isEmpty()) {
            throw new MailSendException(failed);
        }
    }

    /** The given one is what the caller knows: the key of a failure. */
    private Receipt send(Email email, String idempotencyKey, Object given) {
        try {
            return postroad.send(email, idempotencyKey);
        } catch (AuthenticationException e) {
            throw new MailAuthenticationException(e.getMessage(), e);
        } catch (InvalidRequestException | IllegalArgumentException e) {
            throw new MailParseException(e.getMessage(), e);
        } catch (PostroadException e) {
            throw new MailSendException(e.getMessage(), e, Map.of(given, e));
        }
    }

    private static boolean isOfAll(Throwable cause) {
        return cause instanceof AuthenticationException
                || cause instanceof ConnectionFailedException
                || cause instanceof TimedOutException;
    }

    private static String[] given(String[] addresses) {
        return addresses == null ? new String[0] : addresses;
    }
}
