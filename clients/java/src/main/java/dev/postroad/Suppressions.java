package dev.postroad;

import java.util.Map;

/** Addresses that get no mail from the account. They are the objects of the API as maps. */
public final class Suppressions {
    private final Api api;

    Suppressions(Api api) {
        this.api = api;
    }

    /**
     * The suppressed addresses in alphabetical order, page after page.
     *
     * @param filters email or source
     * @return the items
     */
    public Iterable<Map<String, Object>> list(Map<String, ?> filters) {
        return api.pages("/v1/suppressions", "suppressions", filters);
    }

    /**
     * Suppresses an address.
     *
     * @param email the address
     * @param reason why; null for none
     * @return what the API responds
     */
    public Map<String, Object> create(String email, String reason) {
        Map<String, String> body = reason == null ? Map.of("email", email) : Map.of("email", email, "reason", reason);
        return api.call("POST", "/v1/suppressions", body, "suppression");
    }

    /**
     * Why an address is suppressed.
     *
     * @param email the address
     * @return what the API responds
     */
    public Map<String, Object> get(String email) {
        return api.call("GET", "/v1/suppressions" + Api.segment(email), null, "suppression");
    }

    /**
     * Takes an address off the list.
     *
     * @param email the address
     */
    public void delete(String email) {
        api.delete("/v1/suppressions" + Api.segment(email));
    }
}
