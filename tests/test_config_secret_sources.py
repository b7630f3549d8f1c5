"""A secret may come from a command: without a shell, once, within limits, and never repeated in an error."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from postroad import config
from postroad.config import sources
from tests.cli import cli_runner

KEY = "printed: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm3Pg"
URL = "postgresql://mail:hunter2@127.0.0.1/postroad"


def load(**sections: Any) -> config.Settings:
    return config.load(environment={}, overrides=sections)


def printing(text: str, *, then: str = "") -> list[str]:
    return [sys.executable, "-c", f"import sys; sys.stdout.write({text!r}); sys.stdout.flush(); {then}"]


def refusal(command: list[str]) -> str:
    with pytest.raises(config.ConfigError) as refused:
        config.secret_key(load(security={"secret_key_command": command}).security)
    return str(refused.value)


def test_a_command_gives_the_installation_key() -> None:
    assert config.secret_key(load(security={"secret_key_command": printing(f"{KEY}\n")}).security) == KEY.encode()


def test_a_command_gives_the_database_url() -> None:
    assert load(database={"url_command": printing(f"{URL}\n")}).database.url == URL


def test_a_command_gives_the_password_of_an_upstream() -> None:
    given = {"name": "ses", "host": "smtp.example.com", "username": "AKIA"}
    (upstream,) = load(upstreams=[{**given, "password_command": printing(" hunter2 \n")}]).upstreams
    found = config.upstream_credentials(upstream)
    assert found is not None
    assert found.password == " hunter2 "
    (two_lines,) = load(upstreams=[{**given, "password_command": printing("hunter2\nhunter3")}]).upstreams
    with pytest.raises(config.ConfigError) as refused:
        config.upstream_credentials(two_lines)
    assert str(refused.value) == (
        f"upstreams.ses.password_command: {sys.executable} has to print the password, in one line"
    )


def test_a_command_may_be_in_a_variable_separated_by_commas() -> None:
    variables = {
        "POSTROAD_SECURITY__SECRET_KEY_COMMAND": f"printf,{KEY}",
        "POSTROAD_UPSTREAMS__SES__HOST": "smtp.example.com",
        "POSTROAD_UPSTREAMS__SES__USERNAME": "AKIA",
        "POSTROAD_UPSTREAMS__SES__PASSWORD_COMMAND": "pass,show,ses",
    }
    settings = config.load(environment=variables)
    assert config.secret_key(settings.security) == KEY.encode()
    assert settings.upstreams[0].password_command == ("pass", "show", "ses")


def test_no_shell_reads_a_command(tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = f"{KEY} $HOME; touch {made}"
    assert config.secret_key(load(security={"secret_key_command": ["printf", "%s", text]}).security) == text.encode()
    assert not made.exists()


def test_a_command_runs_once_in_a_process_and_a_failure_is_tried_again(tmp_path: Path) -> None:
    runs, ready = tmp_path / "runs", tmp_path / "ready"
    program = (
        "import sys; from pathlib import Path; runs, ready = map(Path, sys.argv[1:]); "
        f"runs.open('a').write('x'); print({KEY!r}) if ready.exists() else sys.exit(1)"
    )
    security = load(security={"secret_key_command": [sys.executable, "-c", program, str(runs), str(ready)]}).security
    with pytest.raises(config.ConfigError):
        config.secret_key(security)
    ready.touch()
    assert [config.secret_key(security) for _ in range(3)] == [KEY.encode()] * 3
    assert runs.read_text() == "xx"


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    program = str(tmp_path / "absent")
    assert refusal([program, "hunter2"]) == (
        f"security.secret_key_command: {program} cannot be started: No such file or directory"
    )
    assert refusal(["printf", "a\0b"]) == (
        "security.secret_key_command: printf cannot be started: an argument contains a NUL character"
    )


@pytest.mark.parametrize(
    "then, sentence",
    [
        (
            "sys.stderr.write('hunter2'); sys.exit(3)",
            "ended with exit code 3; run it by hand as the user of the service to see why",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "was ended by signal 9; run it by hand as the user of the service to see why",
        ),
        ("sys.stdout.buffer.write(bytes(range(128, 255)))", "printed something that is not text"),
        ("sys.stdout.write('x' * 70_000)", "printed more than 65536 bytes, the limit for a secret"),
        ("\nwhile True: sys.stdout.write('x' * 70_000)", "printed more than 65536 bytes, the limit for a secret"),
    ],
)
def test_a_command_that_fails_is_named_without_what_it_printed(then: str, sentence: str, capfd: Any) -> None:  # noqa: ANN401 - pytest's
    said = refusal(printing("hunter2", then=then))
    assert said == f"security.secret_key_command: {sys.executable} {sentence}"
    assert "hunter2" not in "".join(capfd.readouterr())


def test_a_command_that_prints_nothing_or_something_weak_is_refused() -> None:
    assert refusal(printing(" \n")).endswith("printed nothing; it must print the secret to standard output")
    weak = refusal(printing("hunter2"))
    assert weak.startswith("security.secret_key: missing or too weak")
    assert "hunter2" not in weak


@pytest.mark.parametrize("command", [["sleep", "600"], ["sh", "-c", "sleep 600 & echo hunter2"]])
def test_a_command_that_hangs_is_stopped_with_its_children(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "COMMAND_SECONDS", 0.5)
    assert refusal(command) == (
        f"security.secret_key_command: {command[0]} did not finish within 0 seconds, and was stopped"
    )


def test_a_secret_is_given_in_one_way_only() -> None:
    both = {
        ("security", "secret_key_file", "secret_key_command"): {"secret_key_file": "x", "secret_key_command": ["y"]},
        ("security", "secret_key", "secret_key_command"): {"secret_key": "x", "secret_key_command": ["y"]},
        ("database", "url", "url_command"): {"url": "sqlite:///x", "url_command": ["y"]},
        ("database", "url_file", "url_command"): {"url_file": "x", "url_command": ["y"]},
    }
    for (section, one, other), values in both.items():
        with pytest.raises(
            config.ConfigError, match=f"^{section}: {one} and {other} are both set; remove one of them$"
        ):
            load(**{section: values})


def test_a_variable_overrides_another_way_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text(
        '[database]\nurl_command = ["false"]\n[security]\nsecret_key_command = ["false"]\n', encoding="utf-8"
    )
    key = tmp_path / "key"
    key.write_text(KEY, encoding="utf-8")
    variables = {"POSTROAD_DATABASE__URL": URL, "POSTROAD_SECURITY__SECRET_KEY_FILE": str(key)}
    settings = config.load(file, environment=variables)
    assert settings.database.url == URL
    assert config.secret_key(settings.security) == KEY.encode()
    with pytest.raises(config.ConfigError, match=r"^database: url and url_command are both set; remove one of them$"):
        config.load(file, environment={**variables, "POSTROAD_DATABASE__URL_COMMAND": "false"})


def test_a_wrong_url_of_a_command_is_named_without_it() -> None:
    with pytest.raises(config.ConfigError) as refused:
        load(database={"url_command": printing("mysql://mail:hunter2@db/postroad")})
    assert str(refused.value).startswith("database.url_command: write sqlite:///path/to/file.db or postgresql://")
    assert "hunter2" not in str(refused.value)


def test_check_config_runs_the_command_and_shows_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    key, url = printing(KEY), printing(URL)
    file.write_text(f"[security]\nsecret_key_command = {key}\n[database]\nurl_command = {url}\n")
    shown = cli_runner.run("check-config", "--config", str(file))
    assert shown.exit_code == 0, shown.stderr
    assert 'security.secret_key = ""' in shown.stdout
    assert 'database.url = "postgresql://mail:***@127.0.0.1/postroad"' in shown.stdout
    file.write_text(f"[security]\nsecret_key_command = {printing(KEY, then='sys.exit(1)')}\n")
    failed = cli_runner.run("check-config", "--config", str(file))
    assert failed.exit_code != 0
    assert "security.secret_key_command" in failed.stderr
    assert KEY not in failed.stderr + failed.stdout


@pytest.mark.parametrize(
    "text, name",
    [
        ('[security]\nsecret_key_command = ["touch", "{}"]', "security.secret_key_command"),
        ('[database]\nurl_command = ["touch", "{}"]', "database.url_command"),
        (
            '[[upstreams]]\nname = "ses"\nhost = "smtp.example.com"\npassword_command = ["touch", "{}"]',
            "upstreams.password_command",
        ),
    ],
)
def test_root_runs_no_command_of_a_file_that_others_can_change(
    text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the settings belongs to the user of the service, which must not become root."""
    file, made = tmp_path / "postroad.toml", tmp_path / "made"
    file.write_text(text.format(made))
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(file, 65534, -1)
    owner = file.owner()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(config.ConfigError) as refused:
        config.secret_key(config.load(file, environment={}).security)
    assert str(refused.value) == (
        f"{file}: root runs no command of a file that {owner} can change ({name}). "
        f"Run the command as the user of the service: runuser -u {owner} -- postroad …"
    )
    file.write_text("[http]\n")
    config.load(file, environment={})
    file.write_text(text.format(made))
    if is_root:
        os.chown(file, 0, -1)
        file.chmod(0o664)
        with pytest.raises(config.ConfigError) as refused:
            config.load(file, environment={})
        assert str(refused.value) == (
            f"{file}: root runs no command of a file that others can change ({name}). Run chmod go-w {file}"
        )
    assert not made.exists()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    sources.read(file)


def test_root_runs_the_commands_of_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container."""
    file = tmp_path / "postroad.toml"
    file.write_text(f"[security]\nsecret_key_command = {printing(KEY)}\n")
    file.chmod(0o644)
    found = file.stat()
    own = os.stat_result((*found[:4], 0, *found[5:]))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fstat", lambda _: own)
    assert config.secret_key(config.load(file, environment={}).security) == KEY.encode()
