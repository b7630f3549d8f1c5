package dev.postroad;

import java.util.Map;

/** The settings of the webhooks; {@link Webhooks} is for what they send. They are the objects of the API as maps. */
public final class WebhookEndpoints {
    private final Api api;

    WebhookEndpoints(Api api) {
        this.api = api;
    }

    /**
     * All webhooks, the first one first.
     *
     * @return what the API responds
     */
    public Iterable<Map<String, Object>> list() {
        return api.pages("/v1/webhooks", "webhooks", Map.of());
    }

    /**
     * Creates a webhook: {@code webhook}, and its {@code secret}, which is never shown again.
     *
     * @param settings url, and perhaps events, tags and so on
     * @return what the API responds
     */
    public Map<String, Object> create(Map<String, ?> settings) {
        return api.call("POST", "/v1/webhooks", settings, false, Members::map);
    }

    /**
     * One webhook.
     *
     * @param id its id
     * @return what the API responds
     */
    public Map<String, Object> get(String id) {
        return api.call("GET", "/v1/webhooks" + Api.segment(id), null, "webhook");
    }

    /**
     * Changes what is given.
     *
     * @param id its id
     * @param settings url, events, enabled and so on
     * @return what the API responds
     */
    public Map<String, Object> update(String id, Map<String, ?> settings) {
        return api.call("PATCH", "/v1/webhooks" + Api.segment(id), settings, "webhook");
    }

    /**
     * Removes a webhook, and what it has not sent yet.
     *
     * @param id its id
     */
    public void delete(String id) {
        api.delete("/v1/webhooks" + Api.segment(id));
    }

    /**
     * Makes a new secret; the old one signs as well for some hours.
     *
     * @param id its id
     * @param overlapHours how many; 0 ends the old one now
     * @return the new secret
     */
    public String rotateSecret(String id, int overlapHours) {
        return api.call("POST", "/v1/webhooks" + Api.segment(id) + "/rotate-secret",
                overlapHours == 0 ? Map.of() : Map.of("overlap_hours", overlapHours),
                false, members -> members.required("secret"));
    }

    /**
     * Sends a test event now, and gives its delivery.
     *
     * @param id its id
     * @return what the API responds
     */
    public Map<String, Object> ping(String id) {
        return api.call("POST", "/v1/webhooks" + Api.segment(id) + "/ping", null, "delivery");
    }

    /**
     * The deliveries of the last 7 days, newest first, page after page.
     *
     * @param id its id
     * @param filters message_id, status or limit
     * @return the items
     */
    public Iterable<Map<String, Object>> deliveries(String id, Map<String, ?> filters) {
        return api.pages("/v1/webhooks" + Api.segment(id) + "/deliveries", "deliveries", filters);
    }

    /**
     * One delivery with every attempt.
     *
     * @param id its id
     * @param deliveryId that of the delivery
     * @return what the API responds
     */
    public Map<String, Object> getDelivery(String id, String deliveryId) {
        return api.call("GET",
                "/v1/webhooks" + Api.segment(id) + "/deliveries" + Api.segment(deliveryId), null, "delivery");
    }

    /**
     * Sends the failed events of a period again.
     *
     * @param id its id
     * @param period after and before
     * @return what the API responds
     */
    public Map<String, Object> replayFailed(String id, Map<String, ?> period) {
        return api.call("POST", "/v1/webhooks" + Api.segment(id) + "/deliveries/replay", period, false, Members::map);
    }

    /**
     * Sends the event of a delivery again.
     *
     * @param id its id
     * @param deliveryId that of the delivery
     * @return what the API responds
     */
    public Map<String, Object> replay(String id, String deliveryId) {
        return api.call("POST",
                "/v1/webhooks" + Api.segment(id) + "/deliveries" + Api.segment(deliveryId) + "/replay", null, "delivery");
    }
}
