"""Unsafe settings are named, secrets may be in files of their own, and one that everybody can read is refused."""

import stat
from pathlib import Path
from typing import Any

import pytest

from postroad import config
from postroad.config import safety

HTTP = "http.listen: keys and passwords cross the network unencrypted"


def load(**sections: dict[str, Any]) -> config.Settings:
    return config.load(environment={}, overrides=sections)


def with_key(file: Path, mode: int) -> config.Settings:
    file.write_text("secret")
    file.chmod(mode)
    return load(security={"installation_key_file": str(file)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that every user may enter, as far as the check is concerned."""
    monkeypatch.setattr(stat, "S_IXOTH", 0o777)
    return tmp_path


def test_the_database_url_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "database"
    secret.write_text("postgresql://mail:hunter2@db/postroad\n")
    given = {"url_file": str(secret)}
    assert load(database=given).database.url == "postgresql://mail:hunter2@db/postroad"
    secret.write_text("mysql://mail:hunter2@db/postroad")
    with pytest.raises(config.ConfigError, match=r"database\.url_file: write sqlite") as refusal:
        load(database=given)
    assert "hunter2" not in str(refusal.value)
    with pytest.raises(config.ConfigError, match="database: url and url_file are both set"):
        load(database={**given, "url": "sqlite:///other.db"})
    secret.unlink()
    with pytest.raises(config.ConfigError, match=r"database\.url_file: \S+ cannot be read: No such file"):
        load(database=given)


def test_the_database_url_in_a_file_that_everybody_can_read_is_refused(folder: Path) -> None:
    file = folder / "database"
    file.write_text("postgresql://mail:hunter2@localhost/postroad")
    file.chmod(0o644)
    settings = load(database={"url_file": str(file)})
    with pytest.raises(config.ConfigError, match=r"database\.url_file: every user of this system can read"):
        config.check_secret_files(settings)
    file.chmod(0o600)
    config.check_secret_files(settings)
    openly = folder / "postroad.toml"
    openly.write_text("")
    openly.chmod(0o644)
    assert config.warnings(settings, openly) == []


def test_the_defaults_are_safe() -> None:
    assert config.warnings(load()) == []


@pytest.mark.parametrize("entry", ["0.0.0.0/0", "::/0"])
def test_a_proxy_that_could_be_anybody_is_a_warning(entry: str) -> None:
    http = {"trusted_proxies": [entry], "base_url": "https://mail.example.com"}
    assert config.warnings(load(http=http)) == [
        (
            f"http.trusted_proxies: {entry} lets every client forge its IP address, which login throttling, the "
            "allowed IPs of API keys and the log rely on; list only the addresses of your proxies"
        )
    ]


def test_starttls_on_the_port_of_implicit_tls_is_a_warning() -> None:
    upstream = {"name": "relay", "host": "relay.example.com", "port": 465}
    assert config.warnings(config.load(environment={}, overrides={"upstreams": [upstream]})) == [
        (
            'upstreams.relay.tls: "starttls" on port 465, where servers expect TLS at once and every connection would '
            'wait until it times out; set tls = "tls", or port = 587'
        )
    ]
    for changed in ({"tls": "tls"}, {"port": 587}):
        given = {"upstreams": [{**upstream, **changed}]}
        assert config.warnings(config.load(environment={}, overrides=given)) == []


@pytest.mark.parametrize(
    "http, metrics, sentence",
    [
        ("127.0.0.1:8025", "127.0.0.1:8025", "metrics.listen: 127.0.0.1:8025 is taken by http.listen (127.0.0.1:8025)"),
        ("0.0.0.0:8025", "127.0.0.1:8025", "metrics.listen: 127.0.0.1:8025 is taken by http.listen (0.0.0.0:8025)"),
        ("[::]:8025", "127.0.0.1:8025", "metrics.listen: 127.0.0.1:8025 is taken by http.listen ([::]:8025)"),
        ("[::1]:8025", "[::]:8025", "metrics.listen: [::]:8025 is taken by http.listen ([::1]:8025)"),
        ("localhost:8025", "127.0.0.1:8025", "metrics.listen: 127.0.0.1:8025 is taken by http.listen (localhost:8025)"),
    ],
)
def test_two_listeners_at_one_address_are_refused(http: str, metrics: str, sentence: str) -> None:
    with pytest.raises(config.ConfigError) as refused:
        load(http={"listen": http}, metrics={"listen": metrics})
    assert str(refused.value) == f"{sentence}; choose another port for one of them"


@pytest.mark.parametrize(
    "http, metrics",
    [
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("127.0.0.1:8025", "127.0.0.2:8025"),
        ("0.0.0.0:8025", "[::1]:8025"),
        ("127.0.0.1:8025", "127.0.0.1:8026"),
    ],
)
def test_listeners_at_addresses_of_their_own_are_accepted(http: str, metrics: str) -> None:
    load(http={"listen": http}, metrics={"listen": metrics})


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o444])
def test_a_key_that_everybody_can_read_is_refused(folder: Path, mode: int) -> None:
    file = folder / "secret.key"
    with pytest.raises(config.ConfigError) as refused:
        config.check_secret_files(with_key(file, mode))
    assert str(refused.value) == (
        f"security.installation_key_file: every user of this system can read {file}; run 'chmod 600 {file}'"
    )


def test_a_key_of_a_certificate_is_refused_as_well(folder: Path) -> None:
    key = folder / "key.pem"
    key.write_text("secret")
    key.chmod(0o644)
    with pytest.raises(config.ConfigError, match=r"tls\.key: every user of this system can read"):
        config.check_secret_files(load(tls={"certificate": str(key), "key": str(key)}))


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640])
def test_a_key_that_not_everybody_can_read_is_accepted(folder: Path, mode: int) -> None:
    config.check_secret_files(with_key(folder / "secret.key", mode))


def test_a_folder_that_others_cannot_enter_protects_its_files(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    config.check_secret_files(with_key(closed / "secret.key", 0o644))


def test_the_secrets_of_a_container_are_exempt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "CONTAINER_SECRETS", folder.resolve())
    config.check_secret_files(with_key(folder / "secret.key", 0o444))


def test_a_key_that_is_missing_is_left_to_its_reader() -> None:
    settings = load(security={"installation_key_file": "/nonexistent/secret.key"})
    config.check_secret_files(settings)
    assert config.warnings(settings) == []


def test_a_key_that_its_group_can_read_is_a_warning(folder: Path) -> None:
    (warning,) = config.warnings(with_key(folder / "secret.key", 0o640))
    assert warning.startswith(f"security.installation_key_file: the group of {folder / 'secret.key'} can read it")
    assert config.warnings(with_key(folder / "secret.key", 0o600)) == []


@pytest.mark.parametrize(
    "sections",
    [
        {"security": {"installation_key": "x" * 40}},
        {"metrics": {"token": "token-of-the-tests"}},
        {"operator": {"webhook_url": "https://hooks.example.com/secret"}},
        {"database": {"url": "postgresql://jo:hunter2@localhost/name"}},
    ],
)
def test_a_file_with_secrets_that_everybody_can_read_is_a_warning(folder: Path, sections: dict[str, Any]) -> None:
    file = folder / "postroad.toml"
    file.touch()
    file.chmod(0o644)
    (warning,) = config.warnings(load(**sections), file)
    assert warning == f"{file} contains secrets, and every user of this system can read it; run 'chmod 600 {file}'"
    assert config.warnings(load(), file) == []
    file.chmod(0o600)
    assert config.warnings(load(**sections), file) == []


@pytest.mark.parametrize(
    "http, count",
    [
        ({"listen": "127.0.0.1:80"}, 0),
        ({"listen": "[::1]:80"}, 0),
        ({"listen": "localhost:80"}, 0),
        ({"listen": "0.0.0.0:80"}, 1),
        ({"listen": "[::]:80"}, 1),
        ({"listen": "mail.example.com:80"}, 1),
        ({"listen": "0.0.0.0:80", "base_url": "http://mail.example.com"}, 1),
        ({"listen": "0.0.0.0:80", "base_url": "https://mail.example.com"}, 0),
        ({"listen": "0.0.0.0:80", "trusted_proxies": ["10.0.0.1"]}, 0),
    ],
)
def test_unencrypted_http_on_a_network_is_a_warning(http: dict[str, Any], count: int) -> None:
    assert [one.startswith(HTTP) for one in config.warnings(load(http=http))].count(True) == count


@pytest.mark.parametrize(
    "http, count",
    [
        ({"base_url": "https://mail.example.com"}, 1),
        ({"base_url": "https://mail.example.com", "listen": "0.0.0.0:80"}, 1),
        ({"base_url": "https://mail.example.com", "trusted_proxies": ["127.0.0.1"]}, 0),
        ({"base_url": "http://mail.example.com"}, 0),
    ],
)
def test_a_proxy_that_is_not_named_is_a_warning(http: dict[str, Any], count: int) -> None:
    found = config.warnings(load(http=http))
    assert [one.partition(":")[0] for one in found] == ["http.trusted_proxies"] * count


@pytest.mark.parametrize("listen, count", [("127.0.0.1:587", 0), ("0.0.0.0:587", 1), ("", 0)])
def test_passwords_without_tls_on_a_network_are_a_warning(listen: str, count: int) -> None:
    found = config.warnings(load(submission={"listen": listen, "auth_without_tls": True}))
    assert [one.partition(":")[0] for one in found] == ["submission.auth_without_tls"] * count


@pytest.mark.parametrize(
    "sections, settings",
    [
        ({"webhooks": {"allow_insecure": True}}, ["webhooks.allow_insecure"]),
        ({"webhooks": {"allow_private": ["hooks.internal", "::/0"]}}, ["webhooks.allow_private"]),
        ({"delivery": {"allow_private": ["10.0.0.0/8", "0.0.0.0/0"]}}, ["delivery.allow_private"]),
        ({"delivery": {"allow_private": ["10.0.0.0/8"]}, "webhooks": {"allow_private": ["*.internal"]}}, []),
    ],
)
def test_a_guard_that_lets_everything_through_is_a_warning(sections: dict[str, Any], settings: list[str]) -> None:
    assert [one.partition(":")[0] for one in config.warnings(load(**sections))] == settings


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://mail:hunter2@db.example.com/postroad",
        "postgresql://mail@10.0.0.5:5432/postroad?sslmode=require",
        "postgresql://mail@127.0.0.1,db2.example.com:5433/postroad",
        "postgresql://mail@[2001:db8::5]:5432/postroad?sslmode=verify-ca",
        "postgresql://mail@/postroad?host=my_db",
    ],
)
def test_a_database_on_the_network_without_a_verified_certificate_is_named(url: str) -> None:
    assert config.warnings(load(database={"url": url})) == [
        (
            "database.url: the certificate of the database is not verified, so its password and all mail may be read "
            "on the network; add sslmode=verify-full, and sslrootcert with the file of its CA certificate"
        )
    ]
    joined = "&" if "?" in url else "?"
    verified = url.partition("sslmode")[0].rstrip("?&") + ("?" if "sslmode" in url else joined) + "sslmode=verify-full"
    assert config.warnings(load(database={"url": verified})) == []


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///postroad.db",
        "postgresql://mail@localhost/postroad",
        "postgresql://mail@127.0.0.1:5433/postroad",
        "postgresql://mail@[::1]/postroad",
        "postgresql:///postroad",
        "postgresql://mail@/postroad?host=/var/run/postgresql&port=5432",
    ],
)
def test_a_database_on_this_host_needs_no_certificate(url: str) -> None:
    assert config.warnings(load(database={"url": url})) == []
