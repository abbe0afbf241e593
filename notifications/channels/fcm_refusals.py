"""FCM's answers as they are written: JSON in Google's form, or anything else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from . import http

_FCM_ERROR = "google.firebase.fcm.v1.FcmError"
_BAD_REQUEST = "google.rpc.BadRequest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What an answer other than an acceptance says."""

    status: int
    name: str | None = None
    """Google's name of the status: ``NOT_FOUND``."""
    code: str | None = None
    """FCM's own code: ``UNREGISTERED``."""
    fields: Sequence[str] = ()
    """The fields it complains about."""
    text: str = ""


def read(response: http.Response) -> Refusal:
    """Return what an answer says, as far as it is readable."""
    error = _mapping(_json(response.body).get("error"))
    details = list(_details(error))
    code = next((d["errorCode"] for d in details if _is(d, _FCM_ERROR) and "errorCode" in d), None)
    return Refusal(
        status=response.status,
        name=_text(error.get("status")),
        code=_text(code),
        fields=tuple(_fields(details)),
        text=_text(error.get("message")) or "",
    )


def accepted_name(response: http.Response) -> str | None:
    """Return the name FCM gave the message; None if this is not FCM's documented acceptance."""
    name = _json(response.body).get("name")
    return name if isinstance(name, str) and name else None


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        return _mapping(msgspec.json.decode(body))
    except (ValueError, RecursionError):
        return {}


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = error.get("details")
    return (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())


def _is(detail: Mapping[str, Any], kind: str) -> bool:
    name = detail.get("@type")
    return isinstance(name, str) and name.rpartition("/")[2] == kind


def _fields(details: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for detail in details:
        violations = detail.get("fieldViolations") if _is(detail, _BAD_REQUEST) else None
        for one in violations if isinstance(violations, list) else ():
            name = _mapping(one).get("field")
            if isinstance(name, str):
                yield name
