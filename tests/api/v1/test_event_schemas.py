"""`/v1/event-schemas`: every type with its schemas, for whoever may read the account."""

from postroad.model import events
from tests.api.management import AccountClients
from tests.api.webhook_calls import check_refusal, check_success

SCHEMAS = "/v1/event-schemas"


async def test_every_type_is_listed_with_its_versions(mine: AccountClients) -> None:
    found = check_success(await mine.reader.get(SCHEMAS), 200, "schemas")["schemas"]
    assert list(dict.fromkeys(one["type"] for one in found)) == list(events.EventType)
    assert [one["versions"] for one in found if one["type"] == "email.delivered"] == [[1], [2]]
    assert [one["versions"] for one in found if one["type"] == "credits.low"] == [[1, 2]]


async def test_one_type_has_the_schemas_of_the_list(mine: AccountClients) -> None:
    found = check_success(await mine.reader.get(SCHEMAS), 200, "schemas")["schemas"]
    one = check_success(await mine.reader.get(f"{SCHEMAS}/email.bounced"), 200, "schemas")["schemas"]
    assert one == [each for each in found if each["type"] == "email.bounced"]
    assert [each["schema"]["title"] for each in one] == ["email.bounced"] * 2


async def test_an_unknown_type_is_not_found(mine: AccountClients) -> None:
    for name in ("email.opened", "email", "EMAIL.BOUNCED"):
        check_refusal(await mine.reader.get(f"{SCHEMAS}/{name}"), 404, "not_found")
