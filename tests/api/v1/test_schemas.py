"""What the lists of the management routes share: bounds that are documented, under names that do not clash."""

from postroad.api import openapi
from postroad.api import routes as api_routes


def test_every_parameter_of_a_list_is_described_with_its_bounds() -> None:
    document = openapi.document(api_routes.ROUTES, version="1")
    lists = [
        path["get"]
        for path in document["paths"].values()
        if "get" in path and any(one["name"] in ("limit", "cursor", "before") for one in path["get"]["parameters"])
    ]
    assert len(lists) >= 6
    for operation in lists:
        (limit,) = [one["schema"] for one in operation["parameters"] if one["name"] == "limit"]
        assert (limit["minimum"], limit["maximum"], limit["default"], limit["type"]) == (1, 100, 25, "integer")


def test_no_two_things_share_a_name_in_the_document() -> None:
    names = openapi.document(api_routes.ROUTES, version="1")["components"]["schemas"]
    assert [name for name in names if "." in name or "_" in name] == []
