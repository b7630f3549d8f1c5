"""Short names of devices."""

import pytest

from postroad.model.people import login_rules

MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/"


@pytest.mark.parametrize(
    "user_agent, name",
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/130.0.0.0 Safari/537.36",
            "Chrome on Windows",
        ),
        (f"{MAC}605.1.15 (KHTML, like Gecko) Version/17.6 Safari/605.1.15", "Safari on macOS"),
        (f"{MAC}537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0", "Edge on macOS"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        ("curl/8.5.0", "curl/8.5.0"),
        ("python-httpx/0.28.1", "python-httpx/0.28.1"),
        ("<script>", "Unknown device"),
        ("", "Unknown device"),
        ("x" * 1_000, "x" * 40),
    ],
)
def test_a_device_has_a_short_name(user_agent: str, name: str) -> None:
    assert login_rules.device_name(user_agent) == name
