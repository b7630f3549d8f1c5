package dev.postroad.spring;

import dev.postroad.Attachment;
import dev.postroad.Email;
import dev.postroad.Postroad;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.mail.MailSender;
import org.springframework.mail.SimpleMailMessage;

/** A small application of Spring: a bean that sends, and one that is given it. The README has parts of it. */
class ShopApplication {
    @Bean
    PostroadMailSender mailSender(@Value("${postroad.url}") String url, @Value("${postroad.token}") String token) {
        return new PostroadMailSender(Postroad.builder(url).token(token).build());
    }

    @Bean
    Shop shop() {
        return new Shop();
    }

    static class Shop {
        @Autowired
        private MailSender sender;

        @Autowired
        private PostroadMailSender mailSender;

        void welcome() {
            SimpleMailMessage message = new SimpleMailMessage();
            message.setFrom("Shop <hello@example.com>");
            message.setTo("ada@example.net");
            message.setSubject("Welcome");
            message.setText("Hello Ada");
            sender.send(message);
        }

        void receipt(SimpleMailMessage message, byte[] pdf) {
            Email email = PostroadMailSender.email(message)
                    .html("<p>Thank you for your order.</p>")
                    .attach(Attachment.of("receipt.pdf", pdf))
                    .tag("receipt")
                    .metadata("order", "1042")
                    .build();
            mailSender.send(email, "order-1042-receipt");
        }
    }
}
