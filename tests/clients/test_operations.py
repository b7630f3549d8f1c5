"""The table of operations that all libraries share is made of the OpenAPI document."""

from clients.conformance import operations
from postroad.api import openapi
from postroad.api import routes as api_routes

DOCUMENT = openapi.document(api_routes.ROUTES, version="0")
# What libraries leave to plain HTTP: received mail, which webhooks bring, and reports, users and their logins, logs,
# files, checks, resends, which need an idempotency key, webhook listeners, and the first webhook, one of all of them.
LEFT_OUT = {
    "logIn", "logOut", "confirmToken", "changePassword", "getCurrentUser", "listSessions", "endSession",
    "listUsers", "inviteUser", "updateUser", "removeUser",
    "createPasswordLink", "createRecoveryLink", "updateAccount", "listAuditLogEntries", "listRequests", "getRequest",
    "listCredentials", "createCredential", "getCredential", "revokeCredential",
    "listLedgerEntries", "exportLedger", "exportSuppressions", "importSuppressions", "getRawMessage", "sendTestEmail",
    "checkMessage", "resendMessage", "getDomainReports", "updateDomain",
    "listInboundRoutes", "createInboundRoute", "getInboundRoute", "deleteInboundRoute", "checkInboundRoute",
    "listReceivedEmails", "getReceivedEmail", "deleteReceivedEmail", "getRawReceivedEmail", "getReceivedAttachment",
    "getSso", "saveSso", "removeSso",
    "listEventSchemas", "getEventSchemas", "createWebhookListener", "receiveWebhookEvents",
}  # fmt: skip
# What has types of its own.
WRITTEN = {"sendEmail", "sendEmailBatch", "getEmail", "rescheduleEmail", "cancelEmail"}


def test_the_table_is_that_of_the_document() -> None:
    assert operations.TABLE.read_text() == operations.text(DOCUMENT)


def test_every_operation_is_in_the_libraries_or_left_out_on_purpose() -> None:
    ids = {operation["operationId"] for item in DOCUMENT["paths"].values() for operation in item.values()}
    first_webhook = {name for name in ids if "FirstWebhook" in name}
    assert ids == operations.METHODS.keys() | WRITTEN | LEFT_OUT | first_webhook
