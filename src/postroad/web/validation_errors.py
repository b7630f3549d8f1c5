"""What is wrong with a document, in our own words: `to[3]: expected a string, got an integer`.

msgspec decodes, which is fast. Only when it refuses, this module walks the same types, finds the first problem and
names its place, so that no library's wording is exposed. Unknown members come first: a misspelt name explains the
missing one. The walk is bounded, because the client chooses the size of the document.
"""

import datetime as dt
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect

# Enough to find the first problem in any reasonable document; a hostile one gets the generic message.
MAX_STEPS: Final = 20_000
SHOWN_CHARACTERS: Final = 64
GENERIC_PROBLEM: Final = "does not match the documented schema; see /docs"

_NAMES: Final[dict[type, str]] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "a JSON object",
    type(None): "null",
}
_KINDS: Final[dict[type, tuple[type, ...]]] = {
    inspect.StrType: (str,),
    inspect.BoolType: (bool,),
    inspect.IntType: (int,),
    inspect.FloatType: (float, int),
    inspect.NoneType: (type(None),),
    inspect.DateTimeType: (str,),
    inspect.EnumType: (str,),
    inspect.ListType: (list,),
    inspect.VarTupleType: (list,),
    inspect.DictType: (dict,),
    inspect.StructType: (dict,),
}


def first_problem(document: object, kind: inspect.Type, *, root: str) -> str | None:
    """The first violation of the type by the document, as `place: problem`.

    None when the only problem is whole numbers written as fractions, which JSON Schema counts as integers.
    """
    return _Validator(root).check(document, kind, path="")


def whole_numbers(document: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The document with `4.0` as `4`."""
    match document:
        case float() if document.is_integer():
            return int(document)
        case list():
            return [whole_numbers(item) for item in document]
        case dict():
            return {name: whole_numbers(item) for name, item in document.items()}
    return document


def printable(name: str) -> str:
    """A client's own text, truncated and printable."""
    if not name:
        return "''"
    cut = name if len(name) <= SHOWN_CHARACTERS else f"{name[: SHOWN_CHARACTERS - 1]}…"
    return "".join(character if character.isprintable() else "�" for character in cut)


def choices(kind: inspect.Type) -> list[inspect.Type]:
    """The alternatives of a type, without annotations."""
    if isinstance(kind, inspect.Metadata):
        return choices(kind.type)
    return [bare for part in kind.types for bare in choices(part)] if isinstance(kind, inspect.UnionType) else [kind]


def literal_types(kind: inspect.LiteralType) -> tuple[type, ...]:
    return tuple(dict.fromkeys(type(value) for value in kind.values))


def unknown(name: str, known: Iterable[str], *, what: str, path: str = "") -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7) if len(name) <= SHOWN_CHARACTERS else []
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return f"{_member(path, printable(name))}: unknown {what}{hint}"


