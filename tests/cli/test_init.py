"""`postroad init`: from answers to an installation with its DNS records; twice is as good as once."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from postroad import config
from postroad.cli.installation import init as init_command
from tests.cli import cli_runner

HOST, DOMAIN = "mail.example.com", "example.com"
# The addresses of both families, also where the host has no IPv6 address yet.
ANY = "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"
ANSWERS = ("--hostname", HOST, "--account", "Shop", "--domain", DOMAIN, "--email", "ada@example.com")


@pytest.fixture(autouse=True)
def _address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host has an address that the tests know."""
    monkeypatch.setenv("POSTROAD_SOURCES__OUT__ADDRESS", "198.41.0.4")


def places(folder: Path) -> tuple[str, ...]:
    return ("--config", str(folder / "etc" / "postroad.toml"), "--data", str(folder / "data"))


def init(folder: Path, *words: str) -> dict[str, Any]:
    result = cli_runner.run("init", "--json", *places(folder), *words)
    assert (result.exit_code, result.stderr) == (0, "")
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


def addresses_of(settings: config.Settings) -> set[str]:
    """All addresses that the service listens on."""
    listeners = settings.http, settings.submission, settings.inbound
    keys = ("listen", "redirect_listen", "tls_listen")
    return {address for one in listeners for key in keys if (address := getattr(one, key, ""))}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "etc").iterdir()}


def test_a_new_installation_has_settings_key_account_domain_and_owner(tmp_path: Path) -> None:
    made = init(tmp_path, *ANSWERS)
    file = tmp_path / "etc" / "postroad.toml"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == {"postroad.toml": 0o600, "secret.key": 0o600}
    settings = config.load(file, environment={})
    assert (settings.delivery.hostname, settings.http.base_url) == (HOST, "https://mail.example.com")
    assert settings.database.url == f"sqlite:///{tmp_path}/data/postroad.db"
    assert len(config.installation_key(settings.security)) == 64
    assert (len(made["created"]), made["existing"]) == (6, [])
    assert made["link"].startswith("https://mail.example.com/password/")
    assert [f"{one['name']} {one['type']} {one['value']}" for one in made["host_records"]] == [
        "mail.example.com A 198.41.0.4",
        "4.0.41.198.in-addr.arpa PTR mail.example.com",
        "mail.example.com TXT v=spf1 a -all",
    ]
    shown = cli_runner.Installation(file).json("domain", "show", DOMAIN)["domain"]
    assert made["domains"] == [shown]
    (owner,) = cli_runner.Installation(file).json("user", "list")["users"]
    assert (owner["email"], owner["role"]) == ("ada@example.com", "owner")
    (operator,) = cli_runner.Installation(file).json("operator", "list")["operators"]
    assert operator["email"] == "ada@example.com"
    # Mail to postmaster and abuse reaches them.
    assert (settings.operator.email, settings.operator.sender) == ("ada@example.com", "postmaster@example.com")


def test_https_by_acme_needs_no_further_setting(tmp_path: Path) -> None:
    words = (*ANSWERS, "--https", "acme")
    init(tmp_path, *words)
    file = tmp_path / "etc" / "postroad.toml"
    settings = config.load(file, environment={})
    assert addresses_of(settings) == {f"{ANY}:{port}" for port in (443, 80, 587, 465, 25)}
    assert (settings.acme.names, settings.acme.email) == ((HOST,), "ada@example.com")
    assert (settings.http.base_url, settings.http.trusted_proxies) == (f"https://{HOST}", ())
    assert init(tmp_path, *words)["created"] == []
    said = cli_runner.sentence(cli_runner.run("init", *places(tmp_path), "--https", "proxy"))
    assert said == f"--https: {file} exists and has another value; change it there"


def test_certificates_are_ordered_only_on_request_because_that_accepts_terms(tmp_path: Path) -> None:
    init(tmp_path, *ANSWERS)
    settings = config.load(tmp_path / "etc" / "postroad.toml", environment={})
    assert (settings.acme.names, settings.submission.listen) == ((), "")
    assert settings.http.trusted_proxies == ("127.0.0.1", "::1")
    assert addresses_of(settings) == {settings.http.listen, f"{ANY}:25"}


def test_a_second_run_changes_nothing_and_prints_the_records_again(tmp_path: Path) -> None:
    first = init(tmp_path, *ANSWERS)
    before = contents(tmp_path)
    again = init(tmp_path, *ANSWERS)
    bare = init(tmp_path)
    assert contents(tmp_path) == before
    assert (again["created"], bare["created"]) == ([], [])
    assert again["domains"] == bare["domains"] == first["domains"]
    assert again["host_records"] == bare["host_records"] == first["host_records"]
    assert "link" not in again


