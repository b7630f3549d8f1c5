"""Templates with sections: Mustache by its specification (github.com/mustache/spec), without set delimiters.

`{{name}}` and `{{{name}}}` or `{{& name}}` (not escaped in HTML), `{{#name}}…{{/name}}` for each item of a list, or if
the value is true, `{{^name}}…{{/name}}` if it is false, `{{.}}` for the item itself, `{{! comment}}`, `{{> part}}`.
False are `false`, `null`, `0`, `""` and an empty list. A name that is not found is an error here, also that of a
section; names, spaces and values are those of `placeholders.py`, which parses all templates without such tags.

A template comes from a stranger: nesting, steps and output are bounded, and a parse takes linear time.
"""

import html
import re
import types
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from postroad.protocol.text import placeholders

# Sections and parts within each other; a name is looked up in as many places.
MAX_DEPTH: Final = 16
# Texts and tags that are put out, and items of lists: about a tenth of a second.
MAX_STEPS: Final = 100_000
PART_PATTERN: Final = r"[a-z0-9_\-]{1,64}"
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}|\."
_TAG: Final = re.compile(
    rf"\{{\{{(?:(?P<kind>[#^/&]?) *(?P<name>{_NAME}) *\}}\}}|\{{ *(?P<raw>{_NAME}) *\}}\}}\}}"
    rf"|> *(?P<part>{PART_PATTERN}) *\}}\}}|(?P<comment>!).*?\}}\}})|\{{[{{%]",
    re.DOTALL,
)
_REST_OF_LINE: Final = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_LINE_START: Final = re.compile(r"^(?=[^\r\n])", re.MULTILINE)
# So many characters of a part are parsed in the time of a step.
_PARSED_CHARACTERS: Final = 16
_OTHER_LANGUAGE: Final = re.compile(r"\{\{[#^/] *(?:if|each|unless|with)\b")


class TooManySteps(placeholders.TemplateError):
    def __init__(self) -> None:
        super().__init__(f"the template takes more than {MAX_STEPS} steps with these values; use shorter lists")


class Variable(msgspec.Struct, frozen=True):
    name: str
    is_raw: bool


class Section(msgspec.Struct, frozen=True):
    """Nodes for each item of a list, or once, or not at all."""

    name: str
    is_inverted: bool
    nodes: "tuple[Node, ...]"


class Part(msgspec.Struct, frozen=True):
    """Another template, each of whose lines is indented like the tag."""

    alias: str
    indent: str


Node = str | Variable | Section | Part


class Template(msgspec.Struct, frozen=True):
    nodes: tuple[Node, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What needs a value however the sections turn out: every name outside of one, and the names of sections."""
        used = (node.name for node in self.nodes if isinstance(node, Variable | Section))
        return tuple(dict.fromkeys(name for name in used if name != "."))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that it names, each once."""
        return tuple(dict.fromkeys(node.alias for node in _walk(self.nodes) if isinstance(node, Part)))

    def render(
        self, values: object, *, escape_html: bool, parts: Mapping[str, str] = types.MappingProxyType({})
    ) -> str:
        """The text with its sections. `parts` has the sources of the templates that it names, and that those name."""
        renderer = _Renderer(parts, escape_html=escape_html)
        renderer.render(self.nodes, (values,), depth=0)
        if renderer.missing:
            raise placeholders.MissingValues(tuple(renderer.missing))
        return "".join(renderer.pieces)


AnyTemplate = placeholders.Template | Template


def parse(source: str) -> AnyTemplate:
    """The template, or a `SyntaxProblem` that quotes the first mistake."""
    try:
        return placeholders.parse(source)
    except placeholders.TemplateError:
        return Template(_Parser(source).parse())


def parts_of(template: AnyTemplate) -> tuple[str, ...]:
    """The parts that a template names, each once."""
    return template.parts if isinstance(template, Template) else ()


def _walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, Section):
            yield from _walk(node.nodes)


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._end = 0
        self._open: list[tuple[re.Match[str], list[Node]]] = []
        self._nodes: list[Node] = []

    def parse(self) -> tuple[Node, ...]:
        for match in _TAG.finditer(self._source):
            if match.start() >= self._end:
                self._tag(match)
        if self._open:
            match, _ = self._open[-1]
            line, column = placeholders.position(self._source, match.start())
            raise placeholders.SyntaxProblem(
                f"{match[0]!r} in line {line} is not closed, expected {{{{/{match['name']}}}}}",
                line=line,
                column=column,
            )
        self._text(self._source[self._end :])
        return tuple(self._nodes)

    def _tag(self, match: re.Match[str]) -> None:
        start, end, indent = match.start(), match.end(), ""
        if match["part"] or match["comment"] or (match["kind"] or "&") in "#^/":
            start, end, indent = self._whole_line(start, end)
        self._text(self._source[self._end : start])
        self._end = end
        if match["part"]:
            self._nodes.append(Part(match["part"], indent))
        elif match["raw"]:
            self._nodes.append(Variable(match["raw"], is_raw=True))
        elif match["name"] and match["kind"] in ("", "&"):
            self._nodes.append(Variable(match["name"], is_raw=match["kind"] == "&"))
        elif match["name"]:
            self._section(match)
        elif not match["comment"]:
            raise self._problem(match)

    def _section(self, match: re.Match[str]) -> None:
        if match["kind"] != "/":
            if len(self._open) == MAX_DEPTH:
                raise self._wrong(match, f"is nested too deeply; sections may be at most {MAX_DEPTH} levels deep")
            self._open.append((match, self._nodes))
            self._nodes = []
            return
        if not self._open:
            raise self._wrong(match, "closes a section that is not open")
        opening, before = self._open.pop()
        if opening["name"] != match["name"]:
            line, _ = placeholders.position(self._source, opening.start())
            raise self._wrong(match, f"does not close {opening[0]!r} of line {line}, which is open")
        before.append(Section(match["name"], opening["kind"] == "^", tuple(self._nodes)))
        self._nodes = before

    def _whole_line(self, start: int, end: int) -> tuple[int, int, str]:
        """A tag that is alone on its line takes the line with it; what is before it is the indentation."""
        line_start = self._source.rfind("\n", self._end, start) + 1
        if not line_start:
            line_start = self._end
            if line_start and self._source[line_start - 1] != "\n":
                return start, end, ""
        indent = self._source[line_start:start]
        rest = _REST_OF_LINE.match(self._source, end)
        if rest is None or indent.strip(" \t"):
            return start, end, ""
        return line_start, rest.end(), indent

    def _text(self, text: str) -> None:
        if text:
            self._nodes.append(text)

    def _problem(self, match: re.Match[str]) -> placeholders.SyntaxProblem:
        if _OTHER_LANGUAGE.match(self._source, match.start()):
            return placeholders.not_a_placeholder(
                self._source,
                start=match.start(),
                expected="write {{#name}} … {{/name}} for a condition or a loop, and {{^name}} for the opposite",
            )
        return placeholders.not_a_placeholder(self._source, start=match.start())

    def _wrong(self, match: re.Match[str], problem: str) -> placeholders.SyntaxProblem:
        line, column = placeholders.position(self._source, match.start())
        return placeholders.SyntaxProblem(f"{match[0]!r} in line {line} {problem}", line=line, column=column)


