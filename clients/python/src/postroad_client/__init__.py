"""Sends mail through Postroad, reads what became of it, and verifies its webhooks.

What is named here is the interface; the modules behind it may change.
"""

from postroad_client.answers import AttachmentInfo, Message, Receipt, Recipient
from postroad_client.async_client import AsyncClient
from postroad_client.client import Client
from postroad_client.emails import Attachment, Email
from postroad_client.errors import PostroadError
from postroad_client.webhooks import verify

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Attachment",
    "AttachmentInfo",
    "Client",
    "Email",
    "Message",
    "PostroadError",
    "Receipt",
    "Recipient",
    "verify",
]
