"""Write clients/operations.json: `python -m tests.clients.write_operations`, after a change of the API."""

from clients.conformance import operations
from postroad.api import openapi
from postroad.api import routes as api_routes

if __name__ == "__main__":
    document = openapi.document(api_routes.ROUTES, version="0")
    operations.TABLE.write_text(operations.text(document), encoding="utf-8")
