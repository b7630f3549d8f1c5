"""The relying party follows the settings, and nothing that a request says."""

from typing import Any

import pytest

from postroad import config
from postroad.services.people import passkeys


@pytest.mark.parametrize(
    "http, party",
    [
        ({"base_url": "https://mail.example.net"}, ("mail.example.net", "https://mail.example.net")),
        ({"base_url": "https://mail.example.net:443"}, ("mail.example.net", "https://mail.example.net")),
        ({"base_url": "https://mail.example.net:8443"}, ("mail.example.net", "https://mail.example.net:8443")),
        ({"base_url": "https://Mail.Example.NET"}, ("mail.example.net", "https://mail.example.net")),
        ({"base_url": "http://localhost:9025"}, ("localhost", "http://localhost:9025")),
        ({"listen": "127.0.0.1:8025"}, ("localhost", "http://localhost:8025")),
        ({"listen": "[::1]:80"}, ("localhost", "http://localhost")),
        # Browsers have no passkeys for addresses, nor without TLS.
        ({"base_url": "https://192.0.2.7"}, None),
        ({"base_url": "https://[2001:db8::7]"}, None),
        ({"base_url": "http://mail.example.net"}, None),
    ],
    ids=str,
)
def test_it_is_the_host_of_the_configured_url(http: dict[str, Any], party: tuple[str, str] | None) -> None:
    settings = config.load(environment={}, overrides={"http": http})
    found = passkeys.relying_party(settings)
    assert (None if found is None else (found.id, found.origin)) == party
