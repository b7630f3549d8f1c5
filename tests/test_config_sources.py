"""Source addresses in the settings: where they come from, and what is refused."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postroad import config

PAGE = (Path(__file__).parent.parent / "docs" / "sources.md").read_text()
OUT = {"name": "out_1", "address": "192.0.2.1"}


def load(*sources: dict[str, Any], routes: tuple[dict[str, Any], ...] = (), **environment: str) -> config.Settings:
    """Settings with these entries."""
    overrides = {"sources": sources, "routes": routes} if sources or routes else {}
    return config.load(environment=environment, overrides=overrides)


def test_an_entry_has_the_pool_default_and_the_name_of_the_host() -> None:
    (source,) = load(OUT).sources
    assert (source.pool, source.hello_name, source.is_ipv6) == ("default", "", False)


def test_fields_come_from_the_environment() -> None:
    (source,) = load(
        POSTROAD_SOURCES__OUT_1__ADDRESS="2001:db8::1", POSTROAD_SOURCES__OUT_1__HELLO_NAME="a.example"
    ).sources
    assert source == config.Source(name="out_1", address="2001:db8::1", hello_name="a.example")
    assert source.is_ipv6


@pytest.mark.parametrize(
    "fields, refusal",
    [
        ({"name": "Out 1"}, "sources: 'Out 1' is not a name; use lower-case letters, digits and single underscores"),
        ({"pool": "Bulk"}, "sources: 'Bulk' is not a pool; use lower-case letters"),
        ({"address": "eth0"}, "sources.out_1.address: 'eth0' is not an IP address"),
        ({"address": "fe80::1%eth0"}, "sources.out_1.address: 'fe80::1%eth0' is not an IP address"),
        ({"hello_name": "a b"}, "sources.out_1.hello_name: 'a b' is not a host name"),
        ({"hostname": "a.example"}, "sources.out_1.hostname: unknown setting"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(fields: dict[str, Any], refusal: str) -> None:
    with pytest.raises(config.ConfigError) as refused:
        load({**OUT, **fields})
    assert str(refused.value).startswith(refusal)


@pytest.mark.parametrize(
    "second, refusal",
    [
        ({"name": "out_1", "address": "192.0.2.2"}, "sources.out_1: there are two with this name; rename one"),
        ({"name": "out_2", "address": "192.0.2.1"}, "sources.out_1.address: 192.0.2.1 is the address of another one"),
    ],
)
def test_entries_that_contradict_each_other_are_refused(second: dict[str, Any], refusal: str) -> None:
    with pytest.raises(config.ConfigError) as refused:
        load(OUT, second)
    assert str(refused.value).startswith(refusal)


def test_a_rule_names_a_pool_that_exists() -> None:
    with pytest.raises(config.ConfigError, match=r"routes\[0\]: there is no pool 'news'; known: default"):
        load(OUT, routes=({"tags": ["news"], "pool": "news"},))
    with pytest.raises(config.ConfigError, match=r"routes\[0\]: there is no pool 'news'; known: none"):
        load(routes=({"tags": ["news"], "pool": "news"},))


def test_mail_that_no_rule_assigns_needs_a_pool() -> None:
    news = {**OUT, "pool": "news"}
    with pytest.raises(config.ConfigError, match="sources: the pool 'default' is empty"):
        load(news, routes=({"tags": ["news"], "pool": "news"},))
    assert load(news, routes=({"pool": "news"},)).route_rules[0].upstreams == ("direct",)


def test_there_is_an_end_to_how_many_there_are() -> None:
    many = [{"name": f"out{number}", "address": f"192.0.2.{number}"} for number in range(201)]
    with pytest.raises(config.ConfigError, match="sources: 201 entries; at most 200 are allowed"):
        load(*many)


def test_every_field_is_documented_with_its_default() -> None:
    for field in msgspec.structs.fields(config.Source):
        default = "–" if field.required else f"`{msgspec.json.encode(field.default).decode()}`"
        assert f"| `{field.name}` | {default} | " in PAGE


def test_the_example_in_the_documentation_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text("\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)))
    settings = config.load(file, environment={})
    assert [(one.name, one.pool) for one in settings.sources] == [
        ("out_1", "default"),
        ("out_2", "default"),
        ("notify_1", "notifications"),
    ]
