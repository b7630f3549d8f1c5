"""What all provider queues of an engine share."""

from collections.abc import Callable
from dataclasses import dataclass

from postroad.delivery import attempter, holds, known_sources, leases, message_loader, permits, recorder
from postroad.services import context
from postroad.telemetry import logs


@dataclass(frozen=True, slots=True)
class DeliveryServices:
    """The parts of an engine that provider queues use."""

    ctx: context.Context
    held: leases.Leases
    holds: holds.KnownHolds
    sources: known_sources.KnownSources
    message_loader: message_loader.MessageLoader
    attempter: attempter.Attempter
    recorder: recorder.Recorder
    permits: permits.Permits
    log: logs.Logger
    clock: Callable[[], float]
    # The wall clock as far as it is trusted (`model/lease_clock.py`): what ends by it, a lease or a recipient's time.
    trusted_clock: Callable[[], int]
    # Called when a provider queue has free capacity.
    wake: Callable[[], None]
