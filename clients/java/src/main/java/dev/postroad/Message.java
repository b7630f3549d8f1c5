package dev.postroad;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A message as it is now.
 *
 * @param id its id
 * @param status {@code queued} until every recipient is final; then {@code delivered}, {@code partial} or {@code failed}
 * @param source how it came in: {@code api}, {@code smtp} or {@code test}
 * @param from the sender
 * @param subject the subject
 * @param billingStatus {@code reserved}, {@code settled} or {@code released}
 * @param recipientCount how many unique recipients there are
 * @param creditsReserved how many credits were reserved
 * @param createdAt when it was accepted
 * @param recipients what became of it, for each recipient
 * @param requestId the id of this request, under which the server's log has it
 * @param sendAt when it is sent, if it was scheduled
 * @param expiresAt when delivery ends, if that was given
 * @param metadata your own data
 * @param test whether it was sent with a test key
 */
public record Message(
        String id,
        String status,
        String source,
        String from,
        String subject,
        String billingStatus,
        Integer recipientCount,
        Integer creditsReserved,
        Instant createdAt,
        List<Recipient> recipients,
        String requestId,
        Instant sendAt,
        Instant expiresAt,
        Map<String, String> metadata,
        boolean test) {
    private static final Set<String> FINAL = Set.of("delivered", "bounced", "failed", "canceled", "expired");

    /**
     * Whether every recipient has a final status.
     *
     * @return true if each of them is {@code delivered}, {@code bounced}, {@code failed}, {@code canceled} or {@code expired}
     */
    public boolean isFinal() {
        return !recipients.isEmpty()
                && recipients.stream().allMatch(recipient -> recipient.status() != null && FINAL.contains(recipient.status()));
    }

    static Message from(Members members) {
        return new Message(
                members.required("id"),
                members.required("status"),
                members.string("source"),
                members.string("from"),
                members.string("subject"),
                members.string("billing_status"),
                members.integer("recipient_count"),
                members.integer("credits_reserved"),
                members.time("created_at"),
                members.objects("recipients", Recipient::from),
                members.string("request_id"),
                members.time("send_at"),
                members.time("expires_at"),
                members.stringMap("metadata"),
                members.flag("test"));
    }
}
