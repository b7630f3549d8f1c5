package dev.postroad;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * A message to send. Which members it needs and what they may say is checked by the server, whose
 * refusal names the member and the reason.
 */
public final class Email {
    private final Map<String, Object> members;

    private Email(Map<String, Object> members) {
        this.members = members;
    }

    /**
     * Begins a message.
     *
     * @return an empty builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /** As the interface has it; what was not given is left out. */
    Map<String, Object> members() {
        return members;
    }

    /** Several as the interface has them; in one order, since a key is for one body. */
    static Map<String, Object> batch(List<Email> emails, boolean allOrNothing) {
        Map<String, Object> batch = new LinkedHashMap<>();
        batch.put("emails", emails.stream().map(Email::members).toList());
        if (allOrNothing) {
            batch.put("all_or_nothing", true);
        }
        return batch;
    }

    /** What an {@link Email} is made of. Lists grow with each call; everything else is replaced. */
    public static final class Builder {
        private final List<String> to = new ArrayList<>();
        private final List<String> cc = new ArrayList<>();
        private final List<String> bcc = new ArrayList<>();
        private final List<String> tags = new ArrayList<>();
        private final List<Attachment> attachments = new ArrayList<>();
        private final Map<String, String> headers = new LinkedHashMap<>();
        private final Map<String, Object> variables = new LinkedHashMap<>();
        private String from;
        private final List<String> replyTo = new ArrayList<>();
        private String subject;
        private String text;
        private String html;
        private final Map<String, String> metadata = new LinkedHashMap<>();
        private final Map<String, String> simulate = new LinkedHashMap<>();
        private String template;
        private Instant sendAt;
        private Integer expiresIn;

        private Builder() {
        }

        /**
         * Sets the sender, at a domain of the account.
         *
         * @param from {@code user@example.com} or {@code Name <user@example.com>}
         * @return this builder
         */
        public Builder from(String from) {
            this.from = from;
            return this;
        }

        /**
         * Adds recipients.
         *
         * @param addresses one or more
         * @return this builder
         */
        public Builder to(String... addresses) {
            Collections.addAll(to, addresses);
            return this;
        }

        /**
         * Adds recipients of a copy.
         *
         * @param addresses one or more
         * @return this builder
         */
        public Builder cc(String... addresses) {
            Collections.addAll(cc, addresses);
            return this;
        }

        /**
         * Adds recipients whom the others do not see.
         *
         * @param addresses one or more
         * @return this builder
         */
        public Builder bcc(String... addresses) {
            Collections.addAll(bcc, addresses);
            return this;
        }

        /**
         * Adds addresses to which replies go, up to ten.
         *
         * @param addresses one or more; null is none
         * @return this builder
         */
        public Builder replyTo(String... addresses) {
            Stream.of(addresses).filter(Objects::nonNull).forEach(replyTo::add);
            return this;
        }

        /**
         * Sets the subject.
         *
         * @param subject one line
         * @return this builder
         */
        public Builder subject(String subject) {
            this.subject = subject;
            return this;
        }

        /**
         * Sets the body as plain text.
         *
         * @param text the text
         * @return this builder
         */
        public Builder text(String text) {
            this.text = text;
            return this;
        }

        /**
         * Sets the body as HTML.
         *
         * @param html the HTML
         * @return this builder
         */
        public Builder html(String html) {
            this.html = html;
            return this;
        }

        /**
         * Takes subject and bodies from a template.
         *
         * @param alias the template's alias
         * @return this builder
         */
        public Builder template(String alias) {
            this.template = alias;
            return this;
        }

        /**
         * Gives a placeholder of the template its value.
         *
         * @param name the placeholder, without braces
         * @param value a string, a number, a boolean or null; or a list or a map of them
         * @return this builder
         */
        public Builder variable(String name, Object value) {
            variables.put(name, value);
            return this;
        }

        /**
         * Adds a header to the message.
         *
         * @param name such as {@code List-Unsubscribe}
         * @param value its value
         * @return this builder
         */
        public Builder header(String name, String value) {
            headers.put(name, value);
            return this;
        }

        /**
         * Adds tags, by which the log can be searched.
         *
         * @param tags one or more
         * @return this builder
         */
        public Builder tag(String... tags) {
            Collections.addAll(this.tags, tags);
            return this;
        }

        /**
         * Adds files.
         *
         * @param attachments one or more
         * @return this builder
         */
        public Builder attach(Attachment... attachments) {
            Collections.addAll(this.attachments, attachments);
            return this;
        }

        /**
         * When to send; by default now.
         *
         * @param sendAt the time, up to 30 days ahead
         * @return this
         */
        public Builder sendAt(Instant sendAt) {
            this.sendAt = sendAt;
            return this;
        }

        /**
         * After how many seconds delivery is no longer tried.
         *
         * @param seconds from sendAt, or from now
         * @return this
         */
        public Builder expiresIn(int seconds) {
            this.expiresIn = seconds;
            return this;
        }

        /**
         * Adds your own data, which is not part of the mail.
         *
         * @param key its name
         * @param value its value
         * @return this
         */
        public Builder metadata(String key, String value) {
            metadata.put(key, value);
            return this;
        }

        /**
         * With a test key: which provider to imitate, and how it behaves.
         *
         * @param member {@code provider} or {@code behaviour}
         * @param value its value
         * @return this
         */
        public Builder simulate(String member, String value) {
            simulate.put(member, value);
            return this;
        }

        /**
         * Makes the message.
         *
         * @return the message
         */
        public Email build() {
            Map<String, Object> members = new LinkedHashMap<>();
            members.put("from", from);
            members.put("to", List.copyOf(to));
            members.put("cc", List.copyOf(cc));
            members.put("bcc", List.copyOf(bcc));
            members.put("reply_to", replyTo.size() == 1 ? replyTo.get(0) : List.copyOf(replyTo));
            members.put("subject", subject);
            members.put("text", text);
            members.put("html", html);
            members.put("template", template);
            members.put("variables", new LinkedHashMap<>(variables));
            members.put("headers", new LinkedHashMap<>(headers));
            members.put("tags", List.copyOf(tags));
            members.put("attachments", attachments.stream().map(Attachment::members).toList());
            members.put("send_at", sendAt == null ? null : sendAt.toString());
            members.put("expires_in", expiresIn);
            members.put("metadata", new LinkedHashMap<>(metadata));
            members.put("simulate", new LinkedHashMap<>(simulate));
            members.values().removeIf(Builder::isMissing);
            return new Email(members);
        }

        private static boolean isMissing(Object value) {
            return value == null
                    || value instanceof Collection<?> list && list.isEmpty()
                    || value instanceof Map<?, ?> map && map.isEmpty();
        }
    }
}
