"""What the four push services answer, each in its own words."""

import json
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ...responses import ProviderResponse, ResponseMode

_JSON, _TEXT = {"Content-Type": "application/json"}, {"Content-Type": "text/plain; charset=utf-8"}
_MORE = "http://autopush.readthedocs.io/en/latest/http.html#error-codes"
_MISMATCH = (
    "the VAPID credentials in the authorization header do not correspond to the credentials used "
    "to create the subscriptions.\n"
)


class Kind(StrEnum):
    """Why a push service refuses a push, whatever its words."""

    NOT_FOUND = "not-found"
    GONE = "gone"
    MISMATCH = "mismatch"
    UNAUTHORIZED = "unauthorized"
    NO_TTL = "no-ttl"
    BAD_TTL = "bad-ttl"
    BAD_URGENCY = "bad-urgency"
    BAD_TOPIC = "bad-topic"
    TOO_LARGE = "too-large"
    THROTTLE = "throttle"
    DROPPED = "dropped"
    SERVER_ERROR = "server-error"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status with a body and headers."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self, *, mode: ResponseMode = ResponseMode.COMPLETE) -> ProviderResponse:
        """Return it as an HTTP response."""
        return ProviderResponse(
            status=self.status, body=self.body.encode(), headers=self.headers, mode=mode
        )


def _mozilla(status: int, number: int, error: str, message: str, **headers: str) -> Answer:
    content = {
        "code": status, "errno": number, "error": error, "message": message, "more_info": _MORE
    }  # fmt: skip
    return Answer(status, json.dumps(content), _JSON | headers)


def _google(status: int, text: str, **headers: str) -> Answer:
    return Answer(status, text, _TEXT | headers)


def _apple(status: int, reason: str) -> Answer:
    return Answer(status, json.dumps({"reason": reason}), _JSON | {"apns-id": _apple_id()})


