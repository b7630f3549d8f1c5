"""Sends mail through Postroad, reads what became of it, and verifies its webhooks.

What is named here is the interface; the modules behind it may change.
"""

from postroad_client.answers import AttachmentInfo, Event, EventData, Message, Receipt, Recipient
from postroad_client.async_client import AsyncClient
from postroad_client.client import Client
from postroad_client.emails import Attachment, Email
from postroad_client.errors import (
    AuthenticationError,
    ConnectionFailedError,
    IdempotencyError,
    InsufficientCreditsError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    PostroadError,
    RateLimitError,
    ServerError,
    SignatureVerificationError,
    TimedOutError,
    UnexpectedResponseError,
)
from postroad_client.webhooks import parse_event, verify

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Attachment",
    "AttachmentInfo",
    "AuthenticationError",
    "Client",
    "ConnectionFailedError",
    "Email",
    "Event",
    "EventData",
    "IdempotencyError",
    "InsufficientCreditsError",
    "InvalidRequestError",
    "Message",
    "NotFoundError",
    "PermissionDeniedError",
    "PostroadError",
    "RateLimitError",
    "Receipt",
    "Recipient",
    "ServerError",
    "SignatureVerificationError",
    "TimedOutError",
    "UnexpectedResponseError",
    "parse_event",
    "verify",
]
