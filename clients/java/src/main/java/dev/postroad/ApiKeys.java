package dev.postroad;

import java.util.Map;

/** Keys for programs, with scopes. They are the objects of the API as maps. */
public final class ApiKeys {
    private final Api api;

    ApiKeys(Api api) {
        this.api = api;
    }

    /**
     * All keys, oldest first, without the keys themselves.
     *
     * @param filters limit
     * @return the items
     */
    public Iterable<Map<String, Object>> list(Map<String, ?> filters) {
        return api.pages("/v1/api-keys", "api_keys", filters);
    }

    /**
     * Creates a key: {@code api_key}, and its {@code secret}, which is never shown again.
     *
     * @param settings name, and perhaps scopes, mode and so on
     * @return what the API responds
     */
    public Map<String, Object> create(Map<String, ?> settings) {
        return api.call("POST", "/v1/api-keys", settings, false, Members::map);
    }

    /**
     * Changes what is given.
     *
     * @param id its id
     * @param settings name, scopes or limits
     * @return what the API responds
     */
    public Map<String, Object> update(String id, Map<String, ?> settings) {
        return api.call("PATCH", "/v1/api-keys" + Api.segment(id), settings, "api_key");
    }

    /**
     * Revokes a key.
     *
     * @param id its id
     */
    public void revoke(String id) {
        api.delete("/v1/api-keys" + Api.segment(id));
    }
}
