"""What all provider queues of an engine share."""

from collections.abc import Callable
from dataclasses import dataclass

from postroad.delivery import attempter as delivery_attempter
from postroad.delivery import holds as delivery_holds
from postroad.delivery import known_sources, leases
from postroad.delivery import message_loader as delivery_message_loader
from postroad.delivery import permits as delivery_permits
from postroad.delivery import recorder as delivery_recorder
from postroad.services import context
from postroad.telemetry import logs


@dataclass(frozen=True, slots=True)
class DeliveryServices:
    """The parts of an engine that provider queues use."""

    ctx: context.Context
    held: leases.Leases
    holds: delivery_holds.KnownHolds
    sources: known_sources.KnownSources
    message_loader: delivery_message_loader.MessageLoader
    attempter: delivery_attempter.Attempter
    recorder: delivery_recorder.Recorder
    permits: delivery_permits.Permits
    log: logs.Logger
    clock: Callable[[], float]
    # The wall clock as far as it is trusted (`model/lease_clock.py`): what ends by it, a lease or a recipient's time.
    trusted_clock: Callable[[], int]
    # Called when a provider queue has free capacity.
    wake: Callable[[], None]