class _Validator:
    def __init__(self, root: str) -> None:
        self._root = root
        self._left = MAX_STEPS

    def check(self, value: object, kind: inspect.Type, *, path: str) -> str | None:
        """The first problem at or below this place."""
        self._left -= 1
        if self._left < 0:
            return self._located(path, GENERIC_PROBLEM)
        possible = choices(kind)
        if any(isinstance(choice, inspect.AnyType) for choice in possible):
            return None
        seen_as = int if isinstance(value, float) and value.is_integer() else type(value)
        fitting = [choice for choice in possible if seen_as in _types(choice)]
        if not fitting:
            return self._located(path, _mismatch(value, possible))
        return self._check_kind(value, fitting[0], path=path)

    def _check_kind(self, value: Any, kind: Any, *, path: str) -> str | None:  # noqa: ANN401 - any JSON value
        match kind:
            case inspect.StructType():
                return self._struct(value, kind, path=path)
            case inspect.DictType():
                return self._located_or_none(path, _count(value, kind, "member")) or self._mapping(
                    value, kind, path=path
                )
            case inspect.ListType() | inspect.VarTupleType():
                return self._located_or_none(path, _count(value, kind, "item")) or self._array(value, kind, path=path)
            case _:
                return self._located_or_none(path, _scalar(value, kind))

    def _struct(self, value: dict[str, Any], kind: inspect.StructType, *, path: str) -> str | None:
        fields = {field.encode_name: field for field in kind.fields}
        for name in value:
            if name not in fields and kind.forbid_unknown_fields:
                return unknown(name, fields, what="member", path=path)
        for name, field in fields.items():
            if value.get(name) is None:
                # `null` is the same as leaving a member out (docs/api.md, "Send").
                if field.required:
                    return self._located(_member(path, name), "is required")
                continue
            problem = self.check(value[name], field.type, path=_member(path, name))
            if problem:
                return problem
        return None

    def _mapping(self, value: dict[str, Any], kind: inspect.DictType, *, path: str) -> str | None:
        for name, item in value.items():
            place = f"{path}['{printable(name)}']"
            problem = self.check(name, kind.key_type, path=place) or self.check(item, kind.value_type, path=place)
            if problem:
                return problem
        return None

    def _array(self, value: list[Any], kind: inspect.ListType | inspect.VarTupleType, *, path: str) -> str | None:
        for index, item in enumerate(value):
            problem = self.check(item, kind.item_type, path=f"{path}[{index}]")
            if problem:
                return problem
        return None

    def _located_or_none(self, path: str, problem: str | None) -> str | None:
        return self._located(path, problem) if problem else None

    def _located(self, path: str, problem: str) -> str:
        return f"{path or self._root}: {problem}"


def _scalar(value: Any, kind: Any) -> str | None:  # noqa: ANN401 - any JSON value that holds no other
    match kind:
        case inspect.StrType():
            return _count(value, kind, "character") or _pattern(value, kind)
        case inspect.IntType() | inspect.FloatType():
            return _bounds(value, kind)
        case inspect.EnumType():
            return _one_of(value, [str(member.value) for member in kind.cls])
        case inspect.LiteralType():
            return _one_of(value, kind.values)
        case inspect.DateTimeType():
            return _timestamp(value)
    return None


def _types(kind: inspect.Type) -> tuple[type, ...]:
    """The types of JSON values that can be of a type; those of a Literal are strings or integers."""
    return literal_types(kind) if isinstance(kind, inspect.LiteralType) else _KINDS.get(type(kind), ())


def _member(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _mismatch(value: object, choices: list[inspect.Type]) -> str:
    wanted = [_NAMES[types[0]] for choice in choices if (types := _types(choice))]
    names = [name for name in dict.fromkeys(wanted) if name != _NAMES[type(None)]]
    return f"expected {' or '.join(names)}, got {_NAMES[type(value)]}"


def _count(value: Any, kind: Any, what: str) -> str | None:  # noqa: ANN401 - any kind with a length
    if kind.min_length is not None and len(value) < kind.min_length:
        return f"at least {kind.min_length} {what}{'' if kind.min_length == 1 else 's'}"
    if kind.max_length is not None and len(value) > kind.max_length:
        return f"at most {kind.max_length} {what}{'' if kind.max_length == 1 else 's'}"
    return None


def _pattern(value: str, kind: inspect.StrType) -> str | None:
    if kind.pattern is None or re.search(kind.pattern, value):
        return None
    return f"must match {kind.pattern}"


def _bounds(value: float, kind: inspect.IntType | inspect.FloatType) -> str | None:
    if kind.ge is not None and value < kind.ge:
        return f"at least {kind.ge:g}"
    if kind.gt is not None and value <= kind.gt:
        return f"more than {kind.gt:g}"
    if kind.le is not None and value > kind.le:
        return f"at most {kind.le:g}"
    if kind.lt is not None and value >= kind.lt:
        return f"less than {kind.lt:g}"
    return None


def _one_of(value: object, choices: Sequence[object]) -> str | None:
    if value in choices:
        return None
    return f"expected {'one of ' if len(choices) > 1 else ''}{', '.join(repr(choice) for choice in choices)}"


def _timestamp(value: str) -> str | None:
    try:
        msgspec.convert(value, dt.datetime)
    except msgspec.ValidationError:
        return "expected a time such as 2026-01-31T12:00:00Z"
    return None
