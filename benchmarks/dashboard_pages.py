"""The pages of `make bench-dashboard`: what is opened, and what is typed into the search box."""

import re
import time
import typing
import urllib.parse

from benchmarks import large_account

OLDER = re.compile(rb'href="(/messages\?[^"]*cursor=[^"]+)"')
HOUR = large_account.DAY // 24

# What is asked: its name in the table, and the path. Times are days of the month that was filled.
PAGES = (
    ("overview, 24 hours", "/?period=24h"),
    ("overview, 7 days", "/?period=7d"),
    ("overview, 30 days", "/?period=30d"),
    ("overview, 90 days", "/?period=90d"),
    ("overview, ten chosen days", "/?from={early}&until={middle}"),
    ("overview, 30 days of a common tag", f"/?period=30d&tag={large_account.COMMON_TAG}"),
    ("overview, 90 days of a rare tag", f"/?period=90d&tag={large_account.RARE_TAG}"),
    ("overview, 30 days of a sender domain", "/?period=30d&domain=example.com"),
    ("overview, 7 days of a domain without mail", "/?period=7d&domain=example.net"),
    (
        "overview, ten chosen days of a domain and a tag",
        f"/?from={{early}}&until={{middle}}&domain=example.com&tag={large_account.COMMON_TAG}",
    ),
    ("failures, 24 hours", "/failures?period=24h"),
    ("failures, 30 days", "/failures?period=30d"),
    ("failures, 90 days", "/failures?period=90d"),
    ("messages", "/messages"),
    ("messages, next page", "{next_page}"),
    ("messages, a page from the depth", "{deep_page}"),
    ("one message", "/messages/{message}"),
    ("one message, of a search with few results", "/messages/{message}?search=to:{rare_recipient}"),
    ("one message, of a search without an index", "/messages/{message}?search=to:@company-7.example"),
    ("tail", "/tail"),
    ("tail of a search", "/tail?search=status:bounced+to:@yahoo.com"),
    ("recipient, much mail", "/recipients/{common_recipient}"),
    ("recipient, little mail", "/recipients/{rare_recipient}"),
    ("find, the beginning of addresses", "/find?q=person-1"),
    ("find, a word that is in no subject", "/find?q=zebra"),
    ("find, the beginning of an id", "/find?q={message_prefix}"),
    ("bulk, an hour of queued mail", "/bulk?action=retry&search=status:queued+after:{last_hour}"),
    ("bulk, a day of bounces", "/bulk?action=suppress&search=status:bounced+after:{yesterday}+before:{today}"),
    ("bulk, few of all messages", "/bulk?action=cancel&search=tag:{rare_tag}"),
    ("webhook", "/webhooks/{webhook}"),
    ("suppressions", "/suppressions"),
    ("credits", "/credits"),
    ("audit-log", "/audit-log"),
    ("operator: health", "/operator"),
    ("operator: queue", "/operator/queue"),
    ("operator: queued recipients", "/operator/queue/recipients"),
    ("operator: queued recipients at a domain", "/operator/queue/recipients?domain=yahoo.com"),
    ("operator: queued recipients at a domain without mail", "/operator/queue/recipients?domain=nowhere.example"),
    ("operator: queued recipients that are held", "/operator/queue/recipients?state=held"),
    ("operator: before canceling everything", "/operator/queue/change?action=cancel&all=true"),
    ("operator: before retrying mail to a domain", "/operator/queue/change?action=retry&domain=icloud.com"),
    ("operator: before holding an account", "/operator/queue/change?action=hold&account_id={account}"),
    ("operator: providers", "/operator/providers"),
    ("operator: a provider", "/operator/providers/google"),
    ("operator: consistency check", "/operator/consistency"),
    ("operator: accounts", "/operator/accounts"),
    ("operator: accounts, a part of the name", "/operator/accounts?search=count+199"),
    ("operator: an account", "/operator/accounts/{account}"),
    ("operator: operators", "/operator/operators"),
    ("operator: audit log", "/operator/audit-log"),
)
# What is typed into the search box. The worst are those whose words are common alone and never meet.
SEARCHES = (
    "to:{rare_recipient}",
    "to:{common_recipient}",
    "to:nobody@example.org",
    "from:{rare_sender}",
    "from:{common_sender}",
    "from:nobody@example.com",
    "tag:{rare_tag}",
    "tag:{common_tag}",
    "tag:none",
    "status:queued",
    "status:delivered",
    "status:partial",
    "status:failed",
    "id:{message}",
    "after:{middle}",
    "before:{early}",
    "after:{early} before:{middle}",
    "status:failed before:{early}",
    "tag:{common_tag} status:failed",
    "tag:{rare_tag} status:queued",
    "from:{common_sender} tag:newsletter",
    "from:{rare_sender} status:failed",
    "to:{common_recipient} status:partial",
    "to:{common_recipient} from:{rare_sender}",
    "to:{common_recipient} tag:{common_tag} status:failed before:{early}",
    "from:{common_sender} tag:{common_tag} status:queued before:{early}",
    # By metadata.
    "metadata.order:500000",
    "metadata.order:none",
    "metadata.campaign:{common_campaign}",
    "metadata.campaign:{common_campaign} tag:{common_tag}",
    "-metadata.campaign:{common_campaign} tag:newsletter",
    # By words of the subject, which no index has.
    "order",
    "zebra",
    "zebra elephant giraffe -order",
    '"order 12345 is"',
    # By what became of a recipient. The worst are causes and replies that none of those who were refused have.
    "status:bounced",
    "status:bounced to:@gmail.com after:{yesterday} before:{today}",
    "status:deferred OR status:expired",
    "status:suppressed",
    "outcome:delivered",
    "outcome:failed provider:yahoo",
    "provider:apple",
    "provider:others code:250",
    "cause:address",
    "cause:mailbox_full",
    "cause:reputation to:@gmail.com tag:{common_tag}",
    "code:550 to:@icloud.com",
    "code:5.7.1",
    "code:2.1.5",
    "code:251",
    # By a part of an address or id, which no index has in the order of time.
    "to:@gmail.com",
    "to:@company-7.example",
    "to:@nowhere.example",
    "to:person-19999*",
    "to:person-1*",
    "to:nobody*",
    "from:@example.com",
    "from:@example.com tag:{common_tag}",
    "from:@nowhere.example tag:{common_tag}",
    "from:nobody*",
    "id:{message_prefix}*",
    "id:em_06*",
    # What is excluded, and alternatives.
    "-tag:{common_tag} -tag:newsletter -status:delivered",
    "-to:@gmail.com -from:{common_sender} source:api",
    "-outcome:delivered -outcome:queued -outcome:deferred -outcome:bounced -outcome:failed",
    "-cause:address -cause:rate -provider:google status:failed",
    "status:bounced OR tag:{rare_tag} -to:@gmail.com",
    "zebra OR to:{rare_recipient} OR cause:mailbox_full",
    "to:{rare_recipient} OR from:{rare_sender} OR tag:{rare_tag} OR metadata.order:500000 OR status:partial",
    "to:@nowhere.example OR to:@gmail.co OR code:251 OR provider:upstream:none OR cause:mailbox_full",
    "provider:upstream:none OR cause:mailbox_full code:251 OR code:2.1.5 to:@nowhere.example OR to:nobody*",
)


