"""What a client can be made of, and what is refused before any request."""

from typing import Any

import pytest

from postroad_client import AsyncClient, Client, configuration


@pytest.mark.parametrize("base_url, url", [
    ("https://mail.example.com", "https://mail.example.com"), ("HTTPS://Mail.Example.com:443/", "https://mail.example.com"),
    ("http://127.0.0.1:8025//", "http://127.0.0.1:8025"), ("http://[::1]:8025/a/b/", "http://[::1]:8025/a/b"),
])  # fmt: skip
def test_a_base_url_is_a_scheme_a_host_and_perhaps_a_path(base_url: str, url: str) -> None:
    assert configuration.Place.parse(base_url).url == url


@pytest.mark.parametrize("base_url", [
    "", "mail.example.com", "//mail.example.com", "ftp://mail.example.com", "https://", "https:///emails", "https://:1",
    "https://jo@mail.example.com", "https://jo:x@mail.example.com", "https://@mail.example.com",
    "https://mail.example.com?", "https://mail.example.com/?a=b", "https://mail.example.com#", "https://[::1",
    "https://mail.example.com:x", "https://mail.example.com:99999", "https://mail.example.com/a b",
    "https://mail.example.com/\r\nX: y", "https://mail\0.example.com", "https://ma\xefl.example.com",
    f"https://{'x' * 64}.example.com", "https://mail..example.com",
])  # fmt: skip
def test_other_base_urls_are_refused(base_url: str) -> None:
    with pytest.raises(ValueError):
        Client(base_url, token="t")
    with pytest.raises(ValueError):
        AsyncClient(base_url, token="t")


@pytest.mark.parametrize("options", [
    {}, {"token": "secret", "username": "u", "password": "secret"}, {"username": "secret"}, {"password": "secret"},
    {"token": "secret", "password": "secret"}, {"token": "secret\r\nX: y"}, {"token": "secret\0"},
    {"token": "secr\xe9t"}, {"username": "sec:ret", "password": "secret"},
    {"token": "secret", "timeout": 0}, {"token": "secret", "timeout": float("inf")},
    {"token": "secret", "timeout": 1e10}, {"token": "secret", "max_elapsed": 1e10},
    {"token": "secret", "max_elapsed": -1}, {"token": "secret", "max_elapsed": float("nan")},
    {"token": "secret", "timeout": -1}, {"token": "secret", "max_elapsed": float("inf")},
])  # fmt: skip
def test_other_options_are_refused_without_showing_a_secret(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        Client("https://mail.example.com", **options)
    assert "secr" not in str(caught.value)


@pytest.mark.parametrize("timeout", [-1, 1e10, float("nan")])
def test_a_wait_takes_a_time_that_can_be_waited(timeout: float) -> None:
    with Client("https://mail.example.com", token="t") as client, pytest.raises(ValueError, match="timeout"):
        client.wait("em_1", timeout)


def test_a_username_in_base64_adds_no_header() -> None:
    settings = configuration.Settings.check(
        "http://x", username="a\r\nX", password="p", token=None, timeout=1, max_elapsed=1
    )
    assert "\r" not in settings.authorization
