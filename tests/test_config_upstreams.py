"""Upstreams and routes in the settings: where they come from, what is refused, and that no password is shown."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postroad import config
from postroad.cli.framework import command
from postroad.model.delivery import providers

SES = {"name": "ses", "host": "email-smtp.eu-west-1.amazonaws.com", "username": "AKIA", "password": "hunter2"}
RELAY = {"name": "relay", "host": "relay.example.com"}


def load(*upstreams: dict[str, Any], routes: tuple[dict[str, Any], ...] = (), **environment: str) -> config.Settings:
    variables = {f"POSTROAD_UPSTREAMS__{name}": value for name, value in environment.items()}
    overrides = {"upstreams": upstreams, "routes": routes} if upstreams or routes else {}
    return config.load(environment=variables, overrides=overrides)


def refusal(*upstreams: dict[str, Any], routes: tuple[dict[str, Any], ...] = (), **environment: str) -> str:
    with pytest.raises(config.ConfigError) as caught:
        load(*upstreams, routes=routes, **environment)
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


def test_an_upstream_uses_starttls_with_a_verified_certificate_unless_told_otherwise() -> None:
    (upstream,) = load(RELAY).upstreams
    assert (upstream.port, upstream.tls, upstream.provider_queue) == (587, "starttls", "upstream:relay")
    assert (upstream.connections, upstream.messages_per_second, upstream.messages_per_connection) == (20, 10000, 10000)
    assert config.upstream_credentials(upstream) is None


def test_a_file_has_tables_and_the_environment_adds_to_them_by_name(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text(
        '[[upstreams]]\nname = "ses"\nhost = "a.example"\nusername = "AKIA"\n[[routes]]\nupstreams = ["ses"]\n'
    )
    environment = {
        "POSTROAD_UPSTREAMS__SES__PASSWORD": "123",
        "POSTROAD_UPSTREAMS__SES__PORT": "465",
        "POSTROAD_UPSTREAMS__OWN_RELAY__HOST": "b.example",
    }
    settings = config.load(file, environment=environment)
    ses, relay = settings.upstreams
    assert (ses.host, ses.username, ses.password, ses.port) == ("a.example", "AKIA", "123", 465)
    assert (relay.name, relay.host) == ("own_relay", "b.example")
    assert settings.routes == (providers.RouteRule(upstreams=("ses",)),)


def test_a_password_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    upstream = load({**SES, "password": "", "password_file": str(file)}).upstreams[0]
    found = config.upstream_credentials(upstream)
    assert found is not None
    assert (found.username, found.password) == ("AKIA", "hunter2")
    file.write_text("")
    with pytest.raises(config.ConfigError, match=r"upstreams\.ses\.password_file: the password must be on one line"):
        config.upstream_credentials(upstream)
    file.unlink()
    with pytest.raises(config.ConfigError, match=r"upstreams\.ses\.password_file: .* cannot be read: No such file"):
        config.check_upstream_files([upstream])


def test_a_file_of_authorities_has_to_be_there(tmp_path: Path) -> None:
    file = tmp_path / "authority.pem"
    upstreams = load({**RELAY, "ca_file": str(file)}).upstreams
    with pytest.raises(config.ConfigError, match=r"upstreams\.relay\.ca_file: .* cannot be read: No such file"):
        config.check_upstream_files(upstreams)
    file.write_text("nothing")
    with pytest.raises(config.ConfigError, match=r"upstreams\.relay\.ca_file: .* has no certificates in PEM format"):
        config.check_upstream_files(upstreams)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"name": "Amazon SES"}, "upstreams: 'Amazon SES' is not a name"),
        ({"name": "a__b"}, "upstreams: 'a__b' is not a name"),
        ({"name": "direct"}, "upstreams.direct: is reserved for direct delivery"),
        (
            {"name": "dev_simulator"},
            "upstreams.dev_simulator: is reserved for the simulator of 'postroad dev'",
        ),
        ({"host": "relay example"}, "upstreams.ses.host: 'relay example' is neither a host name nor an IP address"),
        ({"port": 0}, "upstreams.ses.port: must be 1 or more"),
        ({"tls": "ssl"}, "upstreams.ses.tls: 'ssl' is not one of starttls, tls, off"),
        ({"host": 7}, "upstreams.ses.host: must be a string in quotes"),
        ({"user": "x"}, "upstreams.ses.user: unknown setting"),
        ({"username": ""}, "upstreams.ses.username: empty, but there is a password"),
        ({"password": ""}, "upstreams.ses.password: empty, but there is a username"),
        ({"password_file": "x"}, "upstreams.ses: password and password_file are both set"),
        ({"password": "hunter2\n"}, "upstreams.ses.password: has control characters"),
        ({"tls": "off"}, 'upstreams.ses.tls: "off" would send the password unencrypted to email-smtp.'),
        ({"tls": "off", "username": "", "password": "", "ca_file": "x"}, "upstreams.ses.ca_file: has no effect"),
    ],
)
def test_a_wrong_upstream_is_named(changes: dict[str, Any], sentence: str) -> None:
    assert refusal({**SES, **changes}).startswith(sentence)


def test_a_password_may_be_sent_unencrypted_to_this_host_only() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        assert load({**SES, "host": host, "tls": "off"}).upstreams[0].tls == "off"


@pytest.mark.parametrize(
    "rule, sentence",
    [
        ({"upstreams": ["sess"]}, "routes[0]: there is no upstream 'sess'; known: direct, ses"),
        ({"upstreams": []}, "routes[0]: upstreams is empty; name at least one, or 'direct', or a pool"),
        ({"upstreams": ["ses", "ses"]}, "routes[0]: lists an upstream twice"),
        (
            {"upstreams": ["ses"], "providers": ["gmail"]},
            "routes[0]: there is no provider 'gmail'; known: goog",
        ),
        ({"upstreams": ["ses"], "sender_domains": ["Shop.example"]}, "routes[0]: 'Shop.example' is not a dom"),
        ({"upstreams": ["ses"], "domains": ["x"]}, "routes[0].domains: unknown setting"),
    ],
)
def test_a_wrong_rule_is_named(rule: dict[str, Any], sentence: str) -> None:
    assert refusal(SES, routes=(rule,)).startswith(sentence)


def test_two_upstreams_of_one_name_and_a_rule_that_hides_the_next_are_refused() -> None:
    assert refusal(SES, SES) == "upstreams.ses: there are two with this name; rename one"
    hidden = ({"upstreams": ["ses"]}, {"upstreams": ["direct"], "providers": ["google"]})
    assert "matches everything, so that the rules after it are never used" in refusal(SES, routes=hidden)


def test_a_list_is_not_a_section_and_rules_are_not_for_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text('[upstreams.ses]\nhost = "a.example"\n')
    with pytest.raises(config.ConfigError, match=r"upstreams: is a list of tables .* write \[\[upstreams\]\]"):
        config.load(file, environment={})
    with pytest.raises(config.ConfigError, match=r"routes: cannot be set by a variable"):
        config.load(environment={"POSTROAD_ROUTES__X__UPSTREAMS": "ses"})


def test_no_password_is_shown() -> None:
    settings = load(SES)
    assert command.masked_settings(settings)["upstreams"][0]["password"] == "***"
    assert command.masked_settings(load(RELAY))["upstreams"][0]["password"] == ""
    assert "hunter2" not in repr(settings) + str(command.masked_settings(settings))


def test_a_password_file_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    file = Path("/etc/hostname")  # readable by all, as are the folders above
    upstream = {**SES, "password": "", "password_file": str(file)}
    with pytest.raises(config.ConfigError, match=r"upstreams\.ses\.password_file: every user of this system can read"):
        config.check_secret_files(load(upstream))


@pytest.mark.parametrize("kind", [config.Upstream, providers.RouteRule])
def test_every_field_is_documented_with_its_default(kind: type[Any]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "upstreams.md").read_text()
    for field in msgspec.structs.fields(kind):
        default = "–" if field.required else f"`{msgspec.json.encode(field.default).decode()}`"
        assert f"| `{field.name}` | {default} | " in page


def test_the_examples_in_the_documentation_are_valid_together(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "upstreams.md").read_text()
    file = tmp_path / "postroad.toml"
    file.write_text("\n".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)))
    settings = config.load(file, environment={})
    assert [upstream.name for upstream in settings.upstreams] == ["ses", "postmark"]
    assert [rule.upstreams for rule in settings.routes] == [("postmark",), ("direct", "ses"), ("ses",)]
