"""`/v1/domains`: registered, listed, read and removed."""

from typing import Any

from postroad import context
from postroad.services.domains import domain_registry as domains
from tests import contexts
from tests.api.management import AccountClients


def light(domain: dict[str, Any]) -> dict[str, Any]:
    """A domain as lists show it."""
    return {name: value for name, value in domain.items() if name not in {"records", "warmup"}}


async def test_a_domain_is_registered_and_not_proven_yet(mine: AccountClients) -> None:
    response = await mine.owner.post("/v1/domains", json={"name": "Bücher.Example"})
    domain = response.json()["domain"]
    assert response.status_code == 201
    assert domain == {
        "id": domain["id"],
        "name": "xn--bcher-kva.example",
        "verified": False,
        "verified_at": None,
        "verified_by": None,
        "failing_since": None,
        "warm": False,
        "link_host": None,
        "created_at": "2027-01-15T08:00:00.000Z",
        "dkim": domain["dkim"],
        "records": domain["records"],
        "warmup": None,
    }
    assert (await mine.reader.get(f"/v1/domains/{domain['id']}")).json()["domain"] == domain
    assert (await mine.reader.get("/v1/domains")).json()["domains"] == [light(domain)]


async def test_a_domain_comes_with_the_record_to_publish(mine: AccountClients) -> None:
    domain = (await mine.owner.post("/v1/domains", json={"name": "Bücher.Example"})).json()["domain"]
    record = domain["dkim"]
    assert record == {
        "selector": record["selector"],
        "name": f"{record['selector']}._domainkey.xn--bcher-kva.example",
        "type": "TXT",
        "value": record["value"],
    }
    assert record["value"].startswith("v=DKIM1; k=rsa; p=")


async def test_a_domain_from_before_there_were_keys_gets_its_record_with_a_check_and_not_when_it_is_read(
    ctx: context.Context, mine: AccountClients
) -> None:
    domain = await domains.add(ctx, mine.account_id, "example.com", verified=True)
    for _ in range(2):
        assert (await mine.reader.get("/v1/domains")).json()["domains"][0]["dkim"] is None
        read = (await mine.reader.get(f"/v1/domains/{domain.id}")).json()["domain"]
        assert read["dkim"] is None
        assert "dkim" not in [one["purpose"] for one in read["records"]]
    shown = (await mine.owner.post(f"/v1/domains/{domain.id}/check")).json()["domain"]
    assert shown["dkim"]["name"].endswith("._domainkey.example.com")
    assert (await mine.reader.get("/v1/domains")).json()["domains"] == [light(shown)]


async def test_a_proven_domain_says_since_when(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    domain = (await mine.owner.post("/v1/domains", json={"name": "example.com"})).json()["domain"]
    clock.pass_seconds(1.5)
    await domains.verify(ctx, mine.account_id, domain["id"], by="operator")
    shown = (await mine.owner.get(f"/v1/domains/{domain['id']}")).json()["domain"]
    proof = {"verified": True, "verified_at": "2027-01-15T08:00:01.500Z", "verified_by": "operator"}
    assert shown == {**domain, **proof}


async def test_a_removed_domain_is_gone_and_can_be_registered_again(mine: AccountClients) -> None:
    domain = (await mine.owner.post("/v1/domains", json={"name": "example.com"})).json()["domain"]
    path = f"/v1/domains/{domain['id']}"
    assert (await mine.owner.delete(path)).status_code == 204
    assert (await mine.owner.get(path)).status_code == 404
    assert (await mine.owner.delete(path)).status_code == 404
    assert (await mine.owner.post("/v1/domains", json={"name": "example.com"})).status_code == 201
