"""Reads from the API of another service, which may fail, limit the rate, or send anything."""

import asyncio
from typing import Any

import pytest

from postroad import errors
from postroad.network.http import json_api
from tests import https_server, vendor_server

KEY = "re_secret"


def _get(answers: dict[str, Any], target: str = "/a?b=1") -> tuple[bytes, list[float], list[str]]:
    """The body, the waiting times, and the requests."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def getting(vendor: vendor_server.Vendor) -> bytes:
        api = json_api.JsonApi(f"{vendor.url}/base/", headers={"X-Key": KEY}, secrets=[KEY], sleep=sleep)
        try:
            return await api.get(target)
        finally:
            await api.close()

    with vendor_server.running(answers) as vendor:
        try:
            return asyncio.run(getting(vendor)), waits, vendor.requests
        except json_api.ApiError as problem:
            problem.add_note(repr(waits))
            raise


def test_a_body_is_read_below_the_base_url() -> None:
    body, waits, requests = _get({"/base/a?b=1": {"x": 1}})
    assert (body, waits, requests) == (b'{"x": 1}', [], ["/base/a?b=1"])


def test_the_time_to_wait_is_that_of_the_service_or_grows() -> None:
    limited = (429, {"message": "slow down"}, {"Retry-After": "7"})
    down = (503, b"", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})
    _, waits, requests = _get({"/base/a": [limited, down, (500, b"", {}), {}]})
    assert waits == [7, 2.0, 4.0]
    assert len(requests) == 4


def test_a_service_that_stays_down_is_left() -> None:
    with pytest.raises(json_api.Unavailable, match="responded to /a with 502; tried 6 times") as left:
        _get({"/base/a": (502, b"<html>", {})})
    assert left.value.__notes__ == ["[1.0, 2.0, 4.0, 8.0, 16.0]"]


def test_nobody_waits_for_hours() -> None:
    with pytest.raises(json_api.Unavailable, match="asked to wait for 3600 seconds"):
        _get({"/base/a": (429, b"{}", {"Retry-After": "3600"})})


def test_a_refusal_is_final_and_hides_the_key() -> None:
    with pytest.raises(json_api.Refused, match=r"responded to /a with 403: key \*\*\* may not\?") as refused:
        _get({"/base/a": (403, {"Message": f"key {KEY} may not\n"}, {})})
    assert refused.value.status == 403


def test_a_refusal_that_is_nested_without_end_is_final_too() -> None:
    deep = b'{"errors": ' + b"[" * 100_000
    with pytest.raises(json_api.ApiError, match="responded to /a with 403"):
        _get({"/base/a": (403, deep, {})})


def test_a_redirect_is_not_followed() -> None:
    with pytest.raises(json_api.Refused, match="with 302"):
        _get({"/base/a": (302, b"", {"Location": "/b"}), "/b": {}})


def test_a_large_body_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_api, "MAX_BODY_BYTES", 10)
    assert _get({"/base/a": b"0123456789"})[0] == b"0123456789"
    with pytest.raises(json_api.TooLarge, match="larger than 10 bytes"):
        _get({"/base/a": b"0123456789a"})


async def test_a_certificate_is_verified() -> None:
    async def sleep(seconds: float) -> None:
        del seconds

    async with https_server.running("127.0.0.1") as server:
        api = json_api.JsonApi(f"https://127.0.0.1:{server.port}", headers={"X-Key": KEY}, secrets=[KEY], sleep=sleep)
        with pytest.raises(json_api.Unavailable, match="its certificate is not valid"):
            await api.get("/a")
        await api.close()
        assert server.requests == []


@pytest.mark.parametrize("url", ["http://api.example.com", "http://192.0.2.1", "ftp://localhost", "api.example.com"])
def test_a_key_is_sent_to_this_host_or_encrypted(url: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="url: "):
        json_api.JsonApi(url, headers={}, secrets=[])