def test_a_further_domain_and_owner_are_added_to_what_exists(tmp_path: Path) -> None:
    init(tmp_path, *ANSWERS)
    added = init(tmp_path, "--domain", "example.org", "--email", "bob@example.org")
    assert added["created"] == ["domain example.org", "owner bob@example.org"]
    assert [one["name"] for one in added["domains"]] == ["example.org"]


def test_an_interrupted_run_continues_with_the_key_that_it_wrote(tmp_path: Path) -> None:
    first = init(tmp_path, *ANSWERS)
    key = (tmp_path / "etc" / "secret.key").read_bytes()
    (tmp_path / "etc" / "postroad.toml").unlink()
    again = init(tmp_path, *ANSWERS)
    assert (tmp_path / "etc" / "secret.key").read_bytes() == key
    assert again["created"] == [f"settings {tmp_path}/etc/postroad.toml"]
    assert (again["account"], again["domains"]) == (first["account"], first["domains"])


def test_the_records_of_host_and_domain_are_printed_for_people(tmp_path: Path) -> None:
    printed = cli_runner.run("init", *places(tmp_path), *ANSWERS).stdout
    assert "    mail.example.com. IN A 198.41.0.4\n" in printed
    assert "    4.0.41.198.in-addr.arpa. IN PTR mail.example.com.\n" in printed
    assert '    _dmarc.example.com. IN TXT ( "v=DMARC1' in printed
    assert (
        "Once the service is running, open this link to choose a password for ada@example.com:\nhttps://mail.example.com/password/"
        in printed
    )


@pytest.mark.parametrize(
    "option, value, said",
    [
        ("--hostname", "vm", "--hostname: 'vm' is not a full host name"),
        ("--hostname", "192.0.2.7", "--hostname: '192.0.2.7' is not a full host name"),
        ("--domain", "example", "--domain: 'example' is not a domain name"),
        ("--email", "ada@", "--email: 'ada@' is not an email address"),
        ("--account", "a\tb", "--account: must be 1 to 100 characters on one line"),
        ("--database", "mysql://host/name", "database.url: write sqlite:///path/to/file.db or postgresql://"),
        ("--database", "postgresql://u:pw-7431@host/name", "set POSTROAD_DATABASE__URL instead"),
    ],
)
def test_bad_input_is_named_before_anything_is_written(tmp_path: Path, option: str, value: str, said: str) -> None:
    words = [*ANSWERS, option, value]
    sentence = cli_runner.sentence(cli_runner.run("init", *places(tmp_path), *words))
    assert said in sentence
    assert "pw-7431" not in sentence
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    words = (*places(tmp_path), *ANSWERS, "--data", str(tmp_path / "file" / "data"))
    said = cli_runner.sentence(cli_runner.run("init", *words))
    assert said.startswith(f"{tmp_path}/file cannot be written by this user; create {tmp_path}/file/data for it")
    assert not (tmp_path / "etc").exists()


def test_without_a_terminal_nothing_is_asked(tmp_path: Path) -> None:
    result = cli_runner.run("init", *places(tmp_path), "--account", "Shop", given="mail.example.com\n")
    assert result.exit_code == 2
    assert "Missing --hostname, --domain, --email; without a terminal, nothing can be asked." in result.stderr


