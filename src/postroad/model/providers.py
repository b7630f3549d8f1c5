"""The mailbox provider of a mail host, by the suffix of the host's name.

Thousands of domains share a provider's hosts and its rate limits, so they share a provider queue.
The names are the keys of the `[providers]` settings.
"""

from collections.abc import Iterable
from typing import Final

OTHERS: Final = "others"
PROVIDERS: Final = ("google", "microsoft", "yahoo", "apple", OTHERS)
# The same for people. Hosts of `others` have names of their own.
NAMES: Final = {"google": "Google", "microsoft": "Microsoft", "yahoo": "Yahoo", "apple": "Apple"}
# Provider queues of upstreams; no name of a host begins like this.
UPSTREAM_PREFIX: Final = "upstream:"
# The provider queue of test mail, which is counted nowhere.
SIMULATOR: Final = "simulator"
# The upstream of `postroad dev`.
DEV_SIMULATOR: Final = "dev_simulator"
_DEV_UPSTREAM: Final = UPSTREAM_PREFIX + DEV_SIMULATOR
# The label of an outcome without a provider queue: decided without an attempt, or no route was found.
NO_PROVIDER: Final = "none"

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

# Domains of the providers' own mailboxes. The simulator of `postroad dev` has no DNS to ask for their mail hosts.
MAILBOX_DOMAINS: Final = {
    "gmail.com": "google",
    "googlemail.com": "google",
    "outlook.com": "microsoft",
    "hotmail.com": "microsoft",
    "live.com": "microsoft",
    "msn.com": "microsoft",
    "yahoo.com": "yahoo",
    "aol.com": "yahoo",
    "icloud.com": "apple",
    "me.com": "apple",
    "mac.com": "apple",
}


def title_of(provider_queue: str) -> str:
    """A provider queue as people read it: that of a host has the host's name."""
    if provider_queue.startswith(UPSTREAM_PREFIX):
        return f"Upstream {provider_queue.removeprefix(UPSTREAM_PREFIX)}"
    return "All others" if provider_queue == OTHERS else NAMES.get(provider_queue, provider_queue)


def of_host(name: str) -> str:
    """The provider behind one mail host; the name is in lower case."""
    labels = name.split(".")
    for start in range(len(labels) - 1):
        provider = SUFFIXES.get(".".join(labels[start:]))
        if provider is not None:
            return provider
    return OTHERS


def of_hosts(names: Iterable[str]) -> str:
    """The provider of all of them. A third-party filter in front of a provider's mailboxes is not the provider."""
    found = {of_host(name) for name in names}
    return found.pop() if len(found) == 1 else OTHERS


def upstream_queue(name: str) -> str:
    """The provider queue of an upstream."""
    return f"{UPSTREAM_PREFIX}{name}"


def attributed_queue(provider_queue: str, domain: str) -> str:
    """The provider queue that an attempt is recorded with: behind the simulator of `postroad dev`, the provider's."""
    if provider_queue != _DEV_UPSTREAM:
        return provider_queue
    return MAILBOX_DOMAINS.get(domain, OTHERS)


def label_of(provider_queue: str) -> str:
    """The provider that a provider queue is counted under; queues of unlisted hosts count as `others`."""
    if not provider_queue:
        return NO_PROVIDER
    is_named = provider_queue in PROVIDERS or provider_queue.startswith(UPSTREAM_PREFIX)
    return provider_queue if is_named else OTHERS
