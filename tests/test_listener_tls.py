"""Which listener uses whose certificate, and what the service's URL is then."""

from typing import Any

import pytest

from postroad import config

ACME = {"names": ["mail.example.com", "mx.example.com"]}
FILES = {"tls_certificate": "chain.pem", "tls_key": "key.pem"}
PLAIN = {"redirect_listen": "[::]:80"}


def load(**sections: dict[str, Any]) -> config.Settings:
    return config.load(environment={}, overrides=sections)


@pytest.mark.parametrize(
    "sections, listeners",
    [
        ({}, []),
        ({"acme": ACME, "http": PLAIN}, ["http"]),
        ({"acme": ACME, "http": {**PLAIN, **FILES, "base_url": "https://mail.example.com"}}, []),
        ({"acme": ACME, "http": {"trusted_proxies": ["127.0.0.1"]}}, []),
        ({"acme": ACME, "http": PLAIN, "submission": {"listen": "[::]:587"}}, ["http", "submission"]),
        ({"acme": ACME, "http": PLAIN, "submission": {"tls_listen": "[::]:465", **FILES}}, ["http"]),
        ({"acme": ACME, "http": {"trusted_proxies": ["::1"]}, "inbound": {"listen": "[::]:25"}}, ["inbound"]),
    ],
)
def test_a_listener_without_files_and_without_a_proxy_uses_acme(
    sections: dict[str, dict[str, Any]], listeners: list[str]
) -> None:
    settings = load(**sections)
    assert [one for one in config.LISTENERS if config.uses_acme(settings, one)] == listeners


def test_tls_alpn_needs_https_of_our_own() -> None:
    acme = {**ACME, "challenge": "tls-alpn-01"}
    load(acme=acme)
    with pytest.raises(config.ConfigError, match=r"acme\.challenge: tls-alpn-01 is answered by HTTPS on http\.listen"):
        load(acme=acme, http={"trusted_proxies": ["127.0.0.1"]})


@pytest.mark.parametrize(
    "http, url",
    [
        ({**PLAIN, "listen": "[::]:443"}, "https://mail.example.com"),
        ({**PLAIN, "listen": "[::]:8443"}, "https://mail.example.com:8443"),
        ({**PLAIN, "base_url": "https://post.example.com"}, "https://post.example.com"),
        ({"trusted_proxies": ["127.0.0.1"]}, ""),
    ],
)
def test_the_url_has_the_first_name_of_the_certificate(http: dict[str, Any], url: str) -> None:
    assert config.public_url(load(acme=ACME, http=http)) == url


@pytest.mark.parametrize(
    "section, values, sentence",
    [
        ("http", {"tls_certificate": "a.pem"}, "http: only one of tls_certificate and tls_key is set"),
        ("inbound", {"tls_key": "a.pem"}, "inbound: only one of tls_certificate and tls_key is set"),
        ("http", {"redirect_listen": "80"}, "http.redirect_listen: '80' is not an address"),
        (
            "http",
            {"redirect_listen": "[::]:80"},
            "http.redirect_listen: redirects to HTTPS, which http.listen does not",
        ),
        (
            "http",
            {"redirect_listen": "[::]:80", "tls_certificate": "a.pem", "tls_key": "b.pem"},
            "http.redirect_listen: set http.base_url, to which it redirects",
        ),
        (
            "http",
            {"base_url": "http://mail.example.com", "tls_certificate": "a.pem", "tls_key": "b.pem"},
            "http.base_url: begins with http://, but http.listen serves HTTPS",
        ),
        ("acme", {"names": ["mail"]}, "acme.names: 'mail' is not a public host name"),
        ("acme", {"names": ["192.0.2.1"]}, "acme.names: '192.0.2.1' is not a public host name"),
        ("acme", {"names": ["*.example.com"]}, "acme.names: '*.example.com' is not a public host name"),
        ("acme", {"names": ["a.example", "A.example"]}, "acme.names: a name is listed twice"),
        ("acme", {"email": "nobody"}, "acme.email: 'nobody' is not an email address"),
        ("acme", {"directory": "http://ca.example"}, "acme.directory: 'http://ca.example' is not an https:// URL"),
        ("acme", {"names": ["mail.example.com"]}, "acme.challenge: http-01 is answered on port 80; set http.redirect"),
    ],
)
def test_what_cannot_work_is_refused_with_the_name_of_the_setting(
    section: str, values: dict[str, object], sentence: str
) -> None:
    with pytest.raises(config.ConfigError) as refused:
        load(**{section: values})
    assert str(refused.value).startswith(sentence)
