"""The completion scripts, and what they complete."""

import click.testing
import pytest

from postroad import cli
from tests.cli import cli_runner


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_the_command(shell: str) -> None:
    result = cli_runner.run("completion", shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"_POSTROAD_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.parametrize(
    "words, known",
    [("postroad mess", "plain,messages"), ("postroad template pu", "plain,push"), ("postroad show --u", "plain,--url")],
)
def test_commands_and_options_are_completed(words: str, known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    result = click.testing.CliRunner().invoke(
        cli.main, [], env={"_POSTROAD_COMPLETE": "bash_complete"}, prog_name="postroad"
    )
    assert known in result.stdout.splitlines()


def test_another_shell_is_a_usage_error() -> None:
    assert cli_runner.run("completion", "tcsh").exit_code == 2
