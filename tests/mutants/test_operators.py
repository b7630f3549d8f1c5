"""Each kind of fault is made where it belongs, and texts for people and types are left alone."""

import pytest

from tests.mutants import __main__ as command
from tests.mutants import campaign, operators


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in operators.mutants(source)]


@pytest.mark.parametrize(
    "source, made",
    [
        ("x = a < b <= c", ["a < b <= c -> a <= b <= c", "a < b <= c -> a < b < c"]),
        ("x = a in b", ["a in b -> a not in b"]),
        ("x = a is not b", ["a is not b -> a is b"]),
        ("x = a and b", ["a and b -> a or b"]),
        ("x = a +\\\n b", ["a + b -> a - b"]),
        ("x = not a", ["not a -> a"]),
        ("x = 1, 1.5, True, 'ü', b'y'", ["1 -> 2", "1.5 -> 2.5", "True -> False", "'ü' -> 'üx'", "b'y' -> b'yx'"]),
        ("x = [a for a in b if c]", ["[a for a in b if c] -> [a for a in b]"]),
        ("x = a if b else c", ["a if b else c -> c if b else a"]),
        ("def f(a: int = 3) -> int:\n    return a", ["3 -> 4", "return a -> return"]),
        ("while a:\n    break", ["break -> continue"]),
        ("if a:\n    raise E('for people')", ["if a: raise E('for people') -> if not a: raise E('for people')"]),
        ("x += y", ["x += y -> pass"]),
        ("f(x)", ["f(x) -> pass"]),
    ],
)
def test_a_fault_is_made(source: str, made: list[str]) -> None:
    assert set(made) <= set(changes(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""Says what it is."""',
        "x = f'{a}: {1}'",
        "x: Literal['a']",
        "X = Literal['a', 'b']",
        "@dataclass(frozen=True)\nclass A(Base, kind=1): ...",
        "x = zip(a, b, strict=True)",
        "x = self._log.info('an_event', count=1)",
        "__all__ = ['x']",
        "def f(): return",
        "def f(): return None",
    ],
)
def test_what_has_no_behaviour_is_left_alone(source: str) -> None:
    assert changes(source) == []


def test_a_mutant_has_its_line_and_differs_in_one_place() -> None:
    mutants = operators.mutants("# ü\nx = 'ü' < b\ny = 2\n")
    assert [(mutant.line, mutant.source) for mutant in mutants] == [
        (2, "x = 'üx' < b\ny = 2"),
        (2, "x = 'ü' <= b\ny = 2"),
        (3, "x = 'ü' < b\ny = 3"),
    ]


def test_a_module_is_covered_by_its_own_tests_and_then_by_those_around_it() -> None:
    own, others = campaign.stages(campaign.SOURCE / "model" / "delivery" / "retry.py")
    assert [file.name for file in own] == ["test_retry.py"]
    assert "test_adaptive_rate.py" in {file.name for file in others}
    (users,) = campaign.stages(campaign.SOURCE / "services" / "operations" / "certificates.py")
    assert campaign.TESTS / "roles" / "test_acme.py" in users


def test_every_group_has_modules() -> None:
    paths = [path for paths in command.GROUPS.values() for path in paths]
    assert [path for path in paths if not (campaign.SOURCE / path).exists()] == []
