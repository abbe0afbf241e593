"""Switching callbacks and sending messages again from the console, each recorded for the audit."""

from collections.abc import Sequence
from datetime import UTC, datetime

from django.contrib import messages as told
from django.http import HttpRequest

from .. import audit, outbox, subscriptions
from ..events import DisabledReason
from ..models import Callback, CallbackMessage
from ..outbox import StillPendingError
from ..subscriptions import NoCallbackError


def switch(request: HttpRequest, callback: Callback, *, on: bool) -> None:
    """Switch a callback, and tell the user whether that changed anything."""
    client_id, now, words = callback.client_id, _now(), "on again" if on else "off"
    if on:
        is_done = subscriptions.enable(client_id=client_id, now=now)
    else:
        reason = DisabledReason.BY_OPERATOR
        is_done = subscriptions.disable(client_id=client_id, reason=reason, now=now)
        outbox.fail_pending(client_id=client_id, reason=outbox.SWITCHED_OFF)
    if not is_done:
        told.warning(request, f"It was switched {words} already, or is gone.")
        return
    audit.record(client_id, f"Switched {words}.", by=request.user.pk)
    told.success(request, f"The callback is switched {words}.")


def replay(request: HttpRequest, wanted: Sequence[CallbackMessage]) -> None:
    """Send messages again, record each, and tell the user what became of them."""
    done, refused = 0, dict[str, int]()
    for message in wanted:
        try:
            outbox.replay(message_id=message.pk, client_id=None, now=_now())
        except StillPendingError:
            _count(refused, "it has not ended yet")
        except NoCallbackError:
            _count(refused, "its app has no callback any more")
        except LookupError:
            _count(refused, "it is not there any more")
        else:
            audit.record_replay(message.pk, by=request.user.pk)
            done += 1
    if done:
        told.success(request, f"{done} {'message is' if done == 1 else 'messages are'} sent again.")
    for reason, count in refused.items():
        told.warning(request, f"{count} left as before: {reason}.")


def _count(refused: dict[str, int], reason: str) -> None:
    refused[reason] = refused.get(reason, 0) + 1


def _now() -> datetime:
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
