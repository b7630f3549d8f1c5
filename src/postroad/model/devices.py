"""A short name for what sent a request, such as "Firefox on Linux", from its User-Agent.

The text is written by the client: it helps people to recognise their own sessions, and proves nothing.
"""

import re
from typing import Final

UNKNOWN: Final = "Unknown device"
MAX_CHARACTERS: Final = 60
# The first that matches; browsers name those that they resemble, too.
_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
# The first product of RFC 9110, section 10.1.5, of programs: "curl/8.5.0".
_PRODUCT: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,40}(?:/[A-Za-z0-9._+-]{1,20})?")


def name_of(user_agent: str) -> str:
    """The browser and the system, or the program; never longer than a line."""
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), None)
    if browser is not None:
        return browser if system is None else f"{browser} on {system}"
    product = _PRODUCT.match(user_agent)
    return UNKNOWN if product is None else product[0][:MAX_CHARACTERS]
