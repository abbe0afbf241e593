"""What one process knows and holds while it sends."""

import random
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from notifyproject.platform.concurrency import ConcurrencyLimiter
from providers.contract import Provider

from .circuit_breaker import CircuitReporter
from .rate_limiter import RateLimiter
from .window import SendWindows

Lanes = Sequence[tuple[Provider, ...]]
"""The lists of accounts that send a batch, each in the order of failover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingRuntime:
    """The state of a sending process that no other process sees, and that ends with it.

    Each process makes one and passes it to the worker's functions, for all of its threads. What
    processes share is in MongoDB and Valkey. A new one costs nothing but time: windows grow again.
    """

    windows: SendWindows = field(default_factory=SendWindows)
    rates: RateLimiter = field(default_factory=RateLimiter)
    circuits: CircuitReporter = field(default_factory=CircuitReporter)
    threads: ConcurrencyLimiter = field(default_factory=ConcurrencyLimiter)
    """By channel: threads that handle a message."""
    batches: ConcurrencyLimiter = field(default_factory=ConcurrencyLimiter)
    """By fair queue: batches that were pulled."""
    isolating_threads: ConcurrencyLimiter = field(default_factory=ConcurrencyLimiter)
    """By channel: threads that send poison candidates one by one."""
    isolation: threading.Lock = field(default_factory=threading.Lock)
    """Held while a poison candidate is claimed and not started."""
    rate_waits: dict[str, set[Hashable]] = field(default_factory=dict)
    """By provider account: the batches that wait for a token."""
    lanes: dict[Hashable, Lanes] = field(default_factory=dict)
    """By fair queue: what sends its last batch, if that isn't the channel's providers alone."""
    has_circuits: bool = True
    """Whether circuits decide what is sent, and learn from it. Those of all processes are in real
    time, so that what is sent by another clock leaves them alone."""
    jitter: random.Random = field(default_factory=random.SystemRandom)
    """Spreads the retries of deliveries that failed together."""