# What a browser shows of a path.
Get = typing.Callable[[str], bytes]


def questions(filled: large_account.Filled, get: Get) -> typing.Iterator[tuple[str, str]]:
    """The names of all pages and their paths."""
    early = _date(filled.start, days=5)
    words = {
        "account": filled.account_id,
        "message": filled.message_id,
        "webhook": filled.webhook_id,
        "message_prefix": filled.message_id[:12],
        "yesterday": _date(filled.start, days=large_account.DAYS - 1),
        "today": _date(filled.start, days=large_account.DAYS),
        "last_hour": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime((filled.now - HOUR) / 1_000_000)),
        "next_page": _older(get, "/messages"),
        "deep_page": _older(get, f"/messages?search=before:{early}"),
        "middle": _date(filled.start, days=large_account.DAYS // 2),
        "early": early,
        "rare_recipient": large_account.RARE_RECIPIENT,
        "common_recipient": large_account.COMMON_RECIPIENT,
        "rare_sender": large_account.RARE_SENDER,
        "common_sender": large_account.COMMON_SENDER,
        "rare_tag": large_account.RARE_TAG,
        "common_tag": large_account.COMMON_TAG,
        "common_campaign": large_account.COMMON_CAMPAIGN,
    }
    for name, path in PAGES:
        yield name, path.format(**words)
    for search in SEARCHES:
        text = search.format(**words)
        yield f"`{text}`", f"/messages?{urllib.parse.urlencode({'search': text})}"


def _date(start: int, *, days: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime((start + days * large_account.DAY) / 1_000_000))


def _older(get: Get, path: str) -> str:
    """The address behind the link to the next page."""
    found = OLDER.search(get(path))
    if found is None:
        raise RuntimeError(f"{path} has no link to its next page")
    return found[1].decode().replace("&amp;", "&")
