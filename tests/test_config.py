"""Settings: what lies over what, what is refused and with which words, and that every setting is documented."""

import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from postroad import config
from postroad.config import changes
from tests.docs import generated

ROOT = Path(__file__).parent.parent
DEFAULTS = ROOT / "src" / "postroad" / "defaults.toml"
DOCUMENTATION = ROOT / "docs" / "configuration.md"
MAIL_SETTINGS = ROOT / "docs" / "settings-mail.md"
STRONG_KEY = "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBkb2c"


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Mapping[str, object]] | None = None,
) -> config.Settings:
    return config.load(file, environment=environment or {}, overrides=overrides)


def refusal(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Mapping[str, object]] | None = None,
) -> str:
    with pytest.raises(config.ConfigError) as caught:
        load(file, environment=environment, overrides=overrides)
    return str(caught.value)


def written(folder: Path, text: str) -> Path:
    file = folder / "postroad.toml"
    file.write_text(text)
    return file


def test_the_defaults_are_complete_and_valid() -> None:
    settings = load()
    assert settings.http.listen == "127.0.0.1:8025"
    assert settings.domains.require_verified is True


def test_a_file_lies_over_the_defaults_the_environment_over_it_and_flags_over_all(tmp_path: Path) -> None:
    file = written(tmp_path, '[http]\nlisten = "127.0.0.1:1"\ndrain_seconds = 1\nconnections = 1\n')
    environment = {"POSTROAD_HTTP__LISTEN": "127.0.0.1:2", "POSTROAD_HTTP__DRAIN_SECONDS": "2"}
    settings = load(file, environment=environment, overrides={"http": {"listen": "127.0.0.1:3"}})
    assert (settings.http.listen, settings.http.drain_seconds, settings.http.connections) == ("127.0.0.1:3", 2, 1)
    assert settings.limits == load().limits


@pytest.mark.parametrize("text, expected", [("true", True), ("false", False), ("1", True), ("0", False)])
def test_a_variable_takes_the_type_of_its_setting(text: str, *, expected: bool) -> None:
    settings = load(environment={"POSTROAD_DOMAINS__REQUIRE_VERIFIED": text, "POSTROAD_LIMITS__REQUEST_RATE": "7"})
    assert settings.domains.require_verified is expected
    assert settings.limits.request_rate == 7


def test_a_text_from_the_environment_stays_a_text() -> None:
    assert load(environment={"POSTROAD_SECURITY__INSTALLATION_KEY": "123"}).security.installation_key == "123"


