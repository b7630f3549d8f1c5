package dev.postroad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.net.http.HttpClient;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class ArgumentsTest {
    private static final String URL = "http://127.0.0.1:1";

    @ParameterizedTest
    @CsvSource({
        "http://a, http://a", "HTTPS://a.example/, HTTPS://a.example", "http://a:81/mail/v2//, http://a:81/mail/v2",
        "http://[::1]:81, http://[::1]:81"})
    void takesBaseUrls(String given, String url) {
        assertEquals(url, Arguments.baseUrl(given).toString());
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {
        "", "/", "mail.example.com", "127.0.0.1:8025", "ftp://a", "http:", "http://", "http:///mail", "http://a b", "http://a\n",
        "http://user:hidden@a", "http://hidden@a", "http://@a", "http://a?hidden", "http://a/?", "http://a#hidden", "http://a:0",
        "http://a:65536", "http://a:99999999999", "http://user:hidden@a b"})
    void refusesOtherBaseUrls(String given) {
        String message = refused(() -> Postroad.builder(given).token("t").build());
        assertFalse(message.contains("hidden"), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "hidden\r\nX: y", "hidden\n", "hidden\0", "hiddenü", "hidden\u007f", "hidden\u0001"})
    void refusesTokensThatNoHeaderCanHold(String token) {
        String message = refused(() -> Postroad.builder(URL).token(token).build());
        assertFalse(message.contains("hidden"), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a\r\nX: y", "a\n", "\0", "für"})
    void refusesKeysThatNoHeaderCanHold(String key) {
        Postroad postroad = Postroad.builder(URL).token("t").build();
        refused(() -> postroad.send(Email.builder().build(), key));
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"", ".", "..", "../v1", "a/b", "a%2f", "a?b", "a#b", "a b", "a\n", "em_١", "é"})
    void refusesIdsThatLeadElsewhere(String id) {
        Postroad postroad = Postroad.builder(URL).token("t").build();
        refused(() -> postroad.get(id));
    }

    @Test
    void wantsOneCredential() {
        refused(() -> Postroad.builder(URL).build());
        refused(() -> Postroad.builder(URL).token(null).build());
        refused(() -> Postroad.builder(URL).credential("u", "p").token("t").build());
        refused(() -> Postroad.builder(URL).credential("u", null).build());
        refused(() -> Postroad.builder(URL).credential(null, "p").build());
        refused(() -> Postroad.builder(URL).credential("u:v", "p").build());
    }

    @Test
    void refusesBoundsThatAreNone() {
        Postroad postroad = Postroad.builder(URL).token("t").maxElapsed(Duration.ZERO).build();
        for (Duration duration : new Duration[] {null, Duration.ofSeconds(-1)}) {
            refused(() -> Postroad.builder(URL).timeout(duration));
            refused(() -> Postroad.builder(URL).maxElapsed(duration));
            refused(() -> postroad.waitFor("em_1", duration));
        }
        refused(() -> Postroad.builder(URL).timeout(Duration.ZERO));
    }

    @Test
    void refusesHttpClientsThatFollowRedirects() {
        HttpClient.Builder builder = HttpClient.newBuilder();
        refused(() -> Postroad.builder(URL).httpClient(builder.followRedirects(HttpClient.Redirect.NORMAL).build()));
        refused(() -> Postroad.builder(URL).httpClient(builder.followRedirects(HttpClient.Redirect.ALWAYS).build()));
    }

    private static String refused(Runnable call) {
        return assertThrows(IllegalArgumentException.class, call::run).getMessage();
    }
}