def test_a_database_with_a_password_comes_from_the_environment(
    tmp_path: Path, clean_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROAD_DATABASE__URL", clean_postgres_url)
    init(tmp_path, *ANSWERS)
    monkeypatch.delenv("POSTROAD_DATABASE__URL")
    assert init(tmp_path)["created"] == []
    assert not (tmp_path / "data").exists()


def asked(answers: list[str], *words: str) -> str:
    """What `init` prints on a terminal on which these answers are typed."""
    ours, theirs = os.openpty()
    try:
        # Ends are closed, and input waits in the terminal until it is asked for.
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        return subprocess.run(
            [sys.executable, "-m", "postroad", "init", "--json", *words],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=cli_runner.TIMEOUT_SECONDS,
            check=True,
        ).stdout
    finally:
        os.close(ours)
        os.close(theirs)


def test_on_a_terminal_what_is_missing_is_asked(tmp_path: Path) -> None:
    result = asked([HOST, "", "Shop", "", "ada@example.com", "proxy", "y"], *places(tmp_path))
    own = f" [{name}]" if "." in (name := socket.gethostname()) else ""
    expected = [
        f"Public name of this host, such as mail.example.com{own}: ",
        f"Database URL [sqlite:///{tmp_path}/data/postroad.db]: ",
        "Name of the first account: ",
        "Domain that it sends from [example.com]: ",
        "Email address of its owner: ",
        "HTTPS with certificates of Let's Encrypt, whose terms you accept, or by a proxy on this host (acme, proxy): ",
        "Do you sell mail to others? If so, each recipient costs the account one credit [y/N]: ",
    ]
    questions, _, printed = result.partition("{")
    assert questions == "".join(expected)
    made = json.loads("{" + printed)
    assert (made["host_records"][0]["name"], made["domains"][0]["name"]) == (HOST, DOMAIN)
    assert config.load(tmp_path / "etc" / "postroad.toml", environment={}).credits.enabled


def test_a_bad_answer_is_asked_again_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    data, file = tmp_path / "data", tmp_path / "etc" / "postroad.toml"
    typed = [f"{tmp_path}/file/postroad.toml", str(file), "Example", str(data), "vm", HOST, "mysql://host/name", ""]
    typed += ["a\x01b", "Shop", "example", "", "ada@", "ada@example.com", "proxy", ""]
    questions, _, printed = asked(typed).partition("{")
    reasons = re.findall(r"Error: (.*)", questions)
    assert reasons == [
        f"{tmp_path}/file cannot be written by this user; create {tmp_path}/file for it, or choose another",
        "'Example' is not an absolute path; write one such as /var/lib/postroad",
        (
            "hostname: 'vm' is not a full host name; choose one such as mail.example.com, "
            "in a domain whose DNS you control"
        ),
        "database.url: write sqlite:///path/to/file.db or postgresql://user:password@host/name",
        "account: must be 1 to 100 characters on one line, without control characters",
        "domain: 'example' is not a domain name: the domain has no dot",
        "email: 'ada@' is not an email address: nothing follows the '@'",
    ]
    assert questions.count(f"Database URL [sqlite:///{data}/postroad.db]: ") == 2
    made = json.loads("{" + printed)
    assert (made["config"], made["domains"][0]["name"]) == (str(file), DOMAIN)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://postroad_owner:pw-7431@127.0.0.1:1/postroad",
        "postgresql://postroad%5Fowner:pw-7431@127.0.0.1:1/postroad",
        "postgresql://127.0.0.1:1/postroad?user=postroad_owner&password=pw-7431",
    ],
)
def test_the_owner_of_the_database_is_not_for_the_service(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROAD_DATABASE__URL", url)
    refused = cli_runner.run("init", "--yes", *places(tmp_path), *ANSWERS)
    assert refused.exit_code == 1
    assert "POSTROAD_DATABASE__URL: postroad_owner is for 'postroad migrate'" in refused.stderr
    assert not (tmp_path / "etc").exists()


@pytest.mark.parametrize(
    "url", ["postgresql://mail:pw[7431@127.0.0.1/postroad", "postgresql://mail:pw-7431@127.0.0.1:99999/postroad"]
)
def test_a_database_url_that_is_none_is_refused_with_what_to_write(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROAD_DATABASE__URL", url)
    refused = cli_runner.run("init", "--yes", *places(tmp_path), *ANSWERS)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "database.url: not a URL; in a password, write [ as %5B and ] as %5D, and a port from 1 to 65535" in (
        refused.stderr
    )
    assert "7431" not in refused.stderr
    assert not (tmp_path / "etc").exists()


CHOSEN = {"http": {"base_url": "https://mail.example.com"}, "delivery": {"hostname": "mail.example.com"}}
SUGGESTED = {"submission": {"listen": "[::]:587"}, "tls": {"key": "/etc/postroad/tls/privkey.pem"}}


def test_every_setting_has_its_comment() -> None:
    assert init_command.settings_text(CHOSEN, suggested={}).partition("\n\n")[2] == (
        "[http]\n"
        "# Public URL of the service, without a trailing slash. Empty: http:// or https:// and the listen address.\n"
        'base_url = "https://mail.example.com"\n'
        "\n"
        "[delivery]\n"
        "# Host name sent in EHLO. Its forward and reverse DNS should match this host. Empty: the system host name.\n"
        'hostname = "mail.example.com"\n'
    )


def test_what_is_suggested_is_ignored_until_its_first_character_is_removed() -> None:
    text = init_command.settings_text(CHOSEN, suggested=SUGGESTED)
    assert tomllib.loads(text) == CHOSEN
    assert tomllib.loads(re.sub(r"^#(?! )", "", text, flags=re.MULTILINE)) == {**CHOSEN, **SUGGESTED}


def test_what_is_suggested_for_a_section_that_is_there_is_in_it() -> None:
    suggested = {"delivery": {"mx_port": 2525}}
    text = init_command.settings_text(CHOSEN, suggested=suggested)
    assert text.count("[delivery]") == 1
    assert text.endswith("\n#mx_port = 2525\n")


def test_all_settings_together_are_the_defaults() -> None:
    sections = {name: table for name, table in config.defaults().items() if table}
    assert tomllib.loads(init_command.settings_text(sections, suggested={})) == sections
