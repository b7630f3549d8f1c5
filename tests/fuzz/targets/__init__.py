"""All targets. Those that need a store come last: they are the slowest."""

from typing import Final

from tests.fuzz import target
from tests.fuzz.targets import (
    addresses,
    aggregate_reports,
    compose,
    credentials,
    dns_answers,
    http_api,
    http_requests,
    messages,
    previews,
    queries,
    received_mail,
    reports,
    signatures,
    smtp_client,
    smtp_server,
    strict_jsons,
    submission_session,
    texts,
)

ALL: Final[tuple[target.Target, ...]] = (
    addresses.TARGET,
    strict_jsons.TARGET,
    http_requests.TARGET,
    smtp_server.TARGET,
    smtp_client.TARGET,
    reports.TARGET,
    aggregate_reports.TARGET,
    dns_answers.TARGET,
    previews.TARGET,
    received_mail.TARGET,
    queries.TARGET,
    signatures.TARGET,
    credentials.TARGET,
    texts.TARGET,
    compose.TARGET,
    messages.TARGET,
    http_api.BODY,
    http_api.CONNECTION,
    submission_session.TARGET,
)
