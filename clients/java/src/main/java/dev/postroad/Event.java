package dev.postroad;

import java.time.Instant;

/**
 * What a webhook request tells: the result of one recipient.
 *
 * @param id its id; the same event can come twice
 * @param type {@code email.delivered}, {@code email.bounced}, {@code email.failed} or {@code webhook.test}
 * @param createdAt when the result became final
 * @param data what it is about
 */
public record Event(String id, String type, Instant createdAt, Data data) {
    /**
     * The recipient and the result. What is not known is null.
     *
     * @param emailId the id of the message
     * @param recipientId the id of the recipient
     * @param to the recipient's address
     * @param from the envelope sender
     * @param subject the beginning of the subject
     * @param smtpCode the reply code of the destination
     * @param smtpResponse the text of that reply
     * @param test true in {@code webhook.test} events only
     */
    public record Data(
            String emailId,
            String recipientId,
            String to,
            String from,
            String subject,
            Integer smtpCode,
            String smtpResponse,
            boolean test) {

        static Data from(Members members) {
            return new Data(
                    members.string("email_id"),
                    members.string("recipient_id"),
                    members.string("to"),
                    members.string("from"),
                    members.string("subject"),
                    members.integer("smtp_code"),
                    members.string("smtp_response"),
                    members.flag("test"));
        }
    }

    static Event from(Members members) {
        return new Event(
                members.required("id"),
                members.required("type"),
                members.time("created_at"),
                Data.from(members.object("data")));
    }
}
