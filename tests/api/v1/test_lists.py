"""Lists of what an account has set up come in parts, oldest first."""

import pytest

from tests import contexts
from tests.api.management import AccountClients


@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/credentials", "/v1/domains"])
async def test_a_list_is_read_in_parts_oldest_first(mine: AccountClients, clock: contexts.Clock, path: str) -> None:
    names = ["c.example", "a.example", "b.example"]
    for name in names:
        assert (await mine.owner.post(path, json={"name": name})).status_code == 201
        clock.pass_seconds(1)
    first = (await mine.reader.get(f"{path}?limit=2")).json()
    rest = (await mine.reader.get(path, params={"cursor": first["next_cursor"]})).json()
    (rows,) = first.keys() - {"next_cursor", "request_id"}
    assert [len(page[rows]) for page in (first, rest)] == [2, 1]
    assert [one["name"] for one in first[rows] + rest[rows]] == names
    assert rest["next_cursor"] is None
