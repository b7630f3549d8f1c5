package dev.postroad;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The operation {@code call} of the driver: any method of the resources, with plain values. */
final class ResourceCalls {
    private ResourceCalls() {
    }

    /** What the method of this name gives. */
    static Object perform(Postroad client, String name, List<?> arguments, Map<?, ?> parameters) {
        Map<String, Object> given = members(parameters);
        String first = !arguments.isEmpty() && arguments.get(0) instanceof String text ? text : null;
        return switch (name) {
            case "account" -> client.account();
            case "statistics" -> client.statistics();
            case "messages.list" -> all(client.messages().list(given));
            case "messages.get" -> client.messages().get(first);
            case "messages.retry" -> client.messages().retry(first);
            case "templates.list" -> all(client.templates().list(given));
            case "templates.get" -> client.templates().get(first);
            case "templates.save" -> client.templates().save(first, given);
            case "templates.delete" -> none(() -> client.templates().delete(first));
            case "templates.preview" -> client.templates().preview(first, members(given.get("variables")));
            case "suppressions.list" -> all(client.suppressions().list(given));
            case "suppressions.create" -> client.suppressions().create(text(given, "email"), text(given, "reason"));
            case "suppressions.get" -> client.suppressions().get(first);
            case "suppressions.delete" -> none(() -> client.suppressions().delete(first));
            case "domains.list" -> all(client.domains().list(given));
            case "domains.create" -> client.domains().create(text(given, "name"));
            case "domains.get" -> client.domains().get(first);
            case "domains.check" -> client.domains().check(first);
            case "domains.rotate_key" -> client.domains().rotateKey(first);
            case "domains.delete" -> none(() -> client.domains().delete(first));
            case "webhooks.list" -> all(client.webhooks().list());
            case "webhooks.create" -> client.webhooks().create(given);
            case "webhooks.get" -> client.webhooks().get(first);
            case "webhooks.update" -> client.webhooks().update(first, given);
            case "webhooks.delete" -> none(() -> client.webhooks().delete(first));
            case "webhooks.rotate_secret" -> client.webhooks().rotateSecret(first, ((Number) given.get("overlap_hours")).intValue());
            case "webhooks.ping" -> client.webhooks().ping(first);
            case "webhooks.deliveries" -> all(client.webhooks().deliveries(first, given));
            case "webhooks.get_delivery" -> client.webhooks().getDelivery(first, (String) arguments.get(1));
            case "webhooks.replay" -> client.webhooks().replay(first, (String) arguments.get(1));
            case "webhooks.replay_failed" -> client.webhooks().replayFailed(first, given);
            case "api_keys.list" -> all(client.apiKeys().list(given));
            case "api_keys.create" -> client.apiKeys().create(given);
            case "api_keys.update" -> client.apiKeys().update(first, given);
            case "api_keys.revoke" -> none(() -> client.apiKeys().revoke(first));
            case "reschedule" -> client.reschedule(first, null);
            case "cancel" -> client.cancel(first);
            default -> throw new IllegalStateException("unknown method: " + name);
        };
    }

    private static Map<String, Object> members(Object object) {
        Map<String, Object> members = new LinkedHashMap<>();
        ((Map<?, ?>) object).forEach((name, value) -> members.put((String) name, value));
        return members;
    }

    private static String text(Map<String, Object> members, String name) {
        return (String) members.get(name);
    }

    private static Object all(Iterable<Map<String, Object>> items) {
        List<Object> list = new ArrayList<>();
        items.forEach(list::add);
        return list;
    }

    private static Object none(Runnable call) {
        call.run();
        return null;
    }
}
