"""`/v1/messages/{id}/checks`: the checks of the dashboard, for programs."""

from postroad import context
from tests import accepted_mail
from tests.api.management import AccountClients


async def test_a_message_is_checked(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    html = "<video></video><a href='http://shop.example/'>Shop</a>"
    message_id = await accepted_mail.accept(ctx, mine.account_id, html=html, text="Hi")
    response = await mine.owner.get(f"/v1/messages/{message_id}/checks")
    found = response.json()
    assert response.status_code == 200
    assert found["headers"][0] == {"level": "good", "text": "From, Date, Message-ID and Subject are present."}
    assert {"level": "good", "text": "The message has a text part."} in found["content"]
    assert found["links"] == [
        {"url": "http://shop.example/", "text": "Shop", "line": 1, "problems": ["Is not encrypted. Use https://."]}
    ]
    assert (found["more_links"], found["is_truncated"], found["spam"]) == (0, False, None)
    (video,) = [feature for feature in found["features"] if feature["title"] == "<video> element"]
    assert video["lines"] == [1]
    assert "Gmail, Android" in video["not_supported"]
    assert found["request_id"] == response.headers["x-request-id"]
