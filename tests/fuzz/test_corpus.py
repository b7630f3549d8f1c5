"""Every input that the fuzzer kept, and every one that broke something, goes through its target again."""

from pathlib import Path

import pytest

from tests.fuzz import corpus_files, line_coverage, target, targets


@pytest.mark.parametrize("chosen", targets.ALL, ids=lambda chosen: chosen.name)
def test_whatever_was_kept_is_read_as_its_target_says(chosen: target.Target) -> None:
    inputs = [*chosen.seeds, *corpus_files.kept(chosen.name), *corpus_files.crashes(chosen.name)]
    assert corpus_files.kept(chosen.name), "there is a corpus for every target"
    with chosen.open() as work:
        for data in inputs:
            try:
                work(data)
            except Exception as problem:
                raise AssertionError(f"{chosen.name} does not stand {data!r}: {problem!r}") from problem


def test_every_target_watches_what_exists() -> None:
    watched = {place for chosen in targets.ALL for place in chosen.watches}
    assert [place for place in sorted(watched) if not list(Path(line_coverage.ROOT).glob(f"{place}*"))] == []
