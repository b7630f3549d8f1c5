"""Which listeners use the certificate, and what the service's URL is then."""

from typing import Any

import pytest

from postroad import config

ACME = {"names": ["mail.example.com", "mx.example.com"]}
FILES = {"certificate": "chain.pem", "key": "key.pem"}
BEHIND_PROXY = {"tls": False, "trusted_proxies": ["127.0.0.1"]}
PLAIN = {"redirect_listen": "[::]:80"}


def load(**sections: dict[str, Any]) -> config.Settings:
    return config.load(environment={}, overrides=sections)


@pytest.mark.parametrize(
    "sections, listeners",
    [
        ({}, ()),
        ({"submission": {"listen": "[::]:587", "auth_without_tls": True}, "inbound": {"listen": "[::]:25"}}, ()),
        ({"tls": FILES}, ("http",)),
        ({"tls": FILES, "http": {"tls": False}}, ()),
        ({"tls": FILES, "submission": {"tls_listen": "[::]:465"}}, ("http", "submission")),
        ({"acme": ACME}, ("http",)),
        ({"acme": ACME, "http": BEHIND_PROXY}, ()),
        ({"acme": ACME, "http": PLAIN, "submission": {"listen": "[::]:587"}}, ("http", "submission")),
        ({"acme": ACME, "http": BEHIND_PROXY, "inbound": {"listen": "[::]:25"}}, ("inbound",)),
    ],
)
def test_every_listener_uses_the_certificate_unless_a_proxy_terminates_tls(
    sections: dict[str, dict[str, Any]], listeners: tuple[str, ...]
) -> None:
    assert config.tls_sections(load(**sections)) == listeners


@pytest.mark.parametrize(
    "http, challenge", [({}, "tls-alpn-01"), (PLAIN, "http-01"), (BEHIND_PROXY, "http-01"), ({"tls": False}, "http-01")]
)
def test_names_are_validated_where_the_service_can_answer(http: dict[str, Any], challenge: str) -> None:
    assert config.acme_challenge(load(acme=ACME, http=http)) == challenge


@pytest.mark.parametrize(
    "http, url",
    [
        ({**PLAIN, "listen": "[::]:443"}, "https://mail.example.com"),
        ({**PLAIN, "listen": "[::]:8443"}, "https://mail.example.com:8443"),
        ({**PLAIN, "base_url": "https://post.example.com"}, "https://post.example.com"),
        (BEHIND_PROXY, ""),
    ],
)
def test_the_url_has_the_first_name_of_the_certificate(http: dict[str, Any], url: str) -> None:
    assert config.public_url(load(acme=ACME, http=http)) == url


@pytest.mark.parametrize(
    "sections, sentence",
    [
        ({"tls": {"certificate": "a.pem"}}, "tls: only one of certificate and key is set"),
        ({"tls": {"key": "a.pem"}}, "tls: only one of certificate and key is set"),
        ({"tls": FILES, "acme": ACME}, "tls.certificate and acme.names are both set; remove one of them"),
        ({"http": {"redirect_listen": "80"}}, "http.redirect_listen: '80' is not an address"),
        ({"http": PLAIN}, "http.redirect_listen: redirects to HTTPS, which http.listen does not"),
        (
            {"http": {**PLAIN, "tls": False}, "tls": FILES},
            "http.redirect_listen: redirects to HTTPS, which http.listen",
        ),
        ({"http": PLAIN, "tls": FILES}, "http.redirect_listen: set http.base_url, to which it redirects"),
        (
            {"http": {"base_url": "http://mail.example.com"}, "tls": FILES},
            "http.base_url: begins with http://, but http.listen serves HTTPS",
        ),
        (
            {"http": {"trusted_proxies": ["127.0.0.1"]}, "acme": ACME},
            "http.tls: must be false when acme.names and http.trusted_proxies are both set",
        ),
        ({"acme": {"names": ["mail"]}}, "acme.names: 'mail' is not a public host name"),
        ({"acme": {"names": ["192.0.2.1"]}}, "acme.names: '192.0.2.1' is not a public host name"),
        ({"acme": {"names": ["*.example.com"]}}, "acme.names: '*.example.com' is not a public host name"),
        ({"acme": {"names": ["a.example", "A.example"]}}, "acme.names: a name is listed twice"),
        ({"acme": {"email": "nobody"}}, "acme.email: 'nobody' is not an email address"),
        ({"acme": {"directory": "http://ca.example"}}, "acme.directory: 'http://ca.example' is not an https:// URL"),
    ],
)
def test_what_cannot_work_is_refused_with_the_name_of_the_setting(
    sections: dict[str, dict[str, object]], sentence: str
) -> None:
    with pytest.raises(config.ConfigError) as refused:
        load(**sections)
    assert str(refused.value).startswith(sentence)
