"""What filters and verifiers that are not ours say of the mail that leaves: the rules it hits, and its signatures.

filter_rules.toml has the rules and the scores of each message of sample_mail.py. A program that is not installed is
skipped by its name; `apt-get install spamassassin rspamd opendkim libmail-dkim-perl` has them all.
"""

import asyncio
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import format_datetime, localtime
from pathlib import Path
from typing import Any, Final

import pytest

from postroad.mail.accept import submit_mime
from postroad.mail.signing import domain_keys
from postroad.model.mail import statuses
from postroad.storage.mail import domains
from tests import accepted_mail, dkim_verifiers, dns_server, smtp_peers
from tests.delivery import engine_harness, sample_mail, spam_filters
from tests.delivery.test_real_peers import present

NAMES: Final = (*sample_mail.REQUESTS, *sample_mail.MESSAGES)
TABLE: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("filter_rules.toml").read_text())


@dataclass(frozen=True, slots=True)
class Arrived:
    """Messages by their names, as the destination took them, and the record that their signatures need."""

    messages: Mapping[str, spam_filters.Taken]
    records: Mapping[str, str]

    def contents(self, *, tampered: bool = False) -> dict[str, bytes]:
        """The bytes of each; one letter of the subject is another one when somebody has tampered with them."""
        found = {name: message.content for name, message in self.messages.items()}
        return {
            name: content.replace(b"\r\nSubject: ", b"\r\nSubject: X") if tampered else content
            for name, content in found.items()
        }

    def zones(self) -> dns_server.Zones:
        """What DNS says of the sender: everything that filters look for is in order."""
        values = {name: _quoted(value) for name, value in self.records.items()}
        return {
            **{name: {"TXT": [value]} for name, value in values.items()},
            "example.com": {
                "TXT": [f'"v=spf1 ip4:{spam_filters.CLIENT_ADDRESS} -all"'],
                "MX": [f"10 {spam_filters.CLIENT_NAME}."],
                "A": [spam_filters.CLIENT_ADDRESS],
            },
            "_dmarc.example.com": {"TXT": ['"v=DMARC1; p=reject"']},
            spam_filters.CLIENT_NAME: {"A": [spam_filters.CLIENT_ADDRESS]},
            "25.0.18.198.in-addr.arpa": {"PTR": [f"{spam_filters.CLIENT_NAME}."]},
        }


def _quoted(value: str) -> str:
    """A TXT record: strings have at most 255 octets."""
    return " ".join(f'"{value[start : start + 200]}"' for start in range(0, len(value), 200))


async def _deliver(url: str, *, extensions: tuple[str, ...] = smtp_peers.ALL_EXTENSIONS) -> Arrived:
    """Send every message through the service to a destination that offers these."""
    async with engine_harness.delivering_to(url, extensions=extensions, clock=present(), sign=True) as (peer, harness):
        async with harness.ctx.store.reading() as tx:
            domain = await domains.by_name(tx, harness.account_id, accepted_mail.DOMAIN)
        assert domain is not None
        record = await domain_keys.record(harness.ctx, domain)
        messages = {}
        for name in NAMES:
            seen = await harness.settle(await _accept(harness, name))
            assert {one.status for one in seen.recipients} == {"delivered"}, name
            recipients = tuple(_path(command) for taken in peer.transactions for command in taken.recipients)
            assert len(recipients) == len(peer.transactions) == len(seen.recipients)
            (content,) = {taken.content for taken in peer.transactions}
            messages[name] = spam_filters.Taken(_path(peer.transactions[0].mail), recipients, content)
            peer.transactions.clear()
    return Arrived(messages, {record.name: record.value})


async def _accept(harness: engine_harness.EngineHarness, name: str) -> str:
    if name in sample_mail.REQUESTS:
        return await accepted_mail.accept(harness.ctx, harness.account_id, **sample_mail.request(name))
    content = sample_mail.message(name, date=format_datetime(localtime()))
    raw = statuses.RawMessage(
        "shop@example.com", ("ada@example.net",), content, "by mx.example.com", has_only_crlf=True
    )
    who = accepted_mail.caller_of(harness.account_id, credential_id=harness.account_id)
    accepted = await submit_mime.submit_mime(harness.ctx, who, raw, request_id="req_" + "0" * 28)
    return accepted.message_id


