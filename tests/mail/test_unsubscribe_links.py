"""Unsubscribe links: a token is read by its installation alone, and a header that cannot work is refused."""

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import config, errors
from postroad.keys import installation_keys
from postroad.mail import unsubscribe_links
from postroad.model.delivery import providers
from tests import contexts

KEYS = installation_keys.Keys.derive(b"a key of the tests")
OTHERS = installation_keys.Keys.derive(b"another key")
LINK = unsubscribe_links.Link("acc_1", "Product news", "ada@example.net", "em_1", "example.com")


def settings(**sections: Any) -> config.Settings:
    return contexts.load("sqlite:///unused.db", **sections)


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_token_is_read_as_it_was_written(list_name: str, email: str) -> None:
    link = unsubscribe_links.Link("acc_1", list_name, email, "em_1", "example.com")
    token = unsubscribe_links.write(KEYS.unsubscribe, link)
    assert set(token) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    assert unsubscribe_links.read(KEYS, token) == link


def test_a_token_of_a_replaced_key_is_still_read() -> None:
    token = unsubscribe_links.write(OTHERS.unsubscribe, LINK)
    assert unsubscribe_links.read(KEYS, token) is None
    rotated = installation_keys.Keys(
        KEYS.token, KEYS.session, KEYS.return_path, KEYS.unsubscribe, KEYS.encryption, KEYS.fingerprint, (OTHERS,)
    )
    assert unsubscribe_links.read(rotated, token) == LINK


def test_a_token_that_was_changed_or_made_up_is_none() -> None:
    token = unsubscribe_links.write(KEYS.unsubscribe, LINK)
    signed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    forged = [bytes([*signed[:place], signed[place] ^ 1, *signed[place + 1 :]]) for place in range(len(signed))]
    for content in (*forged, signed[:-1], signed + b"\0", b"", b"x" * 16):
        assert unsubscribe_links.read(KEYS, base64.urlsafe_b64encode(content).decode().rstrip("=")) is None
    for text in ("", "x", "ü", "\0", "a" * 4001, f"{token}.", token + token):
        assert unsubscribe_links.read(KEYS, text) is None
    # It is no token of another kind, either.
    assert unsubscribe_links.read(KEYS, unsubscribe_links.write(KEYS.return_path, LINK)) is None


def test_the_header_fields_are_those_of_one_click() -> None:
    (name, value), post = unsubscribe_links.headers(
        settings(http={"base_url": "https://mail.example.com"}), KEYS.unsubscribe, LINK
    )
    assert (name, post) == ("List-Unsubscribe", ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))
    assert value.startswith("<https://mail.example.com/unsubscribe/")
    assert unsubscribe_links.read(KEYS, value[1:-1].rpartition("/")[2]) == LINK


@pytest.mark.parametrize("base_url", ["", "http://mail.example.com"])
def test_without_a_public_https_url_there_is_no_link(base_url: str) -> None:
    with pytest.raises(
        errors.InvalidRequest, match=r"no public https:// URL for the link; the operator sets http\.base_url"
    ):
        unsubscribe_links.headers(settings(http={"base_url": base_url}), KEYS.unsubscribe, LINK)


@pytest.mark.parametrize(
    "base_url, expected",
    [
        ("https://mail.example.com", "https://links.example.com/unsubscribe/"),
        ("https://mail.example.com:8443/mail", "https://links.example.com:8443/mail/unsubscribe/"),
    ],
)
def test_a_host_of_the_sender_replaces_that_of_the_installation(base_url: str, expected: str) -> None:
    chosen = settings(http={"base_url": base_url})
    (_, value), _ = unsubscribe_links.headers(chosen, KEYS.unsubscribe, LINK, "links.example.com")
    assert value.startswith(f"<{expected}")


def test_on_a_host_for_development_the_link_leads_to_its_listener() -> None:
    upstream = config.Upstream(name=providers.DEV_SIMULATOR, host="127.0.0.1", port=1, tls="off")
    chosen = msgspec.structs.replace(settings(http={"listen": "127.0.0.1:8025"}), upstreams=(upstream,))
    (_, value), _ = unsubscribe_links.headers(chosen, KEYS.unsubscribe, LINK, "links.example.com")
    assert value.startswith("<http://127.0.0.1:8025/unsubscribe/")


def test_a_link_that_is_too_long_for_a_line_is_refused() -> None:
    long = unsubscribe_links.Link("acc_1", "ü" * 128, f"{'a' * 64}@{'b' * 180}.example", "em_1", f"{'c' * 200}.example")
    with pytest.raises(errors.InvalidRequest, match=r"^unsubscribe\.list: the link would be too long"):
        unsubscribe_links.headers(settings(http={"base_url": "https://mail.example.com"}), KEYS.unsubscribe, long)
