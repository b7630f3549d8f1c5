"""Resend's API at `/compat/resend`, its event format, and `postroad import resend`."""

from typing import Final

from postroad import extensions

EXTENSION: Final = extensions.Extension(
    apis=("postroad_resend.api:API",),
    event_formats=("postroad_resend.event_format:FORMAT",),
    commands={
        "import resend": (
            "postroad_resend.importer:from_resend",
            "Import domains, templates, suppressions and webhooks from Resend into an account.",
        )
    },
)