def _path(command: str) -> str:
    """The address of MAIL or RCPT."""
    return command.partition("<")[2].partition(">")[0]


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> Arrived:
    """All of the mail; delivered once for the tests of this file."""
    url = f"sqlite:///{tmp_path_factory.mktemp('filters')}/postroad.db"
    return asyncio.run(_deliver(url))


def test_dkimpy_accepts_every_message(arrived: Arrived) -> None:
    for name, content in arrived.contents().items():
        assert dkim_verifiers.dkimpy_accepts(content, arrived.records), name
    for name, content in arrived.contents(tampered=True).items():
        assert not dkim_verifiers.dkimpy_accepts(content, arrived.records), name


async def test_a_host_without_8bitmime_gets_ascii_and_the_signatures_hold(url: str) -> None:
    arrived = await _deliver(url, extensions=("PIPELINING", "SMTPUTF8"))
    for name, content in arrived.contents().items():
        assert content.isascii(), name
        assert dkim_verifiers.dkimpy_accepts(content, arrived.records), name


def test_mail_dkim_accepts_every_message(arrived: Arrived, tmp_path: Path) -> None:
    if not dkim_verifiers.has_mail_dkim():
        pytest.skip("Mail::DKIM (libmail-dkim-perl) is not installed")
    accepted = dkim_verifiers.mail_dkim_results(arrived.contents(), arrived.records, tmp_path)
    assert accepted == dict.fromkeys(NAMES, "pass")
    refused = dkim_verifiers.mail_dkim_results(arrived.contents(tampered=True), arrived.records, tmp_path)
    assert {name for name, result in refused.items() if result.startswith("fail")} == set(NAMES)


@dkim_verifiers.needs_opendkim
def test_opendkim_accepts_every_message(arrived: Arrived, tmp_path: Path) -> None:
    for name, content in arrived.contents().items():
        assert dkim_verifiers.opendkim_accepts(content, arrived.records, tmp_path), name


def _check(filter_: str, verdicts: Mapping[str, spam_filters.Verdict], *, version: str) -> None:
    """Each message hits the rules of the table and no others; under another version of the filter the bounds hold."""
    assert {name for name in NAMES if verdicts[name].score > TABLE[name][filter_]["at_most"]} == set(), verdicts
    if version == TABLE["versions"][filter_]:
        every = set(TABLE["every"][filter_])
        hit = {name: sorted(verdicts[name].rules.keys() - every) for name in NAMES}
        assert hit == {name: sorted(TABLE[name][filter_]["rules"]) for name in NAMES}
        assert [name for name in NAMES if not every <= verdicts[name].rules.keys()] == []


@pytest.mark.skipif(spam_filters.SPAMASSASSIN is None, reason="SpamAssassin is not installed")
async def test_spamassassin_finds_what_the_table_says(arrived: Arrived, tmp_path: Path) -> None:
    if not dkim_verifiers.has_mail_dkim():
        pytest.skip("SpamAssassin checks no signatures: Mail::DKIM (libmail-dkim-perl) is not installed")
    async with dns_server.running(arrived.zones()) as dns:
        version, verdicts = await spam_filters.spamassassin(arrived.messages, tmp_path, dns_port=dns.port)
    _check("spamassassin", verdicts, version=version)


@pytest.mark.skipif(spam_filters.RSPAMD is None, reason="rspamd is not installed")
async def test_rspamd_finds_what_the_table_says(arrived: Arrived, tmp_path: Path) -> None:
    async with (
        dns_server.running(arrived.zones()) as dns,
        spam_filters.rspamd(tmp_path, dns_port=dns.port) as running,
    ):
        verdicts = {name: await running.ask(message) for name, message in arrived.messages.items()}
    _check("rspamd", verdicts, version=running.version)


def test_the_table_has_every_message() -> None:
    assert TABLE.keys() - {"versions", "every"} == set(NAMES)
