package dev.postroad;

import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * The response to a send: the message is stored, and will be delivered.
 *
 * @param id the message's id, for {@link Postroad#get}
 * @param status {@code queued}
 * @param source {@code api}
 * @param requestId the id of the request, under which the server's log has it
 * @param from the sender
 * @param to the recipients
 * @param cc those of a copy
 * @param bcc those whom the others do not see
 * @param replyTo where replies go; empty if that is the sender
 * @param subject the subject
 * @param billingStatus {@code reserved}, {@code settled} or {@code released}
 * @param recipientCount how many unique recipients there are
 * @param creditsReserved how many credits were reserved
 * @param headers custom headers
 * @param tags the tags
 * @param attachments what is known of the attachments
 * @param sendAt when it is sent, if it was scheduled
 * @param expiresAt when delivery ends, if that was given
 * @param metadata your own data
 */
public record Receipt(
        String id,
        String status,
        String source,
        String requestId,
        String from,
        List<String> to,
        List<String> cc,
        List<String> bcc,
        List<String> replyTo,
        String subject,
        String billingStatus,
        Integer recipientCount,
        Integer creditsReserved,
        Map<String, String> headers,
        List<String> tags,
        List<AttachmentInfo> attachments,
        Instant sendAt,
        Instant expiresAt,
        Map<String, String> metadata) {

    static Receipt from(Members members) {
        return new Receipt(
                members.required("id"),
                members.string("status"),
                members.string("source"),
                members.string("request_id"),
                members.string("from"),
                members.strings("to"),
                members.strings("cc"),
                members.strings("bcc"),
                members.oneOrMoreStrings("reply_to"),
                members.string("subject"),
                members.string("billing_status"),
                members.integer("recipient_count"),
                members.integer("credits_reserved"),
                members.stringMap("headers"),
                members.strings("tags"),
                members.objects("attachments", AttachmentInfo::from),
                members.time("send_at"),
                members.time("expires_at"),
                members.stringMap("metadata"));
    }
}
