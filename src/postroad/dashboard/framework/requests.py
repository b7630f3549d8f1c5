"""An authenticated request: who sent it, what it asks for, and how to respond.

`get` and `post` build the routes of pages. Every `post` is refused unless it comes from this origin and carries the
CSRF token of the session, so no handler can forget the check.

While an operator views an account (services/accounts/view_as.py), requests are those of a reader of that account:
pages are shown, and forms, downloads and what else a route says are refused. Their pages hide the content of messages,
as those of users without the permission to see it do (services/messages/lookup.py).
"""

import dataclasses
import functools
import zoneinfo
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Any, Final

import msgspec

from postroad import build_version, context, errors
from postroad.concurrency import fairness
from postroad.dashboard.framework import cookies, forms, navigation
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.accounts import view_as
from postroad.services.messages import lookup
from postroad.services.people import logins, second_factors, sessions, tokens
from postroad.services.webhooks import endpoints
from postroad.storage.mail import messages
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from postroad.web import application, routing

TAG: Final = "Dashboard"
VIEW: Final = callers.Permission.VIEW
CONTENT: Final = callers.Permission.CONTENT
# Our scripts send this field with a form: they get errors as JSON, and redirects in `Go-To`.
SCRIPTED_FORM_HEADER: Final = b"x-enhanced"
# And this one when they refresh an open page.
REFRESH_HEADER: Final = b"x-refreshed"
Headers = tuple[tuple[str, str], ...]
UNDO: Final = "undo"
# What an operator may do in the account that they view.
VIEW_AS_PERMISSIONS: Final = callers.ROLE_PERMISSIONS[callers.Role.READ_ONLY]


class Viewing(Enum):
    # It answers as it does to a reader of that account.
    SHOWN = auto()
    REFUSED = auto()
    # It answers as always.
    UNCHANGED = auto()


class Undo(msgspec.Struct, frozen=True):
    """A form that undoes what was done, for the session that did it.

    It is only for what it restores exactly. It is signed, so nobody else can make the button do something different.
    """

    session_id: str
    path: str
    fields: Mapping[str, str]


