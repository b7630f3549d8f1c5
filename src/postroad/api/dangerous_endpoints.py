"""Endpoints that need a recent confirmation of who the caller is (services/auth/step_up.py)."""

from typing import Final

# Those of `/v1/webhook` are not among them: the interface promises what they answer to a login token.
ENDPOINTS: Final = frozenset(
    {
        "POST /v1/api-keys",
        "PATCH /v1/api-keys/{id}",
        "POST /v1/credentials",
        "POST /v1/webhooks",
        "PATCH /v1/webhooks/{webhook}",
        "POST /v1/webhooks/{webhook}/rotate-secret",
        "POST /v1/domains/{id}/rotate-key",
        "DELETE /v1/domains/{id}",
        "POST /v1/team",
        "PATCH /v1/team/{id}",
        "DELETE /v1/team/{id}",
        "PUT /v1/sso",
        "DELETE /v1/sso",
        "POST /v1/team/{id}/password-link",
        "POST /v1/team/{id}/recovery-link",
        "PATCH /v1/account",
        "GET /v1/account/ledger.csv",
        "GET /v1/messages/{id}/raw",
        "GET /v1/suppressions/export",
        "POST /v1/operator/accounts/{id}/close",
        "POST /v1/operator/accounts/{id}/recovery-link",
        "POST /v1/operator/operators",
        "DELETE /v1/operator/operators/{id}",
    }
)
