"""The mail servers that are measured beside us: each is a module that starts one, and says why it cannot.

All take mail by SMTP on loopback without AUTH and TLS, and either keep it or relay it to one next hop.
"""

import contextlib
import pathlib
import typing

from benchmarks.peers import chasquid, exim, haraka, next_hop, opensmtpd, postfix

REFERENCE = "postfix"


class Running(typing.Protocol):
    """A server that takes mail by SMTP on `port`; the processes below `pid` do the work."""

    @property
    def port(self) -> int:
        """Where it listens."""

    @property
    def pid(self) -> int:
        """Its first process."""

    def stored(self) -> int:
        """How many messages lie in its queue."""


class Peer(typing.Protocol):
    """What a module of a mail server has."""

    @property
    def NAME(self) -> str:  # noqa: N802  # a constant of the module
        """What tables call it; what it promises less than others stands in brackets."""

    def missing(self) -> str | None:
        """Why it cannot run here, with the remedy; None when it can."""

    def version(self) -> str:
        """The version that is measured."""

    def running(
        self, folder: pathlib.Path, *, relay: next_hop.Relay | None = None
    ) -> contextlib.AbstractContextManager[Running]:
        """An instance with an empty queue, which keeps or relays its mail."""


ALL: typing.Mapping[str, Peer] = {
    "postfix": postfix,
    "haraka": haraka,
    "exim": exim,
    "opensmtpd": opensmtpd,
    "chasquid": chasquid,
}


def gaps(names: typing.Iterable[str]) -> dict[str, str]:
    """Those that cannot run here, each with what that means for the report."""
    found = {}
    for name in names:
        if reason := ALL[name].missing():
            words = "there is nothing to compare with" if name == REFERENCE else f"{_title(name)} was not measured"
            found[name] = f"{words}. {reason}"
    return found


def facts(names: typing.Iterable[str]) -> dict[str, str]:
    """Their versions, as a report names them."""
    return {_title(name): ALL[name].version() for name in names}


def _title(name: str) -> str:
    return ALL[name].NAME.partition(" (")[0]
