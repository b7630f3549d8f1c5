"""Every input that the fuzzer kept, and every one that broke something, goes through its target again."""

import pytest

from tests.fuzz import keeping, target, targets


@pytest.mark.parametrize("chosen", targets.ALL, ids=lambda chosen: chosen.name)
def test_whatever_was_kept_is_read_as_its_target_says(chosen: target.Target) -> None:
    inputs = [*chosen.seeds, *keeping.kept(chosen.name), *keeping.crashes(chosen.name)]
    assert keeping.kept(chosen.name), "there is a corpus for every target"
    with chosen.open() as work:
        for data in inputs:
            try:
                work(data)
            except Exception as problem:
                raise AssertionError(f"{chosen.name} does not stand {data!r}: {problem!r}") from problem
