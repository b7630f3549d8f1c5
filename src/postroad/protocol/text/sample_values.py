"""Sample values for a template: every section is shown, and a value is what its name promises.

`{{amount}}` becomes €42.00 and `{{reset_url}}` a URL. Template and given values come from strangers: both functions
take time with their sizes, and what they fill in is bounded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from postroad.protocol.text import mustache

# By the last words of a name. TODAY and YEAR stand for those of the day.
TODAY: Final = "today"
YEAR: Final = "year"
_BY_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("name", "first name", "user", "username", "recipient"), "Ada"),
    **dict.fromkeys(("full name", "customer", "customer name"), "Ada Lovelace"),
    "last name": "Lovelace",
    **dict.fromkeys(("inviter", "inviter name", "sender name", "author"), "Grace Hopper"),
    **dict.fromkeys(("company", "organization", "team", "workspace", "shop", "account", "sender"), "Corner Shop"),
    **dict.fromkeys(("company name", "organization name", "team name", "shop name", "account name"), "Corner Shop"),
    **dict.fromkeys(("product", "item", "title", "product name", "item name"), "Blue notebook"),
    **dict.fromkeys(("service", "project", "app", "plan"), "Starter"),
    "email": "ada@example.com",
    "address": "12 Example Street, London",
    "city": "London",
    "country": "United Kingdom",
    "phone": "+44 20 7946 0000",
    **dict.fromkeys(("amount", "total", "subtotal", "price", "cost", "balance", "due"), "€42.00"),
    **dict.fromkeys(("tax", "vat", "fee", "discount", "shipping"), "€7.00"),
    "currency": "EUR",
    **dict.fromkeys(("code", "otp", "pin"), "481 516"),
    **dict.fromkeys(("number", "id", "order", "invoice", "reference"), "10042"),
    **dict.fromkeys(("count", "quantity"), "2"),
    "percent": "12%",
    "minutes": "15",
    "hours": "24",
    "days": "7",
    "time": "09:30",
    **dict.fromkeys(("at", "on", "date", "day", "today", "until", "due date"), TODAY),
    "year": YEAR,
    "card": "Visa ending in 4242",
    "device": "Firefox on Linux",
    "location": "London",
    "ip": "192.0.2.1",
}
_URL_WORDS: Final = frozenset({"url", "link", "href"})
# Between words: signs, and the capitals of `orderNumber`.
_BOUNDARY: Final = re.compile(r"[_.\-]+|(?<=[a-z0-9])(?=[A-Z])")
# Given values times names: what filling in takes at most, a few hundredths of a second.
MAX_FILLED: Final = 100_000


def sample(templates: Iterable[mustache.AnyTemplate], *, today: str, year: str) -> dict[str, Any]:
    """Values for these templates with which every section is shown; lists have one item."""
    sampler = _Sampler({TODAY: today, YEAR: year})
    members: dict[str, Any] = {}
    for template in templates:
        sampler.collect(template, members)
    return members


def fill(given: Mapping[str, Any], samples: Mapping[str, Any]) -> dict[str, Any]:
    """The given values of a template's names, and samples of the names that have none, also in the items of lists."""
    names = set(_names(samples))
    names |= {name.partition(".")[0] for name in names}
    used = {name: value for name, value in given.items() if name in names}
    if sum(1 for _ in _walk(used)) * len(names) > MAX_FILLED:
        return {**samples, **used}
    return _filled(used, samples, outside=frozenset())


class _Sampler:
    def __init__(self, by_word: Mapping[str, str]) -> None:
        self._by_word = by_word

    def collect(self, template: mustache.AnyTemplate, members: dict[str, Any]) -> None:
        if isinstance(template, mustache.Template):
            self._nodes(template.nodes, members)
        else:
            members.update({name: self._value(name) for name in template.names if name not in members})

    def _nodes(self, nodes: tuple[mustache.Node, ...], members: dict[str, Any]) -> None:
        """Add what nodes need to the values around them, in place: a stranger's template can repeat a section."""
        for node in nodes:
            if isinstance(node, mustache.Variable):
                members.setdefault(node.name, self._value(node.name))
            elif isinstance(node, mustache.Section) and node.is_inverted:
                self._nodes(node.nodes, members)
                members.setdefault(node.name, False)
            elif isinstance(node, mustache.Section):
                self._section(node, members)

    def _section(self, node: mustache.Section, members: dict[str, Any]) -> None:
        name, before = node.name, members.get(node.name)
        item: dict[str, Any] = before[0] if isinstance(before, list) and isinstance(before[0], dict) else {}
        self._nodes(node.nodes, item)
        if not item:
            members[name] = before or True
        elif "." in item:
            members[name] = [self._value(name)]
        elif not isinstance(before, list) and isinstance(before or item.get(name), str | bool):
            # `{{#discount}}You save {{discount}}{{/discount}}`: a text that may be absent, not a list.
            members[name] = before or item[name]
            for inner, value in item.items():
                members.setdefault(inner, value)
        else:
            members[name] = [item]

    def _value(self, name: str) -> str:
        words = [word.lower() for word in _BOUNDARY.split(name) if word]
        if words and words[-1] in _URL_WORDS:
            return "https://example.com/" + "-".join(words[:-1])
        for count in (2, 1):
            if value := _BY_WORDS.get(" ".join(words[-count:])):
                return self._by_word.get(value, value)
        return " ".join(words) or name


def _filled(given: Mapping[str, Any], samples: Mapping[str, Any], *, outside: frozenset[str]) -> dict[str, Any]:
    """`outside` are the names that have a value around this one, where they are found as well."""
    has = outside | given.keys()
    values = {
        name: _filled_value(given[name], value, has) if name in given else value
        for name, value in samples.items()
        if name in given or not (name in has or name.partition(".")[0] in has)
    }
    return {**values, **{name: value for name, value in given.items() if name not in values}}


def _filled_value(given: object, value: object, outside: frozenset[str]) -> object:
    """A given value, unless it is none that the template can use: a text for a list with members, or the opposite."""
    inner = value[0] if isinstance(value, list) else value
    if isinstance(given, list) and isinstance(value, list):
        return [_filled_value(item, inner, outside) for item in given]
    if isinstance(given, dict) and isinstance(inner, dict):
        return _filled(given, inner, outside=outside)
    if isinstance(value, list | dict):
        return value if given and given is not False else given
    return value if isinstance(given, list | dict) and isinstance(value, str) else given


def _names(value: object) -> Iterator[str]:
    for found in _walk(value):
        if isinstance(found, Mapping):
            yield from found


def _walk(value: object) -> Iterator[object]:
    """A value and all that is in it."""
    yield value
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _walk(inner)