class PageRequest(msgspec.Struct, frozen=True):
    """An authenticated request. `ctx` acts for its user; `sections` are the menu of its page."""

    site: sites.Site
    ctx: context.Context
    http: routing.Request
    session: sessions.Session
    user: users.User
    account: stored_accounts.Account
    sections: navigation.Sections = navigation.SECTIONS
    # Set while an operator views the account.
    view: view_as.ViewAs | None = None
    # The names of the accounts that the person can enter, by id.
    accounts: Mapping[str, str] = msgspec.field(default_factory=dict)
    # Whether sends of the account may wait for an approval.
    uses_approvals: bool = False
    # Of a live page: what its stream compares (live.py).
    fingerprint: str = ""

    @property
    def account_id(self) -> str:
        """The account of the user, or the one that an operator views."""
        return self.http.caller.account_id

    @property
    def path(self) -> Mapping[str, str]:
        return self.http.path

    @property
    def form(self) -> Any:  # noqa: ANN401 - the route's own Struct
        return self.http.body

    @property
    def query(self) -> Any:  # noqa: ANN401 - the route's own Struct
        return self.http.query

    @property
    def base_url(self) -> str:
        """The public address of the service: from the settings, else the one this browser uses."""
        host = (self.http.headers.get(b"host") or b"").decode("latin-1")
        return self.site.base_url or f"{self.site.scheme}://{host}"

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        return times.time_zone_named(self.user.time_zone)

    @property
    def has_inbox(self) -> bool:
        """Whether there is an inbox of the simulator; it is nobody's who views an account."""
        return self.site.mail is not None and not self.hides_content

    def may(self, permission: callers.Permission) -> bool:
        return permission in self.http.caller.permissions

    @property
    def is_refresh(self) -> bool:
        return self.http.headers.get(REFRESH_HEADER) is not None

    def menu(self, sections: navigation.Sections) -> list[tuple[str, list[navigation.Entry]]]:
        """A menu as the user sees it. Who views an account is an operator, and finds the way back."""
        permissions = self.http.caller.permissions
        if self.view is not None:
            permissions |= {callers.Permission.OPERATE}
        is_there = {
            navigation.APPROVALS: self.uses_approvals,
            navigation.CREDITS: self.site.has_credits and not self.account.unlimited,
            navigation.INBOX: self.has_inbox,
            navigation.RECEIVED: not self.hides_content,
        }
        hidden = [entry for entry in is_there if not is_there[entry]]
        return navigation.visible(sections, permissions, hidden=hidden)

    @property
    def hides_content(self) -> bool:
        """Whether content is hidden: the role does not show it, or an operator views it."""
        return self.view is not None or not self.may(CONTENT)

    def hides(self, message_id: str) -> bool:
        """Whether the content of a message is hidden; an operator who views the account may have asked for it."""
        return self.hides_content and (self.view is None or message_id not in self.view.message_ids)

    def refuse_hidden(self, message_id: str) -> None:
        """Refuse to show the content of a message that is hidden."""
        if self.hides(message_id):
            raise errors.Forbidden("the content of this message is hidden while you view the account")

    def shown(self, found: Iterable[messages.Message]) -> list[messages.Message]:
        """Messages, without the content that is hidden."""
        return [lookup.message_without_content(message) if self.hides(message.id) else message for message in found]

    def searched(self, text: str) -> str:
        """A search for messages; refused if it would let somebody guess what is hidden from them, word by word."""
        if self.hides_content:
            lookup.check_search_without_content(text)
        return text

    def page(self, name: str, /, *, status: int = 200, **values: Any) -> routing.Response:
        """Render a page; it is not cached."""
        # A page that refreshes itself leaves the notice of the previous action for the next page.
        notice = None
        if not self.is_refresh:
            notice = cookies.read(self.http.headers, cookies.NOTICE, is_secure=self.site.is_secure)
        shown = {**self._common_values(notice), **values}
        return self.site.page(self.http.headers, name, shown, status=status, headers=self._cookies(notice))

    def undo(self, path: str, /, **fields: str) -> str:
        """What makes the notice of a redirect offer to undo what was done, by a form of another route."""
        return tokens.write_value(self.ctx, Undo(self.session.claims.jti, path, fields), purpose=UNDO)

    def redirect(
        self, path: str, *, notice: str, kind: str = cookies.GOOD, undo: str = "", headers: Headers = ()
    ) -> routing.Response:
        """Redirect to a page that shows `notice`; `kind` is one of `cookies.KINDS`, and `undo` a value of `undo()`."""
        seconds, value = cookies.NOTICE_SECONDS, cookies.encode_notice(cookies.Notice(notice, kind, undo))
        notice_cookie = cookies.write(cookies.NOTICE, value, is_secure=self.site.is_secure, seconds=seconds)
        return redirect(self.http.headers, path, headers=(notice_cookie, *headers))

    def _common_values(self, cookie: str | None) -> dict[str, Any]:
        notice = None if cookie is None else cookies.decode_notice(cookie)
        undo = tokens.read_value(self.ctx, notice.undo, Undo, purpose=UNDO) if notice and notice.undo else None
        return {
            "me": self.user,
            "zone": self.zone,
            "account": self.account,
            "may_change": self.may(callers.Permission.CHANGE),
            "may_manage": self.may(callers.Permission.MANAGE),
            "may_own": self.may(callers.Permission.OWN),
            "may_see_content": self.may(CONTENT),
            "hidden_subject": lookup.HIDDEN_SUBJECT,
            "csrf_token": sessions.csrf_token(self.ctx, self.session),
            "has_inbox": self.has_inbox,
            "has_credits": self.site.has_credits,
            "menu_sections": self.menu(self.sections),
            "view": self.view,
            "other_accounts": [
                (account, name) for account, name in self.accounts.items() if account != self.user.account_id
            ],
            "hides": self.hides,
            # The path of a webhook URL may be a secret.
            "shown_url": endpoints.host if self.view else str,
            "notice": notice,
            "undo": undo if undo and undo.session_id == self.session.claims.jti else None,
            "now": self.ctx.clock(),
            "base_url": self.base_url,
            "version": build_version.current(),
            "fingerprint": self.fingerprint,
        }

    def _cookies(self, notice: str | None) -> Headers:
        fields = [] if notice is None else [cookies.remove(cookies.NOTICE, is_secure=self.site.is_secure)]
        # A page that refreshes itself does not extend the session.
        renewed = None if self.is_refresh else sessions.renewed(self.ctx, self.session)
        if renewed is not None:
            fields.append(session_cookie(self.ctx, self.site, renewed))
        return tuple(fields)


Handler = Callable[[PageRequest], Awaitable[routing.Response]]
PublicHandler = Callable[[sites.Site, context.Context, routing.Request], Awaitable[routing.Response]]
# A route of the dashboard before the site is known.
SiteRoute = Callable[[sites.Site], routing.Route[context.Context]]


