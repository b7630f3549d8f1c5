"""Postmark's API at `/compat/postmark`, its event format, and `postroad import postmark`."""

from typing import Final

from postroad import extensions

EXTENSION: Final = extensions.Extension(
    apis=("postroad_postmark.api:API",),
    event_formats=("postroad_postmark.event_format:FORMAT",),
    commands={
        "import postmark": (
            "postroad_postmark.importer:from_postmark",
            "Import domains, templates, suppressions and webhooks from a server of Postmark into an account.",
        )
    },
)
