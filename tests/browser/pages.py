"""Every page of the dashboard: where it is, who opens it, and what must be seen. Tests and pictures walk this table.

Braces in a path stand for things of the demo account (cli/dev/sample_week.py), which a new account does not
have.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from tests.browser import dev_service


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page. `sees` stands somewhere in its main part; `as_visitor` pages are for those who have not logged in."""

    name: str
    path: str
    sees: str
    as_visitor: bool = False
    # Opened by an operator who views the demo account.
    in_view: bool = False
    status: int = 200

    @property
    def is_inside(self) -> bool:
        """Whether the ways to all other pages are on it."""
        return not self.as_visitor

    @property
    def is_for_operators(self) -> bool:
        """Whether it belongs to the operator console, which the owner of the demo account may open."""
        return self.path.startswith("/operator")

    @property
    def is_of_a_thing(self) -> bool:
        """Whether it needs something that only the demo account has."""
        return "{" in self.path


PAGES: Final = (
    Page(name="login", path="/login", sees="Password", as_visitor=True),
    Page(name="login-sso", path="/login/sso", sees="find your company", as_visitor=True),
    Page(name="welcome", path="/welcome", sees="test"),
    Page(name="overview", path="/", sees="Delivered"),
    Page(name="failures", path="/failures?period=30d", sees="Why mail was not delivered"),
    Page(name="find", path="/find?q=a", sees="Settings"),
    Page(name="messages", path="/messages", sees="Search"),
    Page(name="message", path="/messages/{message}", sees="{message}"),
    Page(name="message-waiting", path="/messages/{waiting}", sees="Retry now"),
    Page(name="message-code", path="/messages/{message}/code", sees="Idempotency-Key"),
    Page(name="recipient", path="/recipients/{recipient}", sees="Last reply"),
    Page(name="tail", path="/tail", sees="accepted"),
    Page(name="bulk", path="/bulk?action=retry&search=status:queued", sees="What will happen"),
    Page(name="domains", path="/domains", sees="Add"),
    Page(name="domain", path="/domains/{domain}", sees="DKIM"),
    Page(name="domain-reports", path="/domains/{domain}/reports", sees="TLS on the way"),
    Page(name="credentials", path="/credentials", sees="New credential"),
    Page(name="keys", path="/keys", sees="New API key"),
    Page(name="requests", path="/requests", sees="forbidden"),
    Page(name="request", path="/requests/{request}", sees="outlet.example"),
    Page(name="templates", path="/templates", sees="New"),
    Page(name="template", path="/templates/{template}", sees="Preview"),
    Page(name="template-starters", path="/template/new", sees="Start from one of these"),
    Page(name="template-versions", path="/templates/{template}/versions", sees="Versions"),
    Page(name="webhooks", path="/webhooks", sees="New webhook"),
    Page(name="webhook", path="/webhooks/{webhook}", sees="email.delivered"),
    Page(name="webhook-settings", path="/webhooks/{webhook}/settings", sees="Deliveries and failures"),
    Page(name="webhook-secret", path="/webhooks/{webhook}/secret", sees="Hours to keep the old secret valid"),
    Page(name="delivery", path="/webhooks/{webhook}/deliveries/{delivery}", sees="500"),
    Page(name="approvals", path="/approvals", sees="Approvals"),
    Page(name="received-mail", path="/received", sees="Routes"),
    Page(name="received-message", path="/received/{received_mail}", sees="DMARC passed"),
    Page(name="received-routes", path="/received/routes", sees="New route"),
    Page(name="suppressions", path="/suppressions", sees="Add"),
    Page(name="credits", path="/credits", sees="Available"),
    Page(name="team", path="/team", sees="Invite"),
    Page(name="team-user", path="/team/{user}", sees="Remove from the team"),
    Page(name="roles", path="/team/roles", sees="Permission"),
    Page(name="team-sso", path="/team/sso", sees="Redirect URI"),
    Page(name="audit-log", path="/audit-log", sees="Who"),
    Page(name="glossary", path="/glossary", sees="durably accepted"),
    Page(name="profile", path="/profile", sees="Password"),
    Page(name="security", path="/profile/security", sees="Authenticator app"),
    Page(name="inbox", path="/inbox", sees="Welcome to the Corner Shop"),
    Page(name="received", path="/inbox/{received}", sees="example.net"),
    Page(name="operator-health", path="/operator", sees="Same checks as postroad doctor"),
    Page(name="operator-queue", path="/operator/queue", sees="By recipient domain"),
    Page(name="operator-queue-recipients", path="/operator/queue/recipients", sees="Why it waits"),
    Page(name="operator-queue-change", path="/operator/queue/change?action=hold&all=true", sees="What will happen"),
    Page(name="operator-providers", path="/operator/providers", sees="Microsoft"),
    Page(name="operator-provider", path="/operator/providers/yahoo", sees="Current limits"),
    Page(name="operator-sources", path="/operator/sources", sees="Pool"),
    Page(name="operator-source", path="/operator/sources/{source}", sees="Attempts by provider"),
    Page(name="operator-consistency", path="/operator/consistency", sees="postroad verify"),
    Page(name="operator-job", path="/operator/jobs/{job}", sees="recipients changed"),
    Page(name="operator-accounts", path="/operator/accounts", sees="New account"),
    Page(name="operator-account", path="/operator/accounts/{account}", sees="Close the account"),
    Page(name="view-as", path="/messages/{message}", sees="Show the content", in_view=True),
    Page(name="operator-operators", path="/operator/operators", sees="Add an operator"),
    Page(name="operator-audit-log", path="/operator/audit-log", sees="Installation"),
    Page(name="error", path="/messages/em_0000000000000000000000000000", sees="req_", status=404),
)


def path_of(page: Page, dev: dev_service.DevService) -> str:
    """The URL of the page in this service."""
    return page.path.format(**_things(dev))


def text_of(page: Page, dev: dev_service.DevService) -> str:
    """What must be seen on it."""
    return page.sees.format(**_things(dev))


def _things(dev: dev_service.DevService) -> dict[str, Any]:
    return {
        **dataclasses.asdict(dev.demo_ids),
        "account": dev.account.id,
        "job": dev.job,
        "received": dev.received,
        "received_mail": dev.received_mail,
        "source": dev_service.SOURCE,
    }
