"""Problem documents for requests that the server rejects before a view."""

import json
from dataclasses import dataclass
from http import HTTPStatus

from gunicorn.http import errors

from ..platform import doc_pages
from .connection import MAX_BODY, BodyTooLargeError

_FAILED = (
    500,
    "internal_error",
    "The service failed. Its log has the reason under the request ID.",
)
_MALFORMED = (400, "malformed_request", "This is not a well-formed HTTP/1.1 request.")
_TOO_SLOW = "The request did not come in time: send its head and its body faster."
_TOO_MANY_HEADERS = "A header is too long, or there are too many."
_TRANSFER_CODING = "Transfer-Encoding may only say chunked."


class ClientTooSlowError(Exception):
    """A request was not complete before its deadline."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response, after which the connection closes."""

    status: int
    code: str
    detail: str

    def as_bytes(self, *, request_id: str) -> bytes:
        """Return the response."""
        title = HTTPStatus(self.status).phrase
        problem = {
            "type": doc_pages.problem_type(self.code),
            "title": title,
            "status": self.status,
            "detail": self.detail,
            "instance": "",
            "code": self.code,
            "request_id": request_id,
            "errors": [],
        }
        body = json.dumps(problem).encode()
        head = (
            f"HTTP/1.1 {self.status} {title}\r\nConnection: close\r\n"
            f"Content-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n"
            f"X-Request-Id: {request_id}\r\nCache-Control: no-store\r\n\r\n"
        )
        return head.encode() + body


REFUSALS: tuple[tuple[type[BaseException], int, str, str], ...] = (
    # Errors in the response. gunicorn derives them from the errors of a request.
    (errors.InvalidResponseHeader, *_FAILED),
    (errors.InvalidResponseHeaderName, *_FAILED),
    (errors.ConfigurationProblem, *_FAILED),
    (ClientTooSlowError, 408, "request_timeout", _TOO_SLOW),
    (BodyTooLargeError, 413, "too_large", f"A body may have at most {MAX_BODY} bytes."),
    (errors.LimitRequestLine, 414, "uri_too_long", "The request's first line is too long."),
    (errors.LimitRequestHeaders, 431, "headers_too_large", _TOO_MANY_HEADERS),
    (errors.ExpectationFailed, 417, "expectation_failed", "Expect may only say 100-continue."),
    (errors.UnsupportedTransferCoding, 501, "unsupported_transfer_coding", _TRANSFER_CODING),
    (errors.ParseException, *_MALFORMED),
    (errors.NoMoreData, *_MALFORMED),
    # The parser raises StopIteration at the beginning of a request.
    (StopIteration, *_MALFORMED),
)
REFUSED = tuple(kind for kind, *_ in REFUSALS)


def refusal_of(error: BaseException) -> Refusal:
    """Return the response to an error."""
    found = (refusal for kind, *refusal in REFUSALS if isinstance(error, kind))
    return Refusal(*next(found, _FAILED))


def refusal_with(status: int) -> Refusal:
    """Return the response with a status that gunicorn chose."""
    return Refusal(*next((row[1:] for row in REFUSALS if row[1] == status), _FAILED))
