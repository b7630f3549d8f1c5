package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EmailTest {
    @TempDir
    Path folder;

    @Test
    void leavesOutWhatWasNotGiven() {
        assertEquals("{}", JsonWriter.write(Email.builder().build().members()));
        assertEquals("{\"from\":\"a@example.com\",\"to\":[\"b@example.net\"],\"text\":\"\"}",
                JsonWriter.write(Email.builder().from("a@example.com").to("b@example.net").text("").build().members()));
    }

    @Test
    void hasEveryMember() {
        Email email = Email.builder()
                .from("Shop <hello@example.com>")
                .to("a@example.net", "b@example.net").to("c@example.net")
                .cc("d@example.net").bcc("e@example.net")
                .replyTo("help@example.com").subject("Grüße").text("Hi").html("<p>Hi")
                .template("welcome").variable("firstName", "Ada").variable("count", 3)
                .header("X-order_Id", "1042").tag("receipt", "new")
                .attach(Attachment.of("a.png", new byte[] {0, (byte) 0xff}).withContentType("image/png").withContentId("logo"))
                .build();
        assertEquals(Map.ofEntries(
                Map.entry("from", "Shop <hello@example.com>"),
                Map.entry("to", List.of("a@example.net", "b@example.net", "c@example.net")),
                Map.entry("cc", List.of("d@example.net")),
                Map.entry("bcc", List.of("e@example.net")),
                Map.entry("reply_to", "help@example.com"),
                Map.entry("subject", "Grüße"),
                Map.entry("text", "Hi"),
                Map.entry("html", "<p>Hi"),
                Map.entry("template", "welcome"),
                Map.entry("variables", Map.of("firstName", "Ada", "count", 3)),
                Map.entry("headers", Map.of("X-order_Id", "1042")),
                Map.entry("tags", List.of("receipt", "new")),
                Map.entry("attachments", List.of(Map.of(
                        "filename", "a.png", "content", "AP8=", "content_type", "image/png", "content_id", "logo")))),
                email.members());
    }

    @Test
    void hasSeveralAddressesForReplies() {
        assertEquals(Map.of("reply_to", List.of("a@example.com", "b@example.com")),
                Email.builder().replyTo("a@example.com").replyTo("b@example.com").build().members());
        String none = null;
        assertEquals(Map.of(), Email.builder().replyTo(none).build().members());
    }

    @Test
    void doesNotChangeWithItsBuilder() {
        Email.Builder builder = Email.builder().to("a@example.net").variable("name", "Ada");
        Email email = builder.build();
        builder.to("b@example.net").variable("name", "Grace").build();
        assertEquals(Map.of("to", List.of("a@example.net"), "variables", Map.of("name", "Ada")), email.members());
    }

    @Test
    void readsAttachmentsFromFiles() throws IOException {
        Path file = Files.write(folder.resolve("report 2026.pdf"), new byte[100]);
        assertEquals(Map.of("filename", "report 2026.pdf", "content", "A".repeat(134) + "=="),
                Attachment.ofFile(file).members());
        assertEquals("other.pdf", Attachment.ofFile(file).withFilename("other.pdf").members().get("filename"));
        assertThrows(NoSuchFileException.class, () -> Attachment.ofFile(folder.resolve("missing")));
        assertThrows(IllegalArgumentException.class, () -> Attachment.of(null, new byte[0]));
    }
}
