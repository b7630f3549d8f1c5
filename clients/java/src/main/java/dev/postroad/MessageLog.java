package dev.postroad;

import java.util.Map;

/** The message log. Reading it needs the scope {@code read}. They are the objects of the API as maps. */
public final class MessageLog {
    private final Api api;

    MessageLog(Api api) {
        this.api = api;
    }

    /**
     * The messages that match, newest first, page after page.
     *
     * @param filters status, source, from, to, tag, metadata, after, before or mode
     * @return the items
     */
    public Iterable<Map<String, Object>> list(Map<String, ?> filters) {
        return api.pages("/v1/messages", "messages", filters);
    }

    /**
     * One message with all its attempts.
     *
     * @param id its id
     * @return what the API responds
     */
    public Map<String, Object> get(String id) {
        return api.get("/v1/messages" + Api.segment(id));
    }

    /**
     * Retries the waiting recipients now.
     *
     * @param id its id
     * @return what the API responds
     */
    public Map<String, Object> retry(String id) {
        return api.call("POST", "/v1/messages" + Api.segment(id) + "/retry", Map.of(), false, Members::map);
    }

    /**
     * Retries one waiting recipient now.
     *
     * @param id its id
     * @param recipientId that of the recipient
     * @return what the API responds
     */
    public Map<String, Object> retry(String id, String recipientId) {
        return api.call("POST", "/v1/messages" + Api.segment(id) + "/retry",
                Map.of("recipient_id", recipientId), false, Members::map);
    }
}
