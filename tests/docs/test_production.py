"""docs/production.md: steps in an order that works, and commands that say what they found."""

import re
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli import cli_runner

PAGE = (Path(__file__).parents[2] / "docs" / "production.md").read_text()


def test_the_line_for_cron_escapes_percent_signs() -> None:
    (line,) = re.findall(r"```\n(.+ postroad /usr/bin/postroad backup .+)\n```", PAGE)
    assert line == r'30 3 * * * postroad /usr/bin/postroad backup "/var/backups/postroad/$(date +\%F).db"'


def test_the_unit_of_the_new_version_is_installed_before_the_restart() -> None:
    upgrade = PAGE.partition("\n#### Upgrade with pip\n")[2].partition("```sh\n")[2].partition("```")[0].splitlines()
    units = ["/usr/local/share/postroad/postroad.service", "/usr/local/share/postroad/postroad.socket"]
    assert upgrade[-5:] == [
        "postroad deploy-files --force /usr/local/share/postroad",
        f"install -m 644 {' '.join(units)} /etc/systemd/system",
        "systemctl daemon-reload",
        "systemctl restart postroad",
        "postroad --version",
    ]


def test_the_test_of_port_25_tells_the_cases_apart() -> None:
    (script,) = re.findall(r"## Is port 25 blocked\?\n.+?```sh\n(.+?)```", PAGE, re.DOTALL)
    local = script.replace("gmail-smtp-in.l.google.com", "localhost")

    def says(words: str) -> tuple[str, str]:
        ran = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
        return ran.stdout, ran.stderr

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert says(local.replace("/25", f"/{port}")) == ("open\n", "")
    assert says(local.replace("/25", f"/{port}")) == ("blocked\n", "")
    assert says("getent() { return 2; }\n" + script) == ("no DNS\n", "")


def test_the_settings_of_the_page_fit_into_the_file_that_init_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROAD_CONFIG", str(file := tmp_path / "postroad.toml"))
    (words,) = re.findall(r"```sh\nrunuser -u postroad -- postroad (init .+?)```", PAGE, re.DOTALL)
    made = cli_runner.run(*words.replace("\\\n", "").split(), "--data", str(tmp_path))
    assert made.exit_code == 0, made.output
    (tmp_path / "relay.password").write_text("of the upstream")
    (tmp_path / "relay.password").chmod(0o600)
    blocks = re.findall(r"```toml\n(.+?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        text = file.read_text()
        if block.startswith("#"):
            assert text.count(f"\n{block}") == 1
            text = text.replace(f"\n{block}", f"\n{block[1:]}")
        else:
            text += "\n" + block.replace("/etc/postroad", str(tmp_path))
        file.write_text(text)
        checked = cli_runner.run("check-config")
        assert (checked.exit_code, checked.stderr) == (0, ""), block
    printed = cli_runner.run("check-config").stdout
    for line in ("security.operator_second_factor = true", 'metrics.listen = "127.0.0.1:9025"'):
        assert line in printed.splitlines()
    assert "smtp.relay.example" in printed
    assert printed.endswith("\n# The settings are valid.\n")
