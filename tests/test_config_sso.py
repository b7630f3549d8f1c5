"""The settings of single sign-on."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from postroad import config

ISSUER = {"issuer": "https://login.example.org", "client_id": "postroad"}


def load(**sso: Any) -> config.Settings:
    return config.load(environment={}, overrides={"sso": sso})


def test_a_provider_needs_an_issuer_and_a_client() -> None:
    assert load(**ISSUER).sso.issuer == "https://login.example.org"
    with pytest.raises(config.ConfigError, match=r"sso.client_id: missing"):
        load(issuer="https://login.example.org")


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    page = Path("docs/single-sign-on.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    secret = tmp_path / "sso-secret"
    secret.write_text("secret", encoding="utf-8")
    settings = load(**tomllib.loads(example)["sso"] | {"client_secret_file": str(secret)})
    assert settings.sso.groups == {"mail-admins": "operator", "developers": "developer"}


@pytest.mark.parametrize(
    "issuer",
    [
        "login.example.org",
        "http://login.example.org",
        "https://",
        "https://login.example.org?x=1",
        "https://login.example.org#x",
        "https://user@login.example.org",
        "https://lögin.example.org",
        "javascript:alert(1)",
    ],
)
def test_an_issuer_is_an_https_url_without_query(issuer: str) -> None:
    with pytest.raises(config.ConfigError, match=r"sso.issuer"):
        load(issuer=issuer, client_id="postroad")


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:9000", "http://localhost:9000/realms/a", "http://[::1]:9000"])
def test_plain_http_is_for_this_host(issuer: str) -> None:
    assert load(issuer=issuer, client_id="postroad").sso.issuer == issuer


@pytest.mark.parametrize(
    "more, sentence",
    [
        ({"role": "king"}, "sso.role: 'king' is not one of owner"),
        ({"groups": {"a": "king"}, "account": "acc_1"}, "sso.groups: 'a' is mapped to 'king'; write one of owner"),
        ({"groups": {"a": "operator"}}, "sso.account: missing"),
        ({"passwords": False}, "sso.break_glass: missing"),
        ({"passwords": False, "break_glass": "nobody"}, "sso.break_glass: 'nobody' is not a plain email address"),
        ({"client_secret": "a", "client_secret_file": "b"}, "both set"),
        ({"email_domains": ["not a domain"]}, "sso.email_domains"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(config.ConfigError, match=sentence):
        load(**ISSUER, **more)


def test_nobody_can_be_locked_out_by_switching_passwords_off_without_a_provider() -> None:
    with pytest.raises(config.ConfigError, match=r"sso.passwords: nobody could log in"):
        load(passwords=False)


def test_the_client_secret_comes_from_the_setting_or_its_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from a file\n")
    assert config.sso_client_secret(load(**ISSUER, client_secret="here").sso) == "here"
    assert config.sso_client_secret(load(**ISSUER, client_secret_file=str(file)).sso) == "from a file"
    with pytest.raises(config.ConfigError, match=r"sso.client_secret_file: .* cannot be read"):
        config.sso_client_secret(load(**ISSUER, client_secret_file=str(tmp_path / "none")).sso)


def test_the_secret_is_in_no_representation() -> None:
    assert "hush" not in repr(load(**ISSUER, client_secret="hush").sso)


def test_the_file_of_the_secret_is_guarded_like_the_others(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    settings = load(**ISSUER, client_secret_file=str(file))
    assert ("sso.client_secret_file", file) in config.secret_files(settings)
