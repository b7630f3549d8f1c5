"""No annotation names what its class hides.

Since Python 3.14 the names in an annotation are looked up when somebody asks for it, in the class first (PEP 649). With
`holds: holds.Holds` that finds the attribute of the class, a default, a slot or a method, in place of the module. Older
versions of Python look earlier, find the module and notice nothing.
"""

import ast
from collections.abc import Iterator

import pytest

from tests import test_repository

IMPORT = "from postroad.storage import holds\n\n\n"
HIDDEN = {
    "a field like its module": "class Overview:\n    holds: list[holds.Hold]\n",
    "one with a default": "class Overview:\n    holds: 'str' = ''\n    first: holds.Hold | None = None\n",
    "a method like the module of a field": "class Overview:\n    first: holds.Hold\n    def holds(self): ...\n",
    "a method like the module of its result": "class Overview:\n    def holds(self) -> list[holds.Hold]: ...\n",
    "a method like the module of an argument": "class Overview:\n    async def holds(self, *, a: holds.Hold): ...\n",
    "a class attribute": "class Overview:\n    holds = 0\n    first: holds.Hold\n",
    "a class in a function": "def make():\n    if True:\n        class Overview:\n            holds: holds.Hold\n",
}
FINE = {
    "another name": "class Overview:\n    holds: list[stored_holds.Hold]\n",
    "an attribute of another module": "class Overview:\n    holds: storage.holds.Hold\n",
    "a variable in a method": "class Overview:\n    def all(self):\n        holds: list[holds.Hold] = []\n",
    "an argument": "class Overview:\n    def add(self, holds: holds.Hold): ...\n",
    "a function outside": "class Overview:\n    first: holds.Hold\n\ndef holds() -> holds.Hold: ...\n",
}


def classes(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """All of them, with those inside other statements."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield statement
        for part in ("body", "orelse", "finalbody"):
            yield from classes(getattr(statement, part, []))


def attributes(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a class gives the class, or that a slot of a field gives it later."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def annotations(statement: ast.stmt) -> Iterator[ast.expr]:
    match statement:
        case ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.FunctionDef(args=taken, returns=returned) | ast.AsyncFunctionDef(args=taken, returns=returned):
            every = [*taken.posonlyargs, *taken.args, taken.vararg, *taken.kwonlyargs, taken.kwarg]
            yield from (one.annotation for one in every if one and one.annotation)
            if returned:
                yield returned


def hidden_names(source: str) -> Iterator[str]:
    """Where an annotation names something that its own class has an attribute for."""
    for one in classes(ast.parse(source).body):
        own = {name for statement in one.body for name in attributes(statement)}
        for annotation in (annotation for statement in one.body for annotation in annotations(statement)):
            for part in ast.walk(annotation):
                if isinstance(part, ast.Name) and part.id in own:
                    yield f"{part.lineno}: {one.name} has an attribute {part.id}"


def test_no_annotation_names_what_its_class_hides() -> None:
    sources = ((name, source) for name, source in test_repository.python_files() if "class " in source)
    assert [f"{name}:{place}" for name, source in sources for place in hidden_names(source)] == []


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_hidden_name_is_found(source: str) -> None:
    assert len(list(hidden_names(IMPORT + source))) == 1


@pytest.mark.parametrize("source", FINE.values(), ids=FINE.keys())
def test_a_name_that_nothing_hides_is_fine(source: str) -> None:
    assert list(hidden_names(IMPORT + source)) == []
