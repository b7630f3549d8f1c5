"""For Flask: the client of an application, and the event of a webhook request.

`app.config["POSTROAD"]` has the arguments of `Client`, and `webhook_secret`.
"""

from __future__ import annotations

from typing import Any

import flask

from postroad_client import answers, errors, webhooks
from postroad_client.client import Client


def client() -> Client:
    """The client of the current application, made with the first call."""
    extensions = flask.current_app.extensions
    if "postroad" not in extensions:
        options = {name: value for name, value in _config().items() if name != "webhook_secret"}
        extensions["postroad"] = Client(**options)
    found: Client = extensions["postroad"]
    return found


def webhook_event() -> answers.Event:
    """The event of the current request. A bad signature ends the request with 400."""
    signature = flask.request.headers.get("Service-Signature")
    try:
        return webhooks.parse_event(flask.request.get_data(), signature, _config()["webhook_secret"])
    except (errors.SignatureVerificationError, ValueError):
        flask.abort(400, "the webhook could not be verified")


def _config() -> dict[str, Any]:
    config: dict[str, Any] = flask.current_app.config["POSTROAD"]
    return config
