package dev.postroad;

import java.util.Map;

/** Sender domains. They are the objects of the API as maps. */
public final class Domains {
    private final Api api;

    Domains(Api api) {
        this.api = api;
    }

    /**
     * All domains, without their DNS records.
     *
     * @param filters limit
     * @return the items
     */
    public Iterable<Map<String, Object>> list(Map<String, ?> filters) {
        return api.pages("/v1/domains", "domains", filters);
    }

    /**
     * Registers a domain; its {@code records} say what to put into DNS.
     *
     * @param name its name
     * @return what the API responds
     */
    public Map<String, Object> create(String name) {
        return api.call("POST", "/v1/domains", Map.of("name", name), "domain");
    }

    /**
     * One domain with its DNS records.
     *
     * @param id its id
     * @return what the API responds
     */
    public Map<String, Object> get(String id) {
        return api.call("GET", "/v1/domains" + Api.segment(id), null, "domain");
    }

    /**
     * Checks the DNS records of a domain now.
     *
     * @param id its id
     * @return what the API responds
     */
    public Map<String, Object> check(String id) {
        return api.call("POST", "/v1/domains" + Api.segment(id) + "/check", null, true,
                members -> members.requiredMap("domain"));
    }

    /**
     * Makes a new DKIM key, which signs as soon as its record is found.
     *
     * @param id its id
     * @return what the API responds
     */
    public Map<String, Object> rotateKey(String id) {
        return api.call("POST", "/v1/domains" + Api.segment(id) + "/rotate-key", null, "domain");
    }

    /**
     * Removes a domain.
     *
     * @param id its id
     */
    public void delete(String id) {
        api.delete("/v1/domains" + Api.segment(id));
    }
}
