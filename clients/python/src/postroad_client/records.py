"""Values with names: frozen dataclasses whose arguments are given by name, in every Python from 3.9 on."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Tell type checkers, and nobody else, that what follows makes dataclasses."""
        return lambda decorated: decorated


T = TypeVar("T")


if sys.version_info >= (3, 10):
    _dataclass = dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
else:

    def _dataclass(cls: type[T]) -> type[T]:
        made = dataclasses.dataclass(frozen=True)(cls)
        initialise = made.__init__

        def by_name(self: T, **members: object) -> None:
            initialise(self, **members)

        made.__init__ = by_name
        return made


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that takes keywords only."""
    return _dataclass(cls)
