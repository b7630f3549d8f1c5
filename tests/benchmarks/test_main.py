"""`python -m benchmarks` runs what it is asked to run, goes on when one fails, and says how each ended."""

import pathlib
import sys

import pytest

from benchmarks import __main__ as runner
from benchmarks import chapters

ROOT = pathlib.Path(runner.__file__).parents[1]


def test_an_unknown_name_is_refused_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "accepts"])
    with pytest.raises(SystemExit, match="2"):
        runner.main()
    assert "there is no benchmark accepts; there are accept, submission" in capsys.readouterr().err


def test_one_that_fails_stops_no_other_and_the_end_names_both(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = {"accept": "raise SystemExit(1)", "submission": "raise SystemExit(7)", "deliver": ""}
    monkeypatch.setattr(
        runner, "command", lambda chapter, **_: [sys.executable, "-c", programs[chapter.name]], raising=True
    )
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--output", str(tmp_path), *programs])
    assert runner.main() == 7
    printed = capsys.readouterr().out
    assert "accept: a message was refused, lost, doubled or late" in printed
    assert "submission: failed with 7" in printed
    assert "deliver: all is well" in printed


def test_one_that_hangs_is_ended(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "MAX_SECONDS", 0.1)
    monkeypatch.setattr(runner, "GRACE_SECONDS", 5.0)
    monkeypatch.setattr(runner, "command", lambda *_, **__: ["sleep", "600"])
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--output", str(tmp_path), "accept"])
    assert runner.main() < 0
    assert "accept: failed with -" in capsys.readouterr().out


def test_every_benchmark_has_a_target_that_runs_it() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for chapter in chapters.ALL:
        assert f"\n{chapter.target.removeprefix('make ')}:" in makefile
        assert f"-m benchmarks.{chapter.name} " in makefile
