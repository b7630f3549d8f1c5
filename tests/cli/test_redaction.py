"""Settings are shown without their secrets, however those were written."""

import pytest

from postroad import config
from postroad.cli.framework import command


@pytest.mark.parametrize(
    "url, shown",
    [
        ("sqlite:////var/lib/post@road:x/y.db", "sqlite:////var/lib/post@road:x/y.db"),
        ("postgresql://host/name", "postgresql://host/name"),
        ("postgresql://jo@host/name", "postgresql://jo@host/name"),
        ("postgresql://jo:hunter2@host:5432/name", "postgresql://jo:***@host:5432/name"),
        (
            "postgresql://jo:hunter2@[::1]:5432/name?sslmode=require",
            "postgresql://jo:***@[::1]:5432/name?sslmode=require",
        ),
        ("postgresql://jo:hun/ter2@host/name", "postgresql://jo:***@host/name"),
        ("postgresql://jo:hun@ter2@host/name", "postgresql://jo:***@host/name"),
        ("postgresql://jo:hun?ter2#@host/name", "postgresql://jo:***@host/name"),
        ("postgresql://jo:@host/name", "postgresql://jo:***@host/name"),
        ("postgresql:///name?user=jo&password=hunter2&host=/run", "postgresql:///name?user=jo&password=***&host=/run"),
        ("postgres://host/name?PASSWORD=hunter2", "postgres://host/name?PASSWORD=***"),
        ("postgres://host/name?sslpassword=hunter2", "postgres://host/name?sslpassword=***"),
    ],
)
def test_an_address_keeps_all_but_its_password(url: str, shown: str) -> None:
    assert command.masked_address(url) == shown


def test_all_settings_are_shown_and_secrets_are_masked() -> None:
    overrides = {
        "database": {"url": "postgresql://jo:hunter2@host/name"},
        "security": {"installation_key": "hunter3"},
        "http": {"listen": "127.0.0.1:1"},
        "sso": {"issuer": "https://login.example.org", "client_id": "postroad", "client_secret": "hunter6"},
        "metrics": {"token": "hunter4-hunter4-hunter4"},
        "operator": {"webhook_url": "https://hooks.example.com/hunter5"},
    }
    shown = command.masked_settings(config.load(environment={}, overrides=overrides))
    assert shown.keys() == config.defaults().keys()
    assert shown["database"]["url"] == "postgresql://jo:***@host/name"
    assert shown["security"]["installation_key"] == "***"
    assert shown["metrics"]["token"] == "***"
    assert shown["sso"]["client_secret"] == "***"
    assert shown["operator"]["webhook_url"] == "***"
    assert shown["http"]["listen"] == "127.0.0.1:1"
    assert "hunter" not in str(shown)


def test_a_key_that_is_not_set_is_not_masked_as_if_it_were() -> None:
    shown = command.masked_settings(config.load(environment={}))
    assert (shown["security"]["installation_key"], shown["metrics"]["token"]) == ("", "")
