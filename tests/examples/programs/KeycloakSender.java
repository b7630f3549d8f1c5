import jakarta.mail.Message;
import jakarta.mail.Session;
import jakarta.mail.Transport;
import jakarta.mail.internet.InternetAddress;
import jakarta.mail.internet.MimeMessage;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** Sends with the properties that Keycloak makes of its settings: java KeycloakSender.java RECIPIENT NAME=VALUE … */
final class KeycloakSender {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int number = 1; number < arguments.length; number++) {
            String[] pair = arguments[number].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Properties properties = new Properties();
        properties.setProperty("mail.smtp.host", settings.get("host"));
        properties.setProperty("mail.smtp.port", settings.get("port"));
        properties.setProperty("mail.smtp.auth", settings.get("auth"));
        properties.setProperty("mail.smtp.ssl.enable", settings.get("ssl"));
        properties.setProperty("mail.smtp.starttls.enable", settings.get("starttls"));
        properties.setProperty("mail.smtp.timeout", "60000");
        properties.setProperty("mail.from", settings.get("from"));

        Session session = Session.getInstance(properties);
        MimeMessage message = new MimeMessage(session);
        message.setFrom(new InternetAddress(settings.get("from"), settings.get("fromDisplayName")));
        message.setReplyTo(new InternetAddress[] {
            new InternetAddress(settings.get("replyTo"), settings.get("replyToDisplayName"))
        });
        message.setRecipients(Message.RecipientType.TO, arguments[0]);
        message.setSubject("Verify your email");
        message.setText("Hello", "UTF-8");
        message.saveChanges();
        try (Transport transport = session.getTransport("smtp")) {
            transport.connect(settings.get("user"), settings.get("password"));
            transport.sendMessage(message, message.getAllRecipients());
        }
    }
}
