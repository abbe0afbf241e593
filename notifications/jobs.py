"""What is to be sent, and what of it at the same time."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.conf import settings

from domain.content import SensitiveContent
from providers.contract import BatchProvider, Message, Provider, SendRequest

from .store import Claimed
from .targets import Target

SCOUTS = 10
"""Requests to a provider of which nobody here knows whether it takes any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A started delivery, what it says, and where it goes."""

    claimed: Claimed
    message: Message
    targets: tuple[Target, ...]
    """At least one; several for a person with several devices."""
    secret: SensitiveContent | None = None
    """What of the message is kept nowhere, should the provider repeat it."""
    held_until: datetime | None = None
    """Others are left out, as nothing goes to their platform before then."""
    asleep_until: datetime | None = None
    """Others are left out, as they are in their quiet hours until then."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A job for one of its targets, as the provider is handed it."""

    job: Job
    target: Target
    outbound: SendRequest

    @classmethod
    def of(cls, job: Job, target: Target) -> Self:
        """Return what a job has for a target."""
        claimed = job.claimed
        outbound = SendRequest(
            reference=claimed.reference_to(target.device_id),
            thread=str(claimed.notification_id),
            recipient=target.address,
            recipient_name=claimed.recipient.name,
            message=job.message,
            category=claimed.category.value,
            priority=claimed.priority,
            platform=target.platform or None,
            window_open=target.window_open,
            expires_at=claimed.expires_at,
        )
        return cls(job, target, outbound)


def rounds(provider: Provider, jobs: Sequence[Job], *, is_proven: bool) -> list[list[Job]]:
    """Return jobs in rounds that this process sends at once; at least one.

    A round has as many requests as the process has threads, the first one to a provider that has
    not proven itself of late a few: should it take nothing, its circuit is open before the second.
    People who are sent the same mail in one request count once, a device of several each.
    """
    taken: list[list[Job]] = []
    room = 0
    for group in _alike(provider, jobs):
        requests = max(len(job.targets) for job in group)
        if not taken or requests > room:
            room = settings.WORKER_THREADS
            if not taken and not is_proven:
                room = min(room, SCOUTS)
            taken.append([])
        taken[-1] += group
        room -= requests
    return taken


def _alike(provider: Provider, jobs: Sequence[Job]) -> list[list[Job]]:
    """Return jobs in the groups that go in one request, if their provider takes several in one."""
    if not isinstance(provider, BatchProvider):
        return [[job] for job in jobs]
    groups: dict[Hashable, list[Job]] = {}
    for job in jobs:
        groups.setdefault(provider.same_mail(job.message), []).append(job)
    return list(groups.values())


def in_requests(provider: Provider, parcels: Sequence[Parcel]) -> list[list[Parcel]]:
    """Return what goes in one request each: alone, but for the same mail to several people."""
    if len(parcels) == 1 or not isinstance(provider, BatchProvider):
        return [[parcel] for parcel in parcels]
    groups: dict[Hashable, list[Parcel]] = {}
    for parcel in parcels:
        groups.setdefault(provider.same_mail(parcel.outbound.message), []).append(parcel)
    return list(groups.values())