def _microsoft(status: int, notification_status: str = "dropped", text: str = "") -> Answer:
    headers = {"X-WNS-STATUS": notification_status, "X-WNS-NOTIFICATIONSTATUS": notification_status}
    return Answer(status, headers=headers | ({"X-WNS-ERROR-DESCRIPTION": text} if text else {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class PushService:
    """One push service: how it accepts, and how it refuses."""

    name: str
    browser: str
    domain: str
    accept: Callable[[str], Mapping[str, str]]
    """Returns the headers of its 201 to a push at an origin."""
    refusals: Mapping[Kind, Callable[[int], Answer]]
    """By why it refuses, with the seconds of a pause."""

    def refuse(self, kind: Kind, *, pause: int) -> Answer:
        """Return its answer."""
        return self.refusals[kind](pause)


def _apple_id() -> str:
    return str(uuid.uuid4()).upper()


def _always(answer: Answer) -> Callable[[int], Answer]:
    return lambda _pause: answer


GOOGLE = PushService(
    name="Google",
    browser="Chrome",
    domain="fcm.googleapis.com",
    accept=lambda origin: {"Location": f"{origin}/0:{secrets.randbelow(10**16)}%{'f' * 16}"},
    refusals={
        Kind.NOT_FOUND: _always(
            _google(
                404,
                "A valid push subscription endpoint should be specified in the URL as such: "
                "https://fcm.googleapis.com/wp/dHIoDxE7Hdg:APA91bH1Zj0kNa...\n",
            )
        ),
        Kind.GONE: _always(_google(410, "push subscription has unsubscribed or expired.\n")),
        Kind.MISMATCH: _always(_google(403, _MISMATCH)),
        Kind.UNAUTHORIZED: _always(_google(403, "invalid JWT provided\n")),
        Kind.NO_TTL: _always(_google(400, "the TTL header must be specified\n")),
        Kind.BAD_TTL: _always(_google(400, "the TTL header is invalid\n")),
        Kind.BAD_URGENCY: _always(_google(400, "the Urgency header is invalid\n")),
        Kind.BAD_TOPIC: _always(_google(400, "the Topic header is invalid\n")),
        Kind.TOO_LARGE: _always(_google(413, "Payload Too Large\n")),
        Kind.THROTTLE: lambda pause: _google(
            429, "Too Many Requests\n", **{"Retry-After": str(pause)}
        ),
        Kind.DROPPED: _always(_google(500, "Internal Server Error\n")),
        Kind.SERVER_ERROR: _always(_google(500, "Internal Server Error\n")),
        Kind.UNAVAILABLE: lambda pause: _google(
            503, "Service Unavailable\n", **{"Retry-After": str(pause)}
        ),
    },
)
MOZILLA = PushService(
    name="Mozilla",
    browser="Firefox",
    domain="push.services.mozilla.com",
    accept=lambda origin: {"Location": f"{origin}/m/gAAAAABn{secrets.token_urlsafe(24)}"},
    refusals={
        Kind.NOT_FOUND: _always(_mozilla(404, 102, "Not Found", "Request did not validate")),
        Kind.GONE: _always(_mozilla(410, 106, "Gone", "No such subscription")),
        Kind.MISMATCH: _always(_mozilla(401, 109, "Unauthorized", "VAPID public key mismatch")),
        Kind.UNAUTHORIZED: _always(
            _mozilla(401, 109, "Unauthorized", "Request did not validate Invalid bearer token")
        ),
        Kind.NO_TTL: _always(_mozilla(400, 111, "Bad Request", "Missing TTL Header")),
        Kind.BAD_TTL: _always(_mozilla(400, 112, "Bad Request", "Invalid TTL header value")),
        Kind.BAD_URGENCY: _always(_mozilla(400, 111, "Bad Request", "Invalid Urgency")),
        Kind.BAD_TOPIC: _always(_mozilla(400, 113, "Bad Request", "Invalid Topic header value")),
        Kind.TOO_LARGE: _always(_mozilla(413, 104, "Payload Too Large", "Data payload too large")),
        Kind.THROTTLE: lambda pause: _mozilla(
            429, 201, "Too Many Requests", "Too many messages", **{"Retry-After": str(pause)}
        ),
        Kind.DROPPED: _always(_mozilla(502, 901, "Bad Gateway", "Bridge authentication error")),
        Kind.SERVER_ERROR: _always(_mozilla(500, 999, "Internal Server Error", "Unknown error")),
        Kind.UNAVAILABLE: lambda pause: _mozilla(
            503, 201, "Service Unavailable", "Use back-off", **{"Retry-After": str(pause)}
        ),
    },
)
APPLE = PushService(
    name="Apple",
    browser="Safari",
    domain="push.apple.com",
    accept=lambda _origin: {"apns-id": _apple_id()},
    refusals={
        Kind.NOT_FOUND: lambda _pause: _apple(404, "BadPath"),
        Kind.GONE: lambda _pause: _apple(410, "Unregistered"),
        Kind.MISMATCH: lambda _pause: _apple(400, "VapidPkHashMismatch"),
        Kind.UNAUTHORIZED: lambda _pause: _apple(403, "BadJwtToken"),
        Kind.NO_TTL: lambda _pause: _apple(400, "BadTtl"),
        Kind.BAD_TTL: lambda _pause: _apple(400, "BadTtl"),
        Kind.BAD_URGENCY: lambda _pause: _apple(400, "BadUrgency"),
        Kind.BAD_TOPIC: lambda _pause: _apple(400, "BadWebPushTopic"),
        Kind.TOO_LARGE: lambda _pause: _apple(413, "PayloadTooLarge"),
        Kind.THROTTLE: lambda _pause: _apple(429, "TooManyRequests"),
        Kind.DROPPED: lambda _pause: _apple(500, "InternalServerError"),
        Kind.SERVER_ERROR: lambda _pause: _apple(500, "InternalServerError"),
        Kind.UNAVAILABLE: lambda _pause: _apple(503, "ServiceUnavailable"),
    },
)
MICROSOFT = PushService(
    name="Microsoft",
    browser="Edge",
    domain="notify.windows.com",
    accept=lambda _origin: {
        "X-WNS-STATUS": "received",
        "X-WNS-NOTIFICATIONSTATUS": "received",
        "X-WNS-MSG-ID": secrets.token_hex(8).upper(),
    },
    refusals={
        Kind.NOT_FOUND: _always(_microsoft(404)),
        Kind.GONE: _always(_microsoft(410)),
        Kind.MISMATCH: _always(_microsoft(401)),
        Kind.UNAUTHORIZED: _always(_microsoft(401)),
        Kind.NO_TTL: _always(_microsoft(400, text="Ttl is missing.")),
        Kind.BAD_TTL: _always(_microsoft(400, text="Ttl value conflicts with X-WNS-Cache-Policy.")),
        Kind.BAD_URGENCY: _always(_microsoft(400, text="Urgency is invalid.")),
        Kind.BAD_TOPIC: _always(_microsoft(400, text="Topic is invalid.")),
        Kind.TOO_LARGE: _always(_microsoft(413)),
        Kind.THROTTLE: _always(_microsoft(201, "channelthrottled")),
        Kind.DROPPED: _always(_microsoft(201, "dropped")),
        Kind.SERVER_ERROR: _always(_microsoft(500)),
        Kind.UNAVAILABLE: _always(_microsoft(503)),
    },
)
SERVICES = (GOOGLE, MOZILLA, APPLE, MICROSOFT)


def service_of(host: str) -> PushService | None:
    """Return the push service of a host, or None for a host of nobody."""
    return next((s for s in SERVICES if host == s.domain or host.endswith(f".{s.domain}")), None)
