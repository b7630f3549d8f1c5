"""What every route takes, read off the tables of routes: no misspelt member is dropped, and `null` means absent."""

import typing
from collections.abc import Iterator

import msgspec
import pytest
import structlog
from msgspec import inspect

from postroad import config, context, extensions
from postroad.api import extension_api
from postroad.api import routes as api_routes
from postroad.api.operator import routes as operator_routes
from postroad.api.v1 import inbox
from postroad.dashboard import application as dashboard
from postroad.dashboard.framework import site as sites
from postroad.services.messages import dev_inbox
from postroad.services.operations import operator_jobs, operator_state
from postroad.web import routing, validation_errors

Route = routing.Route[context.Context]


def problems(kind: inspect.Type) -> Iterator[str]:
    if not isinstance(kind, inspect.StructType):
        yield f"{kind}: is not a Struct"
        return
    if not kind.forbid_unknown_fields:
        yield f"{kind.cls.__name__}: needs forbid_unknown_fields"
    for field in kind.fields:
        choices = validation_errors.choices(field.type)
        if not field.required and not any(isinstance(one, inspect.NoneType | inspect.AnyType) for one in choices):
            yield f"{kind.cls.__name__}.{field.name}: is optional and needs to take None"
        for one in choices:
            nested = one.item_type if isinstance(one, inspect.ListType | inspect.VarTupleType) else one
            if isinstance(nested, inspect.StructType):
                yield from problems(nested)


def routes() -> list[Route]:
    mail = dev_inbox.Inbox(clock=lambda: 0, entropy=bytes)
    state = operator_state.OperatorState(operator_jobs.Jobs(structlog.get_logger()))
    site = sites.build(config.load(environment={}), mail=mail, is_stopping=lambda: False, operator_state=state)
    compatible = [route for api in extensions.parts("apis", extension_api.HttpApi) for route in api.prefixed]
    return [
        *api_routes.ROUTES,
        *inbox.routes(mail),
        *operator_routes.build(state),
        *compatible,
        *dashboard.routes(site),
    ]


def test_no_route_drops_a_misspelt_member_or_mishandles_null() -> None:
    taken = [kind for route in routes() for kind in (route.body, route.query) if kind not in (None, bytes)]
    assert len(taken) > 200
    structs = [info for kind in taken if not isinstance(info := inspect.type_info(kind), inspect.ListType)]
    assert [problem for info in structs for problem in problems(info)] == []


class Loose(msgspec.Struct):
    text: str


class Nullless(msgspec.Struct, forbid_unknown_fields=True):
    tags: list[str] = []


class Nested(msgspec.Struct, forbid_unknown_fields=True):
    items: list[Loose]


@pytest.mark.parametrize(
    "body, problem",
    [
        (Loose, "Loose: needs forbid_unknown_fields"),
        (Nullless, "Nullless.tags: is optional and needs to take None"),
        (Nested, "Loose: needs forbid_unknown_fields"),
        (dict, "is not a Struct"),
    ],
)
def test_a_struct_that_would_do_so_is_found(body: typing.Any, problem: str) -> None:  # noqa: ANN401 - any type
    (found,) = problems(inspect.type_info(body))
    assert found.endswith(problem)