def redirect(asked: routing.Headers, path: str, *, headers: Headers = ()) -> routing.Response:
    """Redirect. Our scripts get a `Go-To` field instead, because `fetch` hides the target of a redirect."""
    if asked.get(SCRIPTED_FORM_HEADER) is not None:
        return routing.Response(204, headers=(("Go-To", path), *headers))
    return routing.Response(303, headers=(("Location", path), *headers))


def leave(site: sites.Site, asked: routing.Headers, url: str, *, headers: Headers = ()) -> routing.Response:
    """Send the browser to another site. A redirect would not do: our policy keeps forms on this site, also then."""
    if asked.get(SCRIPTED_FORM_HEADER) is not None:
        return redirect(asked, url, headers=headers)
    onward = ("Refresh", f"0; url={url}")
    return site.page(asked, "leave.html", {"url": url}, headers=(onward, *headers))


def session_cookie(ctx: context.Context, site: sites.Site, session: sessions.Session) -> tuple[str, str]:
    seconds = max(0, session.claims.exp - ctx.clock() // times.SECOND)
    return cookies.write(cookies.SESSION, session.token, is_secure=site.is_secure, seconds=seconds)


def view_as_cookie(asked: PageRequest, view: view_as.ViewAs) -> tuple[str, str]:
    seconds = max(0, view.until - asked.ctx.clock() // times.SECOND)
    value = view_as.write(asked.ctx, view)
    return cookies.write(cookies.VIEW_AS, value, is_secure=asked.site.is_secure, seconds=seconds)


async def authenticate(
    site: sites.Site, ctx: context.Context, headers: routing.Headers
) -> tuple[callers.Caller, sessions.Session]:
    token = cookies.read(headers, cookies.SESSION, is_secure=site.is_secure)
    if token is None:
        raise errors.Unauthorized("log in to see this page")
    return await sessions.authenticate(ctx, token)


def authenticator(site: sites.Site) -> application.Authenticate[context.Context]:
    """What tells the application who sent a request to a page."""

    async def caller_of(ctx: context.Context, headers: routing.Headers, *, client_address: str) -> callers.Caller:
        del client_address
        who, _ = await authenticate(site, ctx, headers)
        return who

    return caller_of


def get(
    path: str,
    handler: Handler,
    *,
    permission: callers.Permission = VIEW,
    viewing: Viewing = Viewing.SHOWN,
    is_enrolment: bool = False,
    is_live: bool = False,
    **options: Any,
) -> SiteRoute:
    """The route of a page. `options` are those of `_route`.

    Whoever has to set up a second factor first can use only routes with `is_enrolment`. A page with parts that change
    while it is open `is_live`.
    """
    checks = functools.partial(
        _authenticated,
        handler=_live(handler) if is_live else handler,
        permission=permission,
        viewing=viewing,
        is_enrolment=is_enrolment,
    )
    return lambda site: _route("GET", path, checks(site), permission=permission, **options)


def _live(handler: Handler) -> Handler:
    async def handle(asked: PageRequest) -> routing.Response:
        # Read before the page, so that the page cannot show anything older.
        return await handler(msgspec.structs.replace(asked, fingerprint=await fingerprint(asked)))

    return handle


async def fingerprint(asked: PageRequest) -> str:
    """What changes when the account does."""
    return await asked.site.fingerprints.of(asked.ctx, asked.account_id)


def post(
    path: str,
    handler: Handler,
    *,
    form: type[forms.Form] = forms.Form,
    permission: callers.Permission = callers.Permission.CHANGE,
    viewing: Viewing = Viewing.REFUSED,
    is_enrolment: bool = False,
    **options: Any,
) -> SiteRoute:
    options.update(form=form, permission=permission)
    checks = functools.partial(
        _authenticated, handler=handler, permission=permission, viewing=viewing, is_enrolment=is_enrolment
    )
    return lambda site: _route("POST", path, checks(site), **options)


def public(method: str, path: str, handler: PublicHandler, **options: Any) -> SiteRoute:
    """A route without a session; a form handler must call `forms.refuse_cross_origin` itself."""
    return lambda site: _route(method, path, functools.partial(handler, site), permission=None, **options)


def _route(
    method: str,
    path: str,
    handler: routing.Handler[context.Context],
    *,
    permission: callers.Permission | None,
    query: type[msgspec.Struct] | None = None,
    form: type[forms.Form] | None = None,
    body_limit: int = routing.MAX_BODY_BYTES,
    ignores_bad_query: bool = False,
) -> routing.Route[context.Context]:
    return routing.Route(
        method=method,
        path=path,
        handler=handler,
        summary="A page",
        tag=TAG,
        permission=permission,
        responses={200: bytes},
        body=form,
        body_type=routing.JSON if form is None else routing.FORM,
        body_limit=body_limit,
        query=query,
        ignores_bad_query=ignores_bad_query,
        content_type=sites.HTML,
        units=fairness.PAGE_UNITS,
    )


def _authenticated(
    site: sites.Site, *, handler: Handler, permission: callers.Permission, viewing: Viewing, is_enrolment: bool
) -> routing.Handler[context.Context]:
    async def handle(ctx: context.Context, request: routing.Request) -> routing.Response:
        _, session = await authenticate(site, ctx, request.headers)
        if isinstance(request.body, forms.Form):
            forms.refuse_cross_origin(site, request.headers)
            if not sessions.is_csrf_token(ctx, session, request.body.csrf_token or ""):
                raise forms.missing_csrf_token()
        if session.lacks_factor and not is_enrolment:
            raise second_factors.missing()
        asked = await _of_person(site, ctx, request, session, permission=permission, viewing=viewing)
        if isinstance(request.body, forms.Form) and request.body.question:
            return _ask(asked)
        return await handler(asked)

    return handle


async def _of_person(
    site: sites.Site,
    ctx: context.Context,
    request: routing.Request,
    session: sessions.Session,
    *,
    permission: callers.Permission,
    viewing: Viewing,
) -> PageRequest:
    user, account = await logins.me(ctx, request.caller)
    entered = await logins.accounts_of(ctx, session.row.login_id)
    asked = PageRequest(site, ctx, request, session, user, account, accounts=entered)
    # The console of operators is theirs, whatever they view.
    if viewing is not Viewing.UNCHANGED and permission is not callers.Permission.OPERATE:
        asked = await _as_reader(asked, permission, viewing)
    uses_approvals = await logins.uses_approvals(ctx, asked.account_id)
    return msgspec.structs.replace(asked, uses_approvals=uses_approvals)


async def of_refused(site: sites.Site, ctx: context.Context, refused: routing.RefusedRequest) -> PageRequest | None:
    """A refused request as that of a reader of pages; None for strangers.

    Whoever has a session has the menu on an error page, also where there is no route or its handler did not begin.
    """
    try:
        who, session = await authenticate(site, ctx, refused.headers)
        is_operators = refused.path.startswith(b"/operator") and callers.Permission.OPERATE in who.permissions
        permission = callers.Permission.OPERATE if is_operators else VIEW
        request = routing.Request(id=refused.request_id, headers=refused.headers, client_address="", authenticated=who)
        asked = await _of_person(site, ctx, request, session, permission=permission, viewing=Viewing.SHOWN)
    except Exception:  # noqa: BLE001 - what failed may be what this needs; the error that is shown is in the log
        return None
    return msgspec.structs.replace(asked, sections=navigation.OPERATOR_SECTIONS) if is_operators else asked


def _ask(asked: PageRequest) -> routing.Response:
    """The question of a form, where no script has asked it; the same form without it follows from the answer."""
    form: forms.Form = asked.form
    unasked = msgspec.structs.replace(form, csrf_token=None, question=None, verb=None)
    fields: list[tuple[str, Any]] = []
    for name, value in msgspec.to_builtins(unasked).items():
        several = value if isinstance(value, list) else [value]
        fields += [(name, str(one).lower() if isinstance(one, bool) else one) for one in several if one is not None]
    return asked.page("question.html", question=form.question, verb=form.verb, fields=fields)


async def _as_reader(asked: PageRequest, permission: callers.Permission, viewing: Viewing) -> PageRequest:
    """The request as one of a reader of the account that an operator views; the same, if there is none."""
    view = read_view(asked)
    account = None if view is None else await view_as.account_of(asked.ctx, view)
    if account is None:
        return asked
    if viewing is Viewing.REFUSED or permission not in VIEW_AS_PERMISSIONS:
        raise errors.Forbidden("you are viewing this account read-only; stop viewing it to make changes")
    who = dataclasses.replace(
        asked.http.caller, account_id=account.id, credential_id=None, permissions=VIEW_AS_PERMISSIONS, request_rate=None
    )
    http = msgspec.structs.replace(asked.http, authenticated=who)
    ctx = context.acting_as(asked.ctx, who, request_id=http.id, client_address=http.client_address)
    return msgspec.structs.replace(asked, ctx=ctx, http=http, account=account, view=view)


def read_view(asked: PageRequest) -> view_as.ViewAs | None:
    """The view of this session, as long as its user is an operator."""
    value = cookies.read(asked.http.headers, cookies.VIEW_AS, is_secure=asked.site.is_secure)
    if value is None or callers.Permission.OPERATE not in asked.http.caller.permissions:
        return None
    return view_as.read(asked.ctx, asked.session, value)
