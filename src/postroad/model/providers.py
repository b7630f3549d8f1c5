"""Which mailbox provider stands behind a mail host, by the end of the host's name.

Thousands of domains share a provider's hosts and its patience, so they share a pool. The names are those of the
`pools` section of the settings.
"""

from collections.abc import Iterable
from typing import Final

OTHERS: Final = "others"
# Where all mail goes the same way.
SMARTHOST: Final = "smarthost"

SUFFIXES: Final = {
    "google.com": "google",
    "googlemail.com": "google",
    "psmtp.com": "google",
    "outlook.com": "microsoft",
    "outlook.cn": "microsoft",
    "hotmail.com": "microsoft",
    "mx.microsoft": "microsoft",
    "office365.us": "microsoft",
    "yahoodns.net": "yahoo",
    "yahoo.com": "yahoo",
    "icloud.com": "apple",
    "apple.com": "apple",
    "me.com": "apple",
}


def of_host(name: str) -> str:
    """The provider behind one mail host; the name is in lower case."""
    labels = name.split(".")
    for start in range(len(labels) - 1):
        provider = SUFFIXES.get(".".join(labels[start:]))
        if provider is not None:
            return provider
    return OTHERS


def of_hosts(names: Iterable[str]) -> str:
    """The provider behind all of them. Somebody else's filter before a provider's mailboxes is not the provider."""
    found = {of_host(name) for name in names}
    return found.pop() if len(found) == 1 else OTHERS
