"""Verifies Signature Version 4, with AWS's own errors."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from ...credentials import AwsAccount
from ..base import IncomingRequest

TOLERANCE = timedelta(minutes=5)
_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[A-Z0-9]+)/(?P<day>[0-9]{8})/(?P<region>[a-z0-9-]+)"
    r"/(?P<service>[a-z0-9-]+)/aws4_request, ?SignedHeaders=(?P<names>[a-z0-9;-]+), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_TIME = "%Y%m%dT%H%M%SZ"
NOT_SIGNED = frozenset(
    {"authorization", "user-agent", "accept", "accept-encoding", "content-length", "connection"}
)
"""Headers that a client need not sign."""


@dataclass(frozen=True, slots=True)
class AwsProblem:
    """An error of AWS: its status, its name, and its text."""

    status: int
    name: str
    message: str


MISSING = AwsProblem(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
INCOMPLETE = AwsProblem(
    403,
    "IncompleteSignatureException",
    "Authorization header requires 'Credential', 'Signature', and 'SignedHeaders'.",
)
WRONG_SIGNATURE = (
    "The request signature we calculated does not match the signature you provided. Check your AWS "
    "Secret Access Key and signing method. Consult the service documentation for details."
)
INVALID_TOKEN = "The security token included in the request is invalid."
REFUSED_KEYS: Mapping[str, AwsProblem] = {
    "AKIAREVOKED00000001": AwsProblem(403, "UnrecognizedClientException", INVALID_TOKEN),
    "ASIAEXPIRED00000001": AwsProblem(
        403, "ExpiredTokenException", "The security token included in the request is expired"
    ),
    "AKIADENIED000000001": AwsProblem(
        403,
        "AccessDeniedException",
        "User: arn:aws:iam::000000000000:user/denied is not authorized to perform this action",
    ),
}
"""Errors by access key. Each has the secret of the sandbox, and any other key is unknown."""


def problem(
    request: IncomingRequest, *, account: AwsAccount, service: str, now: datetime
) -> AwsProblem | None:
    """Return why a request isn't authentic, or None."""
    authorization = request.headers.get("authorization", "")
    if not authorization:
        return MISSING
    found = _HEADER.fullmatch(authorization)
    if found is None:
        return INCOMPLETE
    if found["key"] not in (account.access_key_id, *REFUSED_KEYS):
        return AwsProblem(403, "UnrecognizedClientException", INVALID_TOKEN)
    text = (
        _scope_problem(found, account=account, service=service)
        or _header_problem(request, found["names"])
        or _time_problem(request.headers.get("x-amz-date", ""), day=found["day"], now=now)
        or _signature_problem(request, found, secret=account.secret_access_key)
    )
    if text is not None:
        return AwsProblem(403, "InvalidSignatureException", text)
    return REFUSED_KEYS.get(found["key"])


def _scope_problem(found: re.Match[str], *, account: AwsAccount, service: str) -> str | None:
    if found["region"] != account.region:
        return f"Credential should be scoped to a valid region, not '{found['region']}'. "
    if found["service"] != service:
        return f"Credential should be scoped to correct service: '{service}'. "
    return None


def _header_problem(request: IncomingRequest, names: str) -> str | None:
    signed = names.split(";")
    if signed != sorted(set(signed)):
        return "The names of the signed headers must be sorted."
    if "host" not in signed:
        return "'Host' must be a 'SignedHeader' in the AWS Authorization."
    for name in request.headers:
        if name not in signed and name not in NOT_SIGNED:
            return f"'{name}' must be a 'SignedHeader' in the AWS Authorization."
    missing = [name for name in signed if name not in request.headers]
    return f"The signed header {missing[0]} is missing." if missing else None


def _time_problem(text: str, *, day: str, now: datetime) -> str | None:
    try:
        at = datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return "AWS authentication requires a valid Date or x-amz-date header"
    if text[:8] != day:
        return "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date."
    shown = f"{now:{_TIME}}"
    if at < now - TOLERANCE:
        limit = f"{now - TOLERANCE:{_TIME}}"
        return f"Signature expired: {text} is now earlier than {limit} ({shown} - 5 min.)"
    if at > now + TOLERANCE:
        limit = f"{now + TOLERANCE:{_TIME}}"
        return f"Signature not yet current: {text} is still later than {limit} ({shown} + 5 min.)"
    return None


def _signature_problem(
    request: IncomingRequest, found: re.Match[str], *, secret: str
) -> str | None:
    query = "&".join(
        f"{quote(name, safe='~')}={quote(value, safe='~')}"
        for name, value in sorted(request.query.items())
    )
    names = found["names"].split(";")
    values = (re.sub(" +", " ", request.headers[name].strip()) for name in names)
    canonical = (
        request.method,
        quote(quote(request.path, safe="/~"), safe="/~"),
        query,
        *(f"{name}:{value}" for name, value in zip(names, values, strict=True)),
        "",
        found["names"],
        hashlib.sha256(request.body or b"").hexdigest(),
    )
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    scope = f"{found['day']}/{found['region']}/{found['service']}/aws4_request"
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    text = f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{scope}\n{digest}"
    expected = hmac.new(key, text.encode(), "sha256").hexdigest()
    return None if hmac.compare_digest(expected, found["signature"]) else WRONG_SIGNATURE
