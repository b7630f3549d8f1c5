"""The small faults that are put into a module, one at a time.

A comparison takes its neighbour, `and` becomes `or`, a number is one more, a text another, a condition its opposite, a
statement or a returned value is left out. Texts for people (messages of exceptions and of the log, f-strings,
docstrings) stay as they are, as do annotations and the options of classes and decorators.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PAIRS: Final = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.Break, ast.Continue)),
)
OPPOSITES: Final = dict(_PAIRS) | {second: first for first, second in _PAIRS} | {ast.Div: ast.Mult, ast.Mod: ast.Mult}
# Fields of nodes that say something about types, and calls that do.
TYPES: Final = frozenset({"annotation", "returns", "decorator_list", "bases"})
ABOUT_TYPES: Final = frozenset({"Literal", "cast", "NewType", "TypeVar", "Meta"})
LOG_METHODS: Final = frozenset({"debug", "info", "warning", "error", "exception"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one fault: below a parent, in one of its fields, a node has given way to another."""

    tree: ast.Module
    parent: ast.AST
    field: str
    old: ast.AST
    new: ast.AST

    @property
    def line(self) -> int:
        """An operator has no line of its own."""
        return int(getattr(self.old if hasattr(self.old, "lineno") else self.parent, "lineno", 0))

    @property
    def change(self) -> str:
        """What is different, in short; an operator is shown between its operands."""
        is_placed = hasattr(self.old, "lineno")
        before, after = (self.old, self.new) if is_placed else (self.parent, self.parent)
        return f"{_short(ast.unparse(before))} -> {_short(self._with_fault(after))}"

    @property
    def source(self) -> str:
        """The whole module."""
        return self._with_fault(self.tree)

    def _with_fault(self, node: ast.AST) -> str:
        before = getattr(self.parent, self.field)
        is_list = isinstance(before, list)
        after = [self.new if each is self.old else each for each in before] if is_list else self.new
        setattr(self.parent, self.field, after)
        try:
            return ast.unparse(node)
        finally:
            setattr(self.parent, self.field, before)


def mutants(source: str) -> list[Mutant]:
    """Every fault this module can get."""
    tree = ast.parse(source)
    return [Mutant(tree, parent, field, node, new) for parent, field, node in _behaviour(tree) for new in _faults(node)]


def _short(code: str) -> str:
    return " ".join(code.split())[:80]


def _behaviour(parent: ast.AST, *, is_raised: bool = False) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """All below a node that decides what the module does: the parent, the name of its field, the node."""
    for name, value in ast.iter_fields(parent):
        if name in TYPES or (name == "keywords" and isinstance(parent, ast.ClassDef)):
            continue
        for node in value if isinstance(value, list) else [value]:
            is_message = is_raised and isinstance(node, ast.Constant) and " " in str(node.value)
            if isinstance(node, ast.AST) and not is_message and not _is_about_types_or_for_people(node):
                yield parent, name, node
                yield from _behaviour(node, is_raised=is_raised or isinstance(node, ast.Raise))


def _is_about_types_or_for_people(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.keyword(arg="strict"):
            return True
        case ast.Subscript(value=ast.Name(id=name)) | ast.Call(func=ast.Name(id=name)):
            return name in ABOUT_TYPES
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in ABOUT_TYPES | LOG_METHODS
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name == "__all__"
        case _:
            return False


def _faults(node: ast.AST) -> Iterator[ast.AST]:
    """What may take the place of a node."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | bytes() as value):
            yield ast.Constant(_other(value))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() as test, body=body, orelse=orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.comprehension(ifs=[_, *_]):
            yield ast.comprehension(node.target, node.iter, [], node.is_async)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(None)
        case ast.Raise() | ast.Expr() | ast.AugAssign() | ast.Delete():
            yield ast.Pass()
        case _ if type(node) in OPPOSITES:
            yield OPPOSITES[type(node)]()


def _other(value: float | str | bytes) -> float | str | bytes:
    match value:
        case bool():
            return not value
        case str():
            return value + "x"
        case bytes():
            return value + b"x"
        case _:
            return value + 1
