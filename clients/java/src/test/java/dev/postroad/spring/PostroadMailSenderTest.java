package dev.postroad.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.postroad.AuthenticationException;
import dev.postroad.Email;
import dev.postroad.InvalidRequestException;
import dev.postroad.Postroad;
import dev.postroad.PostroadException;
import dev.postroad.RateLimitException;
import dev.postroad.ScriptedServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.mail.MailAuthenticationException;
import org.springframework.mail.MailParseException;
import org.springframework.mail.MailSendException;
import org.springframework.mail.SimpleMailMessage;

/** The sender in a context of Spring, against a little server. */
class PostroadMailSenderTest {
    private static final ScriptedServer.Step ACCEPTED = ScriptedServer.answer(202, ScriptedServer.RECEIPT);

    @Test
    void servesAnApplication() throws IOException {
        try (ScriptedServer server = new ScriptedServer(ACCEPTED, ACCEPTED);
                AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
            context.getEnvironment().getPropertySources().addFirst(new MapPropertySource(
                    "test", Map.of("postroad.url", server.url(), "postroad.token", "pr_live_spring")));
            context.register(ShopApplication.class);
            context.refresh();
            ShopApplication.Shop shop = context.getBean(ShopApplication.Shop.class);

            shop.welcome();
            assertTrue(server.requests.get(0).contains("\r\nAuthorization: Bearer pr_live_spring\r\n"));
            assertEquals("{\"from\":\"Shop <hello@example.com>\",\"to\":[\"ada@example.net\"],\"subject\":\"Welcome\","
                    + "\"text\":\"Hello Ada\"}", body(server, 0));

            shop.receipt(message("ada@example.net"), new byte[] {1});
            assertTrue(server.requests.get(1).contains("\r\nIdempotency-Key: order-1042-receipt\r\n"));
            assertEquals("{\"from\":\"hello@example.com\",\"to\":[\"ada@example.net\"],\"cc\":[\"cc@example.net\"],"
                    + "\"bcc\":[\"bcc1@example.net\",\"bcc2@example.net\"],\"reply_to\":\"help@example.com\","
                    + "\"subject\":\"Hello\",\"text\":\"Hi\",\"html\":\"<p>Thank you for your order.</p>\","
                    + "\"tags\":[\"receipt\"],\"attachments\":[{\"filename\":\"receipt.pdf\",\"content\":\"AQ==\"}],"
                    + "\"metadata\":{\"order\":\"1042\"}}", body(server, 1));
        }
    }

    @Test
    void hasTheErrorsOfSpring() throws IOException {
        try (ScriptedServer server = new ScriptedServer(refusal(401), refusal(400), refusal(429))) {
            PostroadMailSender sender = sender(server);
            SimpleMailMessage message = message("ada@example.net");
            var unknown = assertThrows(MailAuthenticationException.class, () -> sender.send(message));
            assertInstanceOf(AuthenticationException.class, unknown.getCause());
            var invalid = assertThrows(MailParseException.class, () -> sender.send(message));
            assertInstanceOf(InvalidRequestException.class, invalid.getCause());
            assertTrue(invalid.getMessage().contains("the server says why"));
            Email email = PostroadMailSender.email(message).build();
            var refused = assertThrows(MailSendException.class, () -> sender.send(email, "order-1"));
            assertEquals("order-1", assertInstanceOf(RateLimitException.class, refused.getCause()).idempotencyKey());
            assertSame(refused.getCause(), refused.getFailedMessages().get(email));
            assertThrows(MailParseException.class, () -> sender.send(email, "für"), "no header can hold that key");
            assertEquals(3, server.requests.size());
        }
    }

    @Test
    void namesTheMessagesThatFailed() throws IOException {
        try (ScriptedServer server = new ScriptedServer(ACCEPTED, refusal(400), ACCEPTED)) {
            SimpleMailMessage[] messages = {message("a@example.net"), message("b@example.net"), message("c@example.net")};
            var failure = assertThrows(MailSendException.class, () -> sender(server).send(messages));
            assertEquals(List.of(messages[1]), List.copyOf(failure.getFailedMessages().keySet()));
            assertInstanceOf(MailParseException.class, failure.getMessageExceptions()[0]);
            assertEquals(3, server.requests.size());
        }
    }

    @Test
    void doesNotTryTheRestWhenNoneCanSucceed() throws IOException {
        for (ScriptedServer.Step step : List.of(refusal(401), ScriptedServer.reset())) {
            try (ScriptedServer server = new ScriptedServer(ACCEPTED, step)) {
                SimpleMailMessage[] messages = {message("a@example.net"), message("b@example.net"), message("c@example.net")};
                var failure = assertThrows(MailSendException.class, () -> sender(server).send(messages));
                assertEquals(List.of(messages[1], messages[2]), List.copyOf(failure.getFailedMessages().keySet()));
                Exception last = failure.getMessageExceptions()[1];
                assertTrue(last.getMessage().startsWith("not tried"), last.getMessage());
                assertInstanceOf(PostroadException.class, last.getCause());
                assertEquals(2, server.requests.size());
            }
        }
    }

    @Test
    void theReadmeQuotesTheApplication() throws IOException {
        String application = unindented("src/test/java/dev/postroad/spring/ShopApplication.java");
        String section = unindented("README.md").split("\n## Spring\n")[1].split("\n## ")[0];
        List<String> blocks = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(section)
                .results().map(block -> block.group(1)).toList();
        assertEquals(2, blocks.size());
        blocks.forEach(block -> assertTrue(application.contains(block), block));
    }

    private static String unindented(String file) throws IOException {
        return Files.readString(Path.of(file)).replaceAll("(?m)^ +", "");
    }

    private static PostroadMailSender sender(ScriptedServer server) {
        return new PostroadMailSender(
                Postroad.builder(server.url()).token("pr_live_test").maxElapsed(Duration.ZERO).build());
    }

    private static SimpleMailMessage message(String to) {
        SimpleMailMessage message = new SimpleMailMessage();
        message.setFrom("hello@example.com");
        message.setTo(to);
        message.setCc("cc@example.net");
        message.setBcc(new String[] {"bcc1@example.net", "bcc2@example.net"});
        message.setReplyTo("help@example.com");
        message.setSentDate(new Date(0));
        message.setSubject("Hello");
        message.setText("Hi");
        return message;
    }

    private static ScriptedServer.Step refusal(int status) {
        return ScriptedServer.answer(status, "{\"error\":\"the server says why\",\"code\":\"some_code\"}");
    }

    private static String body(ScriptedServer server, int request) {
        return server.requests.get(request).split("\r\n\r\n", 2)[1];
    }
}
