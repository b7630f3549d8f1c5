package dev.postroad;

import java.util.Map;

/** Templates of mail. They are the objects of the API as maps. */
public final class Templates {
    private final Api api;

    Templates(Api api) {
        this.api = api;
    }

    /**
     * All templates, without their bodies.
     *
     * @param filters limit
     * @return the items
     */
    public Iterable<Map<String, Object>> list(Map<String, ?> filters) {
        return api.pages("/v1/templates", "templates", filters);
    }

    /**
     * One template.
     *
     * @param alias its alias
     * @return what the API responds
     */
    public Map<String, Object> get(String alias) {
        return api.call("GET", "/v1/templates" + Api.segment(alias), null, "template");
    }

    /**
     * Creates a template, or changes it.
     *
     * @param alias its alias
     * @param template subject, text and html
     * @return what the API responds
     */
    public Map<String, Object> save(String alias, Map<String, ?> template) {
        return api.call("PUT", "/v1/templates" + Api.segment(alias), template, "template");
    }

    /**
     * Removes a template.
     *
     * @param alias its alias
     */
    public void delete(String alias) {
        api.delete("/v1/templates" + Api.segment(alias));
    }

    /**
     * What a mail with these values would say.
     *
     * @param alias its alias
     * @param variables values of the placeholders
     * @return what the API responds
     */
    public Map<String, Object> preview(String alias, Map<String, ?> variables) {
        return api.call("POST", "/v1/templates" + Api.segment(alias) + "/preview",
                Map.of("variables", variables), true, Members::map);
    }
}
