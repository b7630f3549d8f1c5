"""`postroad domain`."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from postroad import context
from postroad.cli.server import domains as domain_commands
from postroad.model.domains import domain_records
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from tests import dns_server
from tests.cli.cli_runner import Installation
from tests.services import domain_zones


def light(domain: dict[str, Any]) -> dict[str, Any]:
    """A domain as lists show it."""
    return {name: value for name, value in domain.items() if name not in {"records", "warmup"}}


def test_a_domain_is_registered_and_proven_only_when_the_operator_says_so(installation: Installation) -> None:
    proven = installation.json("domain", "add", "Example.ORG", "--verified")["domain"]
    claimed = installation.json("domain", "add", "Example.NET")["domain"]
    assert (proven["name"], proven["verified"]) == ("example.org", True)
    assert (claimed["name"], claimed["verified"]) == ("example.net", False)
    assert installation.json("domain", "list")["domains"] == [light(proven), light(claimed)]


def test_the_record_to_publish_is_shown_for_people_and_for_programs(installation: Installation) -> None:
    added = installation.json("domain", "add", "Bücher.example")["domain"]
    record = added["dkim"]
    assert record["name"] == f"{record['selector']}._domainkey.xn--bcher-kva.example"
    assert record["type"] == "TXT"
    assert record["value"].startswith("v=DKIM1; k=rsa; p=")
    assert installation.json("domain", "show", "bücher.EXAMPLE")["domain"] == added
    assert installation.json("domain", "list")["domains"] == [light(added)]
    lines = installation.text("domain", "show", "bücher.example").splitlines()
    line = lines[lines.index("DKIM: pending. Not checked yet.") + 1].strip()
    assert line.startswith(f'{record["name"]}. IN TXT ( "v=DKIM1; ')
    assert "".join(line.split('"')[1::2]) == record["value"]


def test_a_registered_domain_is_verified_by_any_writing_of_its_name(installation: Installation) -> None:
    domain = installation.json("domain", "add", "bücher.example")["domain"]
    for name in ("bücher.example", "xn--bcher-kva.example", "BÜCHER.example"):
        verified = installation.json("domain", "verify", name)["domain"]
        assert (verified["id"], verified["verified"]) == (domain["id"], True)


def test_an_unregistered_or_impossible_domain_is_refused_with_a_sentence(installation: Installation) -> None:
    assert installation.refusal("domain", "show", "example.org") == "example.org is not registered by this account"
    assert installation.refusal("domain", "verify", "example.org") == "example.org is not registered by this account"
    assert installation.refusal("domain", "verify", "no spaces")
    assert installation.refusal("domain", "add", "a..example").startswith("name: ")


def test_an_operator_sees_who_has_verified_a_domain_and_revokes_it(installation: Installation) -> None:
    other = installation.json("account", "create", "--name", "Other")["account"]["id"]
    (mine,) = [one["id"] for one in installation.json("account", "list")["accounts"] if one["id"] != other]
    installation.text("domain", "add", "example.org", "--account", other)
    installation.text("domain", "add", "example.org", "--account", mine, "--verified")
    refused = installation.refusal("domain", "verify", "Example.org", "--account", other)
    assert refused.startswith("name: example.org is verified by another account: ")
    assert f"({mine}); remove it there with 'postroad domain remove'" in refused
    kept = installation.refusal("domain", "remove", "example.org", "--account", mine)
    assert kept.endswith("add --yes to confirm")
    assert installation.json("domain", "show", "example.org", "--account", mine)["domain"]["verified"]
    removed = installation.json("domain", "remove", "Example.ORG", "--account", mine, "--yes")
    assert removed == {"removed": "example.org"}
    assert installation.json("domain", "list", "--account", mine) == {"domains": []}
    assert installation.json("domain", "verify", "example.org", "--account", other)["domain"]["verified"]


def test_a_domain_that_is_not_verified_is_removed_at_once(installation: Installation) -> None:
    installation.text("domain", "add", "example.org")
    said = installation.text("domain", "remove", "example.org")
    assert said == "example.org and its DKIM key are removed from the account.\n"
    assert installation.refusal("domain", "remove", "example.org") == "example.org is not registered by this account"


@pytest.fixture
def server() -> Iterator[dns_server.DnsServer]:
    """A name server in a thread: commands have an event loop of their own."""
    running: list[dns_server.DnsServer] = []
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with dns_server.running({}) as server:
            running.append(server)
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait(60)
    try:
        yield running[0]
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def asking(installation: Installation, server: dns_server.DnsServer) -> Installation:
    """An installation that asks this name server, with a domain."""
    settings = '[domains]\nspf = "include:spf.example.net"\n[delivery]\nhostname = "mail.example.net"\n'
    with installation.file.open("a") as file:
        file.write(f'{settings}resolvers = ["{server.address}"]\n')
    installation.text("domain", "add", domain_zones.DOMAIN)
    return installation


def publish(installation: Installation, server: dns_server.DnsServer) -> None:
    async def put(ctx: context.Context) -> None:
        (account,) = await accounts.page(ctx, "", 1)
        await domain_zones.publish_all(ctx, server, await domains.by_name(ctx, account.id, domain_zones.DOMAIN))

    installation.ask(put)


def test_a_check_says_what_is_missing_and_fails_until_it_is_there(
    asking: Installation, server: dns_server.DnsServer
) -> None:
    server.zones["bounces.example.com"] = {"TXT": ['"v=spf1 mx -all"'], "MX": ["10 mx.example.org."]}
    result = asking.run("domain", "check", "Example.com")
    assert (result.exit_code, result.stderr) == (1, "Server: http://127.0.0.1:8025, on this host\n")
    lines = result.stdout.splitlines()
    assert (lines[0][:17], lines[0][-15:]) == ("example.com (dom_", "): not verified")
    assert lines[1:3] == [
        "Warm-up: 0 of 200 recipients used today. The limit grows the day after you use at least half of it.",
        "DNS records:",
    ]
    assert lines[3] == "DKIM: missing. No TXT record with this name; add it."
    assert "._domainkey.example.com. IN TXT ( " in lines[4]
    assert lines[5] == "SPF: wrong. Found v=spf1 mx -all; add include:spf.example.net before -all."
    assert lines[6] == '    bounces.example.com. IN TXT ( "v=spf1 mx include:spf.example.net -all" )'
    assert lines[7].startswith("Return path: wrong. Found mx.example.org, which is not this service; ")
    assert lines[8] == "    bounces.example.com. IN MX 10 mail.example.net."
    assert lines[9].startswith("DMARC (recommended): missing. ")
    assert lines[10] == '    _dmarc.example.com. IN TXT ( "v=DMARC1; p=none; rua=mailto:reports@bounces.example.com" )'
    assert lines[11] == "DKIM with Ed25519 (optional): missing. No TXT record with this name; add it."
    publish(asking, server)
    lines = asking.text("domain", "check", "example.com").splitlines()
    assert lines[0].endswith("): verified by DNS")
    assert [line.partition(".")[0] for line in lines[3:-1]] == [
        "DKIM: ok",
        "SPF: ok",
        "Return path: ok",
        "DMARC (recommended): ok",
        "DKIM with Ed25519 (optional): missing",
    ]
    # Whoever moves the zone still finds everything to copy.
    assert asking.text("domain", "show", "example.com").count(" IN ") == 5


def test_advice_alone_does_not_make_a_check_fail(asking: Installation, server: dns_server.DnsServer) -> None:
    publish(asking, server)
    server.zones.pop("_dmarc.example.com")
    checked = asking.json("domain", "check", "example.com")["domain"]
    assert (checked["verified"], checked["verified_by"]) == (True, "dns")
    assert [record["state"] for record in checked["records"]] == ["ok", "ok", "ok", "missing", "missing"]
    shown = asking.json("domain", "show", "example.com")["domain"]
    assert shown == checked | {"account_id": shown["account_id"]}


def test_a_rotation_shows_the_record_of_the_new_key(asking: Installation) -> None:
    before = asking.json("domain", "show", "example.com")["domain"]
    lines = asking.text("domain", "rotate-key", "Example.com").splitlines()
    shown = asking.json("domain", "rotate-key", "example.com")["domain"]
    record = next(one for one in shown["records"] if one["purpose"] == "dkim_next")
    assert shown["dkim"] == before["dkim"]
    line = lines[lines.index("DKIM, next key (recommended): pending. Not checked yet.") + 1].strip()
    assert line.startswith(f'{record["name"]}. IN TXT ( "v=DKIM1; k=rsa; ')
    assert "DKIM with Ed25519, next key (optional): pending. Not checked yet." in lines
    assert lines[-1] == (
        "Next: publish the record of the next key, and keep the current one; then run "
        "'postroad domain check example.com'. The new key signs once the check finds it."
    )


def test_the_keys_of_all_domains_are_printed_for_the_zone_of_the_operator(installation: Installation) -> None:
    assert "domains.key_zone is not set" in installation.refusal("domain", "records")
    with installation.file.open("a") as file:
        file.write('[domains]\nkey_zone = "dkim.example.net"\n')
    assert installation.text("domain", "records").strip() == ""
    domain = installation.json("domain", "add", "example.org")["domain"]
    assert domain["dkim"]["type"] == "CNAME"
    records = installation.json("domain", "records")["records"]
    assert domain["dkim"]["value"] in {record["name"] for record in records}
    lines = installation.text("domain", "records").splitlines()
    assert [line.partition(" IN TXT ")[0] for line in lines] == [f"{record['name']}." for record in records]
    shown = installation.text("domain", "show", "example.org").splitlines()
    assert f"    {domain['dkim']['name']}. IN CNAME {domain['dkim']['value']}." in shown
    rotated = installation.text("domain", "rotate-key", "example.org").splitlines()
    assert rotated[-1].startswith("Next: publish the output of 'postroad domain records'; then run ")


def test_a_check_tells_the_operator_to_publish_the_zone(asking: Installation, server: dns_server.DnsServer) -> None:
    settings = asking.file.read_text().replace("[domains]\n", '[domains]\nkey_zone = "dkim.example.net"\n')
    asking.file.write_text(settings)
    alias = asking.json("domain", "show", "example.com")["domain"]["dkim"]
    server.zones[alias["name"]] = {"CNAME": [f"{alias['value']}."]}
    result = asking.run("domain", "check", "example.com")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[3] == (
        "DKIM: missing. Alias found, but its key is not in your zone; run 'postroad domain records' and publish its "
        "output."
    )
    assert f"{alias['name']}. IN CNAME" in asking.text("domain", "show", "example.com")


def test_an_operator_says_that_a_domain_is_warm_and_takes_it_back(installation: Installation) -> None:
    added = installation.json("domain", "add", "example.com")["domain"]
    assert (added["warm"], added["warmup"]["cap"]) == (False, 200)
    warm = installation.json("domain", "warm", "example.com")["domain"]
    assert (warm["warm"], warm["warmup"]) == (True, None)
    assert "Warm-up: not required." in installation.text("domain", "show", "example.com")
    assert installation.json("domain", "warm", "example.com", "--off")["domain"] == added


DOMAIN = {"id": "dom_1", "name": "example.com", "verified": False, "verified_by": None, "failing_since": None}
RECORD = {
    "purpose": "spf",
    "name": "example.com",
    "type": "TXT",
    "value": "v=spf1 ~all",
    "required": True,
    "managed": False,
    "state": "wrong",
    "detail": "found a thing; add another",
}


def test_a_domain_says_how_it_stands() -> None:
    assert domain_commands.status(DOMAIN) == "example.com (dom_1): not verified"
    vouched = DOMAIN | {"verified": True, "verified_by": "operator"}
    assert domain_commands.status(vouched) == "example.com (dom_1): verified"
    proven = vouched | {"verified_by": "dns"}
    assert domain_commands.status(proven) == "example.com (dom_1): verified by DNS"
    failing = proven | {"failing_since": "1970-01-01T00:00:00.000Z"}
    assert domain_commands.status(failing) == (
        "example.com (dom_1): verified by DNS (DNS check failing since 1970-01-01T00:00:00.000Z)"
    )
    lost = failing | {"verified": False, "verified_by": None}
    assert "no longer verified (DNS check failing" in domain_commands.status(lost)


def test_warm_up_is_shown_in_recipients_until_it_is_over() -> None:
    def tell(used: int, cap: int | None, tomorrow: int | None) -> str:
        return domain_commands.warmup_text({"used": used, "cap": cap, "tomorrow": tomorrow})

    grows = "The limit grows the day after you use at least half of it."
    assert tell(5, 200, 200) == f"Warm-up: 5 of 200 recipients used today. {grows}"
    assert tell(100, 200, 400).endswith("100 of 200 recipients used today; tomorrow the limit is 400.")
    assert tell(60_000, 100_000, None).endswith("; tomorrow there is no limit.")
    assert tell(5, None, None) == "Warm-up: not required."
    assert domain_commands.warmup_text(None) == "Warm-up: not required."


def test_records_that_are_fine_need_no_line_to_copy_in_a_check() -> None:
    fine = RECORD | {"state": "ok"}
    assert domain_commands.records_text([RECORD], only_incomplete=True).count("\n") == 1
    assert domain_commands.records_text([fine], only_incomplete=True).count("\n") == 0
    assert domain_commands.records_text([fine], only_incomplete=False).count("\n") == 1


def test_what_the_service_does_not_know_has_no_line() -> None:
    unknown = RECORD | {"value": None, "state": "unknown"}
    assert domain_commands.records_text([unknown], only_incomplete=False) == "SPF: unknown. Found a thing; add another."


def test_the_operators_own_records_are_marked() -> None:
    managed = RECORD | {"managed": True}
    assert domain_commands.records_text([managed], only_incomplete=True).startswith(
        "SPF (managed by the operator): wrong. "
    )


def test_marks_in_a_text_do_not_end_its_string() -> None:
    odd = RECORD | {"value": 'v=spf1 exp=a"b\\c ~all'}
    assert domain_commands.zone_line(odd) == 'example.com. IN TXT ( "v=spf1 exp=a\\"b\\\\c ~all" )'


def test_every_record_has_a_title_and_the_importance_that_the_model_gives_it() -> None:
    assert domain_commands.TITLES.keys() == set(domain_records.RecordPurpose)
    assert set(domain_commands.OLD_KEYS) == domain_records.OLD_KEYS
    assert set(domain_commands.OPTIONAL) | domain_records.OLD_KEYS == domain_records.OPTIONAL
