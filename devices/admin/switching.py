"""Switching devices off and on from the console, each recorded for the audit."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest

from .. import status
from ..models import DeactivationReason, Device


def switch(request: HttpRequest, devices: Sequence[Device], *, on: bool) -> None:
    """Switch devices, record each that changed, and tell the user how many did."""
    changed = [device for device in devices if _switched(device.pk, on=on, by=request.user)]
    words = "on again" if on else "off"
    for device in changed:
        _record(request, device, f"Switched {words}.")
    count = len(changed)
    told = f"{count} {'device is' if count == 1 else 'devices are'} switched {words}."
    if others := len(devices) - count:
        told += f" {others} {'was' if others == 1 else 'were'} so already, or gone."
    messages.success(request, told)


def _switched(device_id: str, *, on: bool, by: Any) -> bool:
    now = datetime.now(UTC)
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)
    if on:
        return status.reactivate(device_id=device_id, now=now)
    return bool(
        status.deactivate(
            device_ids=[device_id],
            reason=DeactivationReason.BY_OPERATOR,
            evidence=status.Evidence(at=now, source=by.get_username()),
            now=now,
        )
    )


def _record(request: HttpRequest, device: Device, message: str) -> None:
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(Device),
        object_id=device.pk,
        object_repr=str(device),
        action_flag=CHANGE,
        change_message=message,
    )
