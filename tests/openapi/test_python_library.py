"""The resources of the Python library with a real service: what the table promises is what the API does."""

import pytest

from postroad_client import Client, Email, NotFoundError
from tests.conformance import live_service


def test_the_resources_of_the_library_work_with_a_service(sqlite_service: live_service.Service) -> None:
    token = sqlite_service.mine.owner.removeprefix("Bearer ")
    email = Email(sender="shop@example.com", to="ada@example.org", subject="Hello", text="Hi", metadata={"order": "7"})
    with Client(sqlite_service.base_url, token=token) as client:
        first, second = client.send_batch([email, Email(sender="shop@example.com", to="x", subject="Hello", text="Hi")])
        assert second["error"]["code"] == "invalid_request"
        assert client.get(first["id"], include_queue=True).metadata == {"order": "7"}
        assert first["id"] in [each["id"] for each in client.messages.list(metadata="order:7", limit=1)]
        assert client.cancel(first["id"])["id"] == first["id"]
        assert client.templates.save("library", subject="Hi {{name}}", text="Hi")["alias"] == "library"
        assert client.templates.preview("library", variables={"name": "Ada"})["subject"] == "Hi Ada"
        assert client.templates.delete("library") is None
        with pytest.raises(NotFoundError):
            client.templates.get("library")
        assert client.suppressions.create("a+b@example.net", reason="asked")["email"] == "a+b@example.net"
        assert client.suppressions.get("a+b@example.net")["source"]
        assert client.suppressions.delete("a+b@example.net") is None
        for other in client.webhooks.list():  # of other tests with this service, which may have used up the quota
            client.webhooks.delete(other["id"])
        made = client.webhooks.create("https://hooks.example.com/postroad", events=["email.bounced"])
        assert client.webhooks.update(made["webhook"]["id"], enabled=False)["enabled"] is False
        assert client.webhooks.rotate_secret(made["webhook"]["id"]) != made["secret"]
        assert client.webhooks.delete(made["webhook"]["id"]) is None
        assert "example.com" in [each["name"] for each in client.domains.list(limit=1)]
        assert client.statistics("24h")["period"] == "24h"
        assert client.account()["credits"]
