"""Reads the settings again while the service runs (SIGHUP), and applies those that can change.

A process has one `Settings`, which all its parts hold and read when they need a value, so its sections are replaced in
place. What was made from settings at the start is in `_apply`. Invalid settings change nothing. Values are never
logged: some are secret.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from postroad import config
from postroad.model import throttle
from postroad.services import context
from postroad.telemetry import logs

Load = Callable[[], config.Settings]

# Sections and settings that apply at once; all others need a restart.
RELOADED: Final = frozenset({
    "bounce_guard",
    "limits.min_free_megabytes",
    "limits.queued_recipients",
    "limits.request_burst",
    "limits.request_rate",
    "limits.retry_burst",
    "limits.retry_rate",
    "operator",
    "providers",
    "quotas",
    "retention",
    "warmup",
})  # fmt: skip


def reload(ctx: context.Context, load: Load, *, log: logs.Logger) -> None:
    """Load the settings and apply what can change; the log says what did, and what needs a restart."""
    try:
        loaded = load()
    except config.ConfigError as problem:
        log.error("settings_not_reloaded", detail=str(problem))  # noqa: TRY400 - the sentence says it all
        return
    applied: list[str] = []
    waiting: list[str] = []
    for section in ctx.settings.__struct_fields__:
        before, after = getattr(ctx.settings, section), getattr(loaded, section)
        if not isinstance(before, msgspec.Struct):  # a list of tables
            waiting += [section] if after != before else []
            continue
        changes: dict[str, object] = {}
        for field in msgspec.structs.fields(before):
            value, setting = getattr(after, field.name), f"{section}.{field.encode_name}"
            if value == getattr(before, field.name):
                continue
            if section in RELOADED or setting in RELOADED:
                changes[field.name] = value
                applied.append(setting)
            else:
                waiting.append(setting)
        msgspec.structs.force_setattr(ctx.settings, section, msgspec.structs.replace(before, **changes))
    _apply(ctx)
    log.info("settings_reloaded", applied=applied, needs_restart=waiting)


def _apply(ctx: context.Context) -> None:
    limits = ctx.settings.limits
    ctx.rate_limiter.policy = throttle.RateLimit(rate=limits.request_rate, burst=limits.request_burst)
    # Domains are remembered with the end of their warm-up.
    ctx.access_cache.invalidate()