@pytest.mark.parametrize(
    "name", ["POSTROAD_PORT", "POSTROAD_SERVICE_HOST", "OTHER_HTTP__LISTEN", "postroad_http__listen"]
)
def test_variables_that_are_not_settings_are_left_alone(name: str) -> None:
    assert load(environment={name: "tcp://10.0.0.1:80"}) == load()
    assert not config.has_variables({name: ""})


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("[htpp]\nlisten = 'a:1'", "htpp: unknown section"),
        ("[http]\nlissten = 'a:1'", "http.lissten: unknown setting"),
        ("listen = 'a:1'", "listen: unknown section"),
        ("http = 3", "http: is a section, not a setting"),
        ("[shutdown]\ngrace_seconds = 'ten'", "shutdown.grace_seconds: must be a whole number"),
        ("[shutdown]\ngrace_seconds = '10'", "shutdown.grace_seconds: must be a whole number"),
        ("[shutdown]\ngrace_seconds = true", "shutdown.grace_seconds: must be a whole number"),
        ("[shutdown]\ngrace_seconds = 1.5", "shutdown.grace_seconds: must be a whole number"),
        ("[shutdown]\ngrace_seconds = 0", "shutdown.grace_seconds: must be 1 or more"),
        ("[shutdown]\ngrace_seconds = 99999999999", "shutdown.grace_seconds: must be 1000000000 or less"),
        ("[http.listen]\nport = 3", "http.listen: must be a string in quotes"),
        ("[domains]\nrequire_verified = 1", "domains.require_verified: must be true or false"),
        ("[logs]\nlevel = 'loud'", "logs.level: 'loud' is not one of debug, info, warning, error"),
        ("[logs]\nformat = 'xml'", "logs.format: 'xml' is not one of json, console"),
        ("[http]\nlisten = 'localhost'", "http.listen: 'localhost' is not an address; write host:port"),
        ("[http]\nlisten = '127.0.0.1:http'", "http.listen: '127.0.0.1:http' has no port between 0 and 65535"),
        ("[http]\nlisten = '127.0.0.1:65536'", "http.listen: '127.0.0.1:65536' has no port between 0 and 65535"),
        ("[http]\nlisten = ':8025'", "http.listen: ':8025' is not an address"),
        ("[http]\nlisten = '::1:8025'", "http.listen: '::1:8025' is not an address"),
        ("[http]\nlisten = '[::1'", "http.listen: '[::1' is not an address"),
        ("[http]\nbase_url = 'mail.example.com'", "http.base_url: 'mail.example.com' is not a URL"),
        ("[http]\nbase_url = 'https://mail.example.com/'", "http.base_url: 'https://mail.example.com/' is not a URL"),
        ("[http]\nbase_url = 'https://[mail'", "http.base_url: 'https://[mail' is not a URL"),
        (
            "[security]\ninstallation_key = 'a'\ninstallation_key_file = 'b'",
            "security: installation_key and installation_key_file are both set",
        ),
        ("[metrics]\ntoken = 'short'", "metrics.token: write at least 16 printable ASCII characters"),
        ("[metrics]\ntoken = 'with a blank in the middle'", "metrics.token: write at least 16 printable ASCII"),
        ("[metrics]\nlisten = '9025'", "metrics.listen: '9025' is not an address"),
        ("[dashboard]\nspamd = 'spamd'", "dashboard.spamd: 'spamd' is not an address"),
        ("[http", "not valid TOML"),
        (
            "[security]\n[http]\n[security]\n",
            "line 3: the section [security] is there already; write its settings under the first one",
        ),
        ("[providers.google]\n[providers.google]\n", "line 2: the section [providers.google] is there already"),
        ("[http]\nlisten = 'a:1'\nlisten = 'b:1'", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_name_of_the_setting(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(written(tmp_path, text))


@pytest.mark.parametrize(
    "name, value, sentence",
    [
        ("POSTROAD_HTPP__LISTEN", "a:1", "htpp: unknown section (in environment)"),
        ("POSTROAD_HTTP__LISSTEN", "a:1", "http.lissten: unknown setting (in environment)"),
        ("POSTROAD_SHUTDOWN__GRACE_SECONDS", "ten", "shutdown.grace_seconds: 'ten' is not a whole number"),
        ("POSTROAD_SHUTDOWN__GRACE_SECONDS", "", "shutdown.grace_seconds: '' is not a whole number"),
        ("POSTROAD_DOMAINS__REQUIRE_VERIFIED", "maybe", "domains.require_verified: 'maybe' is not true or false"),
    ],
)
def test_a_wrong_variable_is_refused_with_the_name_of_the_setting(name: str, value: str, sentence: str) -> None:
    assert sentence in refusal(environment={name: value})


def test_a_list_from_the_environment_is_separated_by_commas_and_takes_the_type_of_its_items() -> None:
    settings = load(
        environment={
            "POSTROAD_DELIVERY__RETRY_SECONDS": "5, 10,15",
            "POSTROAD_DELIVERY__RESOLVERS": " 192.0.2.1 ,[2001:db8::1]:5353,",
            "POSTROAD_DELIVERY__ALLOW_PRIVATE": "",
        }
    )
    assert settings.delivery.retry_seconds == (5, 10, 15)
    assert settings.delivery.resolvers == ("192.0.2.1", "[2001:db8::1]:5353")
    assert settings.delivery.allow_private == ()


def test_a_provider_keeps_what_is_not_mentioned_in_any_layer(tmp_path: Path) -> None:
    file = written(tmp_path, "[providers]\ngoogle = { connections = 1 }\n[providers.yahoo]\nmessages_per_second = 2\n")
    environment = {"POSTROAD_PROVIDERS__GOOGLE": "{ messages_per_second = 3 }"}
    overrides = {"providers": {"google": {"messages_per_connection": 4}}}
    providers = load(file, environment=environment, overrides=overrides).providers
    assert providers.google == config.Provider(connections=1, messages_per_second=3, messages_per_connection=4)
    assert providers.yahoo == config.Provider(connections=10, messages_per_second=2, messages_per_connection=20)
    assert providers.others == load().providers.others


@pytest.mark.parametrize(
    "name, value, sentence",
    [
        ("PROVIDERS__GOOGLE", "5", "providers.google: must be a table"),
        ("PROVIDERS__GOOGLE", "many", "providers.google: 'many' is not a table; write it as in a file"),
        ("PROVIDERS__GOOGLE", "{ connections = 0 }", "providers.google.connections: must be 1 or more"),
        ("PROVIDERS__GOOGLE", "{ speed = 1 }", "providers.google.speed: unknown setting"),
        ("PROVIDERS__LYCOS", "{ connections = 1 }", "providers.lycos: unknown setting (in environment); known: "),
        ("DELIVERY__RETRY_SECONDS", "5,soon", "delivery.retry_seconds: 'soon' is not a whole number"),
        ("DELIVERY__RETRY_SECONDS", "", "delivery.retry_seconds: empty; set at least one delay in seconds"),
        ("DELIVERY__RETRY_SECONDS", "0", "delivery.retry_seconds[0]: must be 1 or more"),
        ("DELIVERY__RETRY_SECONDS", ",".join(["1"] * 101), "delivery.retry_seconds: must have at most 100 entries"),
        ("DELIVERY__TLS", "sometimes", "delivery.tls: 'sometimes' is not one of opportunistic, required, off"),
        ("DELIVERY__MX_PORT", "0", "delivery.mx_port: must be 1 or more"),
        ("DELIVERY__MX_PORT", "65536", "delivery.mx_port: must be 65535 or less"),
        ("DELIVERY__ALLOW_PRIVATE", "10.1.0.0/16,mx.internal", "delivery.allow_private: 'mx.internal' is neither an"),
        (
            "DELIVERY__ALLOW_PRIVATE",
            "10.1.0.0/8",
            "delivery.allow_private: '10.1.0.0/8' has host bits set; did you mean 10.0.0.0/8?",
        ),
        (
            "WEBHOOKS__ALLOW_PRIVATE",
            "hooks.internal,fd00::1/8",
            "webhooks.allow_private: 'fd00::1/8' has host bits set; did you mean fd00::/8?",
        ),
        ("WEBHOOKS__ALLOW_PRIVATE", "10.1.0.0/33", "webhooks.allow_private: '10.1.0.0/33' is neither a network nor a"),
        (
            "HTTP__TRUSTED_PROXIES",
            "127.0.0.1/8",
            "http.trusted_proxies: '127.0.0.1/8' has host bits set; did you mean 127.0.0.0/8?",
        ),
        ("TESTING__LEASE_SECONDS", "9", "testing.lease_seconds: must be 10 or more"),
        ("TESTING__LEASE_SECONDS", "3601", "testing.lease_seconds: must be 3600 or less"),
        ("DELIVERY__RESOLVERS", "dns.example.com:53", "delivery.resolvers: 'dns.example.com' is not an IP address"),
        ("DELIVERY__RESOLVERS", "dns.example.com", "delivery.resolvers: 'dns.example.com' is not an address"),
        ("DELIVERY__RESOLVERS", "192.0.2.1:99999", "delivery.resolvers: '192.0.2.1:99999' has no port"),
        ("DELIVERY__RESOLVERS", "192.0.2.1:0", "delivery.resolvers: port 0 is not a valid destination"),
        ("SOURCES__OUT__ADDRESS", "eth0", "sources.out.address: 'eth0' is not an IP address"),
        ("DELIVERY__HOSTNAME", "my host", "delivery.hostname: 'my host' is not a host name"),
        ("DELIVERY__RETURN_PATH_DOMAIN", "@example.com", "delivery.return_path_domain: '@example.com' is not a host"),
        ("TLS_REPORTS__FROM", "example.com", "tls_reports.from: 'example.com' is not a plain email address"),
        ("TLS_REPORTS__FROM", "Shop <a@example.com>", "tls_reports.from: 'Shop <a@example.com>' is not a plain email"),
        ("TLS_REPORTS__FROM", "a@my host", "tls_reports.from: 'a@my host' is not a plain email address"),
        ("SHUTDOWN__GRACE_SECONDS", "0", "shutdown.grace_seconds: must be 1 or more"),
        ("DOMAINS__KEY_ZONE", "my zone", "domains.key_zone: 'my zone' is not a domain name"),
        ("DOMAINS__KEY_ZONE", "a." * 100 + "example", "domains.key_zone: must have at most 200 characters"),
        ("DOMAINS__KEY_ROTATION_DAYS", "7", "domains.key_rotation_days: must exceed 7, or be 0"),
        ("INBOUND__LISTEN", "25", "inbound.listen: '25' is not an address"),
        ("METRICS__LISTEN", "9090", "metrics.listen: '9090' is not an address"),
        ("METRICS__TOKEN", "short", "metrics.token: write at least 16 printable ASCII characters"),
    ],
)
def test_an_impossible_setting_of_delivery_is_refused_with_its_name(name: str, value: str, sentence: str) -> None:
    assert sentence in refusal(environment={f"POSTROAD_{name}": value})


@pytest.mark.parametrize(
    "section, values, sentence",
    [
        ("submission", {"listen": "587"}, "submission.listen: '587' is not an address"),
        ("submission", {"tls_listen": "465"}, "submission.tls_listen: '465' is not an address"),
        (
            "submission",
            {"listen": "[::]:587"},
            "submission.listen: clients cannot authenticate without TLS; set tls.certificate",
        ),
        (
            "submission",
            {"tls_listen": "[::]:465", "auth_without_tls": True},
            "submission.tls_listen: requires tls.certificate",
        ),
        ("warmup", {"recipients_per_day": [200, 100]}, "warmup.recipients_per_day: values must not decrease"),
        ("warmup", {"recipients_per_day": [49]}, "warmup.recipients_per_day[0]: must be 50 or more"),
        ("warmup", {"recipients_per_day": []}, "warmup.recipients_per_day: must have at least 1 entry"),
        ("bounce_guard", {"warn_percent": 9.0}, "bounce_guard.warn_percent: must not exceed suspend_percent"),
        (
            "bounce_guard",
            {"complaint_warn_percent": 1.0},
            "complaint_warn_percent: must not exceed complaint_suspend_percent",
        ),
        ("bounce_guard", {"suspend_percent": 0.0}, "bounce_guard.suspend_percent: must be more than 0"),
        ("retention", {"body_days": 91}, "retention.body_days: must not exceed message_days"),
        ("retention", {"message_days": 1}, "retention.message_days: must be 2 or more"),
    ],
)
def test_an_impossible_setting_of_the_smtp_listener_or_a_guard_is_refused_with_its_name(
    section: str, values: dict[str, object], sentence: str
) -> None:
    assert sentence in refusal(overrides={section: values})


@pytest.mark.parametrize(
    "text, host, port",
    [
        ("192.0.2.1", "192.0.2.1", 53),
        ("2001:db8::1", "2001:db8::1", 53),
        ("192.0.2.1:5353", "192.0.2.1", 5353),
        ("[2001:db8::1]:5353", "2001:db8::1", 5353),
    ],
)
def test_a_dns_server_is_an_address_with_or_without_a_port(text: str, host: str, port: int) -> None:
    assert config.dns_server(text) == config.Endpoint(host, port)


@pytest.mark.parametrize("url", ["", "mysql://host/name", "postroad.db", "sqlite://relative.db", "sqlite:///"])
def test_a_database_address_of_an_unknown_kind_is_refused(url: str) -> None:
    assert "database.url: write sqlite:///" in refusal(overrides={"database": {"url": url}})


def test_a_refused_database_address_is_not_repeated_because_it_may_hold_a_password() -> None:
    assert "hunter2" not in refusal(overrides={"database": {"url": "mysql://user:hunter2@host/name"}})


def test_a_refused_token_is_not_repeated() -> None:
    assert "hunter2" not in refusal(overrides={"metrics": {"token": "hunter2"}})


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent.toml") == f"{tmp_path / 'absent.toml'}: cannot be read: No such file or directory"
    assert "Is a directory" in refusal(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    assert "not valid TOML" in refusal(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    "text, host, port",
    [
        ("127.0.0.1:8025", "127.0.0.1", 8025),
        ("[::1]:0", "::1", 0),
        ("localhost:65535", "localhost", 65535),
        ("mail.example.com:80", "mail.example.com", 80),
    ],
)
def test_an_address_to_listen_on_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    endpoint = config.endpoint(text, name="http.listen")
    assert (endpoint.host, endpoint.port) == (host, port)
    assert str(endpoint) == text


@hypothesis.given(strategies.text(alphabet="[]:.%0129afgz\u0663\n -", max_size=20))
def test_whatever_is_written_for_an_address_either_reads_back_the_same_or_is_refused(text: str) -> None:
    try:
        endpoint = config.endpoint(text, name="http.listen")
    except config.ConfigError:
        return
    assert config.endpoint(str(endpoint), name="http.listen") == endpoint


def security(**values: str) -> config.Security:
    return load(overrides={"security": values}).security


def test_a_strong_key_is_taken_from_the_setting_or_from_the_file_without_its_line_break(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{STRONG_KEY}\n")
    assert config.installation_key(security(installation_key=STRONG_KEY)) == STRONG_KEY.encode()
    assert config.installation_key(security(installation_key_file=str(file))) == STRONG_KEY.encode()


def test_a_variable_overrides_another_way_in_the_file(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(STRONG_KEY)
    file = written(tmp_path, '[database]\nurl_file = "absent"\n[security]\ninstallation_key = "weak"\n')
    variables = {"POSTROAD_DATABASE__URL": "sqlite:///x.db", "POSTROAD_SECURITY__INSTALLATION_KEY_FILE": str(key)}
    settings = load(file, environment=variables)
    assert settings.database.url == "sqlite:///x.db"
    assert config.installation_key(settings.security) == STRONG_KEY.encode()


@pytest.mark.parametrize(
    "key", ["", "hunter2", "x" * 64, "changeme" * 4, STRONG_KEY[:31], "0101" * 32, " " * 40], ids=lambda key: key[:8]
)
def test_a_missing_or_weak_key_is_refused_without_repeating_it(tmp_path: Path, key: str) -> None:
    file = tmp_path / "key"
    file.write_text(key)
    for given in (security(installation_key=key), security(installation_key_file=str(file))):
        with pytest.raises(config.ConfigError, match="missing or too weak") as caught:
            config.installation_key(given)
        assert not key.strip() or key not in str(caught.value)


def test_a_key_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(config.ConfigError, match="cannot be read: No such file"):
        config.installation_key(security(installation_key_file=str(tmp_path / "absent")))
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(128, 255)))
    with pytest.raises(config.ConfigError, match="is not text"):
        config.installation_key(security(installation_key_file=str(binary)))


def test_every_default_has_a_comment_and_every_comment_is_a_sentence() -> None:
    settings = {name: comment for name, _, comment in generated.settings()}
    defaults = config.defaults()
    listed = {name for name, value in defaults.items() if isinstance(value, list)}
    named = {f"{section}.{key}" for section in defaults.keys() - listed for key in defaults[section]}
    assert listed | named == settings.keys()
    assert [name for name, comment in settings.items() if not comment.endswith(".")] == []


def test_every_setting_that_the_page_names_exists() -> None:
    known = {name for name, _, _ in generated.settings()}
    sections = {name.partition(".")[0] for name in known}
    named = re.findall(r"`(\w+)\.(\w+)`", DOCUMENTATION.read_text() + MAIL_SETTINGS.read_text())
    assert {f"{section}.{key}" for section, key in named if section in sections} <= known


def test_the_example_in_the_documentation_is_a_valid_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"<!-- example: settings -->\n```toml\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    assert tomllib.loads(example).keys() <= config.defaults().keys()
    load(written(tmp_path, example))


def test_the_defaults_hold_no_key() -> None:
    assert load().security.installation_key == ""
    with pytest.raises(config.ConfigError):
        config.installation_key(load().security)
    assert not stat.S_IMODE(DEFAULTS.stat().st_mode) & stat.S_IXUSR


def test_a_setting_of_an_earlier_build_is_refused_with_what_became_of_it(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text("[delivery]\nidle_seconds = 3\n")
    for variables, source in (({}, str(file)), ({"POSTROAD_DELIVERY__IDLE_SECONDS": "3"}, "environment")):
        with pytest.raises(config.ConfigError) as refused:
            config.load(None if variables else file, environment=variables)
        assert str(refused.value) == f"delivery.idle_seconds: is fixed at 5 seconds; remove it (in {source})"


def test_a_former_field_of_a_table_in_a_list_is_refused_too(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text('[[upstreams]]\nname = "ses"\nhost = "a.example"\npassword_command = ["pass"]\n')
    for variables, source in (({}, str(file)), ({"POSTROAD_UPSTREAMS__SES__PASSWORD_COMMAND": "x"}, "environment")):
        with pytest.raises(config.ConfigError) as refused:
            config.load(None if variables else file, environment=variables)
        assert str(refused.value) == (
            "upstreams.password_command: commands are no longer run; write the secret to a file and name it in "
            f"password_file (in {source})"
        )


def test_all_settings_that_no_longer_exist_are_named_at_once(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text("[delivery]\nidle_seconds = 3\n[frontends]\nprocesses = 2\n")
    with pytest.raises(config.ConfigError) as refused:
        config.load(file, environment={"POSTROAD_NOTICES__DIGEST_HOUR": "7"})
    assert str(refused.value).splitlines() == [
        f"delivery.idle_seconds: is fixed at 5 seconds; remove it (in {file})",
        f"frontends.processes: is http.processes now; rename it (in {file})",
        "notices.digest_hour: is fixed at 6; remove it (in environment)",
    ]


def test_before_an_upgrade_they_are_ignored_unless_they_name_the_database(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text('[delivery]\nidle_seconds = 3\nhostname = "mail.example.com"\n')
    assert config.load(file, environment={}, is_upgrade=True).delivery.hostname == "mail.example.com"
    file.write_text('[database]\nurl_command = ["pass", "url"]\n')
    with pytest.raises(config.ConfigError, match=r"database\.url_command: commands are no longer run"):
        config.load(file, environment={}, is_upgrade=True)


def test_the_names_of_an_installation_are_those_of_its_file_and_its_variables(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text('[delivery]\nidle_seconds = 3\n[[upstreams]]\nname = "ses"\nhost = "a.example"\n')
    variables = {"POSTROAD_HTTP__LISTEN": "127.0.0.1:1", "POSTROAD_UPSTREAMS__SES__PASSWORD": "x", "POSTROAD_PORT": "1"}
    assert config.names(file, environment=variables) == {
        "delivery.idle_seconds",
        "upstreams.name",
        "upstreams.host",
        "upstreams.password",
        "http.listen",
    }
    assert config.names(None, environment={}) == set()


def test_no_setting_is_removed_and_every_new_name_exists() -> None:
    sections = config.defaults()
    known = {f"{section}.{key}" for section, values in sections.items() if isinstance(values, dict) for key in values}
    removed = {change.subject: change.text for change in changes.shipped() if change.kind == changes.REMOVED}
    assert len(removed) > 60
    assert not known & removed.keys()
    for sentence in removed.values():
        assert set(re.findall(r"\b[a-z_]+\.[a-z_]+\b", sentence)) <= known
    changed = {change.subject for change in changes.shipped() if change.kind == changes.CHANGED}
    assert changed <= known
