"""`/v1/event-schemas`: every type with its schemas, for whoever may read the account."""

import json

import jsonschema_rs
import pytest

from postroad import config, context
from postroad.model.events import events
from tests import accepted_mail, webhook_rows
from tests.api.management import AccountClients
from tests.api.webhook_calls import check_refusal, check_success

SCHEMAS = "/v1/event-schemas"


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


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


async def test_an_endpoint_gets_the_types_that_it_names_as_the_schemas_say(
    mine: AccountClients, ctx: context.Context
) -> None:
    wanted = {"url": webhook_rows.URL, "events": ["email.accepted", "credits.low"], "version": 2}
    made = check_success(await mine.owner.post("/v1/webhooks", json=wanted), 201, "webhook", "secret")["webhook"]
    assert (made["events"], made["version"]) == (["email.accepted", "credits.low"], 2)
    await accepted_mail.allow_sending(ctx, mine.account_id, amount=1)
    await accepted_mail.accept(ctx, mine.account_id, tags=("orders",))
    log = (await mine.reader.get(f"/v1/webhooks/{made['id']}/deliveries")).json()["deliveries"]
    told = {one["event_type"]: json.loads(one["request_body"]) for one in log}
    assert told.keys() == {"email.accepted", "credits.low"}
    for kind, event in told.items():
        (described,) = (await mine.reader.get(f"{SCHEMAS}/{kind}")).json()["schemas"]
        jsonschema_rs.Draft202012Validator(described["schema"], validate_formats=True).validate(event)
    assert told["email.accepted"]["data"]["tags"] == ["orders"]
    assert told["credits.low"]["data"] == {"available": 0, "used": 1}


async def test_an_unknown_type_cannot_be_named(mine: AccountClients) -> None:
    for name in ("webhook.test", "email.opened"):
        refused = await mine.owner.put("/v1/webhook", json={"url": webhook_rows.URL, "events": [name]})
        assert check_refusal(refused, 400, "invalid_request").startswith("events[0]: must be one of email.delivered, ")
