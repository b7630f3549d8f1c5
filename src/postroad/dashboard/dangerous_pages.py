"""Pages and forms that need a recent confirmation of who the user is (services/auth/step_up.py)."""

from typing import Final

PAGES: Final = frozenset(
    {
        # Secrets.
        "POST /keys",
        "POST /credentials",
        "POST /webhook",
        "POST /webhook/rotate",
        "POST /webhooks",
        "POST /webhooks/{webhook}",
        "POST /webhooks/{webhook}/rotate",
        "POST /welcome/webhook",
        "POST /domains/{id}/rotate-key",
        "POST /profile/token",
        # Factors of the login.
        "POST /profile/passkeys",
        "POST /profile/passkeys/options",
        "POST /profile/passkeys/{id}/remove",
        # People and domains.
        "POST /team",
        "POST /team/sso",
        "POST /team/sso/remove",
        "POST /team/sso/test",
        "POST /team/{id}/disable",
        "POST /team/{id}/enable",
        "POST /team/{id}/link",
        "POST /team/{id}/recovery-link",
        "POST /team/{id}/remove",
        "POST /team/{id}/role",
        "POST /team/second-factor",
        "POST /domains/{id}/remove",
        # Data.
        "GET /approvals/{id}/request",
        "GET /audit-log/export",
        "GET /credits/ledger.csv",
        "GET /messages.csv",
        "GET /messages/{id}/attachments/{index}",
        "GET /messages/{id}/raw",
        "GET /suppressions/export",
        # What operators do to others.
        "POST /messages/{id}/look",
        "POST /operator/accounts/{id}/close",
        "POST /operator/accounts/{id}/look",
        "POST /operator/accounts/{id}/recovery-link",
        "POST /operator/operators",
        "POST /operator/operators/{id}/remove",
    }
)
