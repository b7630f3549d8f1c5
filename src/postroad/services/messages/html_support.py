"""Which mail clients support the HTML and CSS that a message uses, by the data of caniemail.com.

`caniemail/manifest.toml` says where the data is from; tests/services/messages/caniemail_reducer.py renews it.
"""

import functools
from importlib import resources
from typing import Final

import msgspec

from postroad.protocol import html_usage

_SUPPORTED, _PARTLY, _NOT = "y", "a", "n"
PERCENT: Final = 100


class _Feature(msgspec.Struct, frozen=True):
    """A feature: `support` has a letter for each client."""

    title: str
    keys: tuple[str, ...]
    support: str


class _Data(msgspec.Struct, frozen=True):
    version: str
    updated: str
    clients: tuple[str, ...]
    features: tuple[_Feature, ...]


class LimitedFeature(msgspec.Struct, frozen=True):
    """A feature that a message uses and some clients lack. `lines` are the first; shares are in percent of clients."""

    title: str
    lines: list[int]
    not_supported: list[str]
    partly_supported: list[str]
    supported_percent: int


@functools.cache
def _data() -> _Data:
    """Read once, when first needed."""
    file = resources.files("postroad.services.messages").joinpath("caniemail", "features.json")
    return msgspec.json.decode(file.read_bytes(), type=_Data)


@functools.cache
def keys() -> frozenset[str]:
    """The keys of `html_usage` that belong to a feature."""
    return frozenset(key for feature in _data().features for key in feature.keys)


def updated() -> str:
    """The date of the data."""
    return _data().updated


def limited_features(usage: html_usage.Usage) -> list[LimitedFeature]:
    """What not every client supports, the least supported first."""
    found = [
        _limited(feature, usage) for feature in _data().features if not usage.lines.keys().isdisjoint(feature.keys)
    ]
    limited = [feature for feature in found if feature.not_supported or feature.partly_supported]
    return sorted(limited, key=lambda feature: (feature.supported_percent, -len(feature.not_supported), feature.title))


def _limited(feature: _Feature, usage: html_usage.Usage) -> LimitedFeature:
    tested = len(feature.support) - feature.support.count("u")
    lines = {line for key in feature.keys for line in usage.lines.get(key, ())}
    return LimitedFeature(
        title=feature.title,
        lines=sorted(lines)[: html_usage.MAX_LINES],
        not_supported=_clients(feature, _NOT),
        partly_supported=_clients(feature, _PARTLY),
        supported_percent=feature.support.count(_SUPPORTED) * PERCENT // max(1, tested),
    )


def _clients(feature: _Feature, letter: str) -> list[str]:
    return [client for client, given in zip(_data().clients, feature.support, strict=True) if given == letter]
