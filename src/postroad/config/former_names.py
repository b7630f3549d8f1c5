"""Settings of earlier builds: what became of each, as the rest of a sentence of `check-config` and every start.

A file that names one of them is refused, so that nobody believes a setting to be in force that no longer exists.
"""

from collections.abc import Mapping
from typing import Final

# Most were never changed by anybody: a constant with its reason stands in the module that uses it.
_TESTING: Final = "is only for tests now; remove it, or write testing.{}"
_COMMAND: Final = "commands are no longer run; write the secret to a file and name it in {}"
_TLS: Final = "is {} now, for all listeners; rename it, and set http.tls = false behind a proxy that terminates TLS"
SENTENCES: Final[Mapping[str, str]] = {
    "dashboard.session_days": "is fixed at 14 days; remove it",
    "delivery.connect_seconds": "is fixed at 30 seconds; remove it",
    "delivery.content_seconds": "is fixed at 600 seconds; remove it",
    "delivery.idle_seconds": "is fixed at 5 seconds; remove it",
    "delivery.lease_seconds": _TESTING.format("lease_seconds"),
    "delivery.poll_milliseconds": _TESTING.format("poll_milliseconds"),
    "delivery.reply_seconds": "is fixed at 300 seconds; remove it",
    "delivery.return_path_label": 'is fixed at "bounces"; remove it',
    "delivery.sign": _TESTING.format("sign"),
    "delivery.signer_workers": "is fixed at 2; remove it",
    "delivery.suppress": _TESTING.format("suppress"),
    "doctor.hourly": _TESTING.format("hourly_checks"),
    "domains.key_overlap_days": "is fixed at 7 days; remove it",
    "http.connections_per_address": "is an eighth of http.connections now; remove it",
    "inbound.connections_per_address": "is a tenth of inbound.connections now; remove it",
    "limits.accept_seconds": _TESTING.format("accept_seconds"),
    "limits.accept_waiting": _TESTING.format("accept_waiting"),
    "limits.management_burst": "is twice the rate now; remove it",
    "limits.min_content_speed": "is fixed at 500 bytes per second; remove it",
    "limits.retry_burst": "is fixed at 100; remove it",
    "limits.retry_rate": "is fixed at 5; remove it",
    "limits.spool_folder": "is the folder of the SQLite database, or the one that TMPDIR names; remove it",
    "notices.digest_hour": "is fixed at 6; remove it",
    "security.password_threads": "is fixed at 2; remove it",
    "submission.connections_per_address": "is a fifth of submission.connections now; remove it",
    "webhooks.idle_seconds": "is fixed at 4 seconds; remove it",
    "webhooks.lease_seconds": _TESTING.format("lease_seconds"),
    "webhooks.poll_milliseconds": _TESTING.format("poll_milliseconds"),
    "delivery.grace_seconds": "is shutdown.grace_seconds now, for all; rename it",
    "http.grace_seconds": "is shutdown.grace_seconds now, for all; rename it",
    "inbound.grace_seconds": "is shutdown.grace_seconds now, for all; rename it",
    "submission.grace_seconds": "is shutdown.grace_seconds now, for all; rename it",
    "webhooks.grace_seconds": "is shutdown.grace_seconds now, for all; rename it",
    "database.url_command": _COMMAND.format("database.url_file"),
    "security.secret_key_command": _COMMAND.format("security.secret_key_file"),
    "upstreams.password_command": _COMMAND.format("password_file"),
    "delivery.signature_days": "is fixed: signatures do not expire; remove it",
    "notices.queue_minutes": "is fixed at 30 minutes; remove it",
    "quotas.api_keys": "is fixed at 1000; remove it",
    "quotas.credentials": "is fixed at 500; remove it",
    "quotas.suppressions": "is fixed at 1000000; remove it",
    "quotas.templates": "is fixed at 1000; remove it",
    "quotas.webhooks": "is fixed at 10; remove it",
    "quotas.test_megabytes": "is fixed at 256 MiB; remove it",
    "retention.test_days": "is fixed at 3 days; remove it",
    "security.token_seconds": "is fixed at 3600 seconds; remove it",
    "tls_reports.organization": "is the domain of tls_reports.from now; remove it",
    "webhooks.connections_per_account": "is a tenth of webhooks.connections now, and at least 20; remove it",
    "http.tls_certificate": _TLS.format("tls.certificate"),
    "http.tls_key": _TLS.format("tls.key"),
    "inbound.tls_certificate": _TLS.format("tls.certificate"),
    "inbound.tls_key": _TLS.format("tls.key"),
    "submission.tls_certificate": _TLS.format("tls.certificate"),
    "submission.tls_key": _TLS.format("tls.key"),
    "acme.challenge": "follows from http.redirect_listen now; remove it",
}
