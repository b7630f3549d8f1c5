package dev.postroad;

import java.time.Instant;
import java.util.Map;

/**
 * One recipient of a {@link Message}.
 *
 * @param id its id
 * @param email the address
 * @param status {@code queued}, {@code deferred}, {@code delivered}, {@code bounced}, {@code failed}, {@code canceled} or
 *     {@code expired}
 * @param billingStatus what became of its credit
 * @param attemptCount how often delivery was tried
 * @param lastSmtpCode the last reply code of the destination, if there was one
 * @param lastSmtpResponse the text of that reply, or why nobody was asked
 * @param deliveredAt when the destination accepted it
 * @param bouncedAt when the destination refused it for good
 * @param queue when it is tried next, and why not earlier, where that was asked for; otherwise empty
 */
public record Recipient(
        String id,
        String email,
        String status,
        String billingStatus,
        Integer attemptCount,
        Integer lastSmtpCode,
        String lastSmtpResponse,
        Instant deliveredAt,
        Instant bouncedAt,
        Map<String, Object> queue) {

    static Recipient from(Members members) {
        return new Recipient(
                members.string("id"),
                members.string("email"),
                members.string("status"),
                members.string("billing_status"),
                members.integer("attempt_count"),
                members.integer("last_smtp_code"),
                members.string("last_smtp_response"),
                members.time("delivered_at"),
                members.time("bounced_at"),
                members.object("queue").map());
    }
}