class _Renderer:
    """One rendering: the text so far, and what is left of its bounds."""

    def __init__(self, parts: Mapping[str, str], *, escape_html: bool) -> None:
        self.pieces: list[str] = []
        self._parsed: dict[Part, tuple[Node, ...]] = {}
        self.missing: dict[str, None] = {}
        self._parts = parts
        self._escapes = escape_html
        self._steps = MAX_STEPS
        self._characters = placeholders.MAX_RENDERED_CHARACTERS

    def render(self, nodes: tuple[Node, ...], stack: tuple[object, ...], *, depth: int) -> None:
        """Put out nodes. `stack` is where names are looked up, the innermost last."""
        if depth > MAX_DEPTH:
            raise placeholders.TemplateError(
                f"sections and parts are nested more than {MAX_DEPTH} deep with these values"
            )
        for node in nodes:
            self._step()
            match node:
                case str():
                    self._put(node)
                case Variable():
                    self._variable(node, stack)
                case Section():
                    self._section(node, stack, depth=depth)
                case Part():
                    if node not in self._parsed:
                        self._parsed[node] = self._parse(node)
                    self.render(self._parsed[node], stack, depth=depth + 1)

    def _variable(self, node: Variable, stack: tuple[object, ...]) -> None:
        value = _find(node.name, stack)
        if value is None or value is _ABSENT:
            self.missing[node.name] = None
            return
        text = placeholders.text_of(node.name, value)
        self._put(html.escape(text, quote=True) if self._escapes and not node.is_raw else text)

    def _section(self, node: Section, stack: tuple[object, ...], *, depth: int) -> None:
        value = _find(node.name, stack)
        if value is _ABSENT:
            self.missing[node.name] = None
        elif node.is_inverted:
            if _is_false(value):
                self.render(node.nodes, stack, depth=depth + 1)
        elif isinstance(value, list | tuple):
            for item in value:
                self._step()
                self.render(node.nodes, (*stack, item), depth=depth + 1)
        elif not _is_false(value):
            self.render(node.nodes, (*stack, value), depth=depth + 1)

    def _parse(self, node: Part) -> tuple[Node, ...]:
        """Every line of a part is indented like its tag, before it is parsed (specs/partials.yml)."""
        source = self._parts.get(node.alias)
        if source is None:
            raise placeholders.TemplateError(f"the part '{node.alias}' does not exist")
        # Counted before it is made: a long indentation before each of many short lines would fill the memory.
        indented = len(source) + len(node.indent) * (source.count("\n") + 1)
        self._step(indented // _PARSED_CHARACTERS)
        return _Parser(_LINE_START.sub(node.indent, source) if node.indent else source).parse()

    def _put(self, text: str) -> None:
        self._characters -= len(text)
        if self._characters < 0:
            raise placeholders.RenderedTooLarge
        self.pieces.append(text)

    def _step(self, count: int = 1) -> None:
        self._steps -= count
        if self._steps < 0:
            raise TooManySteps


_ABSENT: Final = object()


def _find(name: str, stack: tuple[object, ...]) -> object:
    """The value of a name in the innermost place that has it or, for a name with dots, the first part of it."""
    if name == ".":
        return stack[-1]
    head, *rest = name.split(".")
    for place in reversed(stack):
        if isinstance(place, Mapping):
            if name in place:
                return place[name]
            if rest and head in place:
                return _member(place[head], rest)
    return _ABSENT


def _member(value: object, path: list[str]) -> object:
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return _ABSENT
        value = value[key]
    return value


def _is_false(value: object) -> bool:
    return value is None or value is False or (isinstance(value, str | int | float | list | tuple) and not value)
