"""The fuzzer itself: it finds what is planted, in the smallest form, and can be repeated by its seed."""

import random

import pytest

from postroad.protocol.text import strict_json
from tests.fuzz import campaign, corpus_files, target, targets, time_growth

TRIES = 3_000


class PlantedError(Exception):
    """What is to be found."""


def planted(data: bytes) -> None:
    """A reader with a mistake that only a value nested in an object can reach."""
    try:
        value = strict_json.read(data)
    except strict_json.JsonError:
        return
    if isinstance(value, dict) and any(isinstance(member, list) and member for member in value.values()):
        raise PlantedError


def run(
    work: target.Work, *, seed: int = 1, tries: int = TRIES, steps: tuple[int, int] = (5_000, 200)
) -> campaign.Campaign:
    chosen = target.Target(
        name="planted",
        open=target.plain(work),
        watches=("protocol/text/strict_json.py",),
        seeds=(b'{"a": "b"}', b"[1]"),
        steps=steps,
    )
    found = campaign.Campaign(chosen, work, random.Random(seed), (b'"a":', b"[1]"))
    found.begin([])
    found.go_on(lambda: found.tried >= tries)
    return found


def test_a_planted_mistake_is_found_and_made_as_small_as_it_can_be() -> None:
    findings = run(planted, seed=3).findings
    assert len(findings) == 1
    (site,), (data,) = findings, findings.values()
    assert site.startswith("PlantedError in test_campaign.py:")
    with pytest.raises(PlantedError):
        planted(data)
    assert len(data) <= len(b'{"":[0]}')


def test_the_same_seed_tries_the_same_inputs() -> None:
    def tried(seed: int) -> list[bytes]:
        seen: list[bytes] = []
        run(seen.append, seed=seed, tries=50)
        return seen

    assert tried(1) == tried(1)
    assert tried(1) != tried(2)


def test_more_steps_than_the_size_explains_are_a_finding() -> None:
    def work_too_much(data: bytes) -> None:
        for _ in data:
            strict_json.read(b"[0]")

    findings = run(work_too_much, tries=5, steps=(5, 1)).findings
    assert [site.partition(" ")[0] for site in findings] == ["TooManySteps"]


@pytest.mark.parametrize("power, findings", [(1, 0), (2, 5)])
def test_time_that_grows_faster_than_the_size_is_a_finding(
    power: int, findings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_growth, "_seconds", lambda _work, data: float(len(data)) ** power)
    turns = iter([False] * 5 + [True])
    found = time_growth.find(
        planted, starts=[b"[1]"], words=[b"word"], chance=random.Random(1), until=lambda: next(turns)
    )
    assert len(list(found)) == findings


def test_every_target_has_a_name_and_words_of_its_own() -> None:
    names = [each.name for each in targets.ALL]
    assert len(set(names)) == len(names)
    assert all(corpus_files.words(name) for name in names)
    assert {file.stem for file in corpus_files.WORDS.iterdir()} == set(names)
    assert {file.stem for file in corpus_files.CORPUS.iterdir()} <= set(names)
