"""One request by libcurl: how it is made, and what can happen to it on the wire.

No redirects, no proxy or netrc from the environment, and nothing is sent twice; a request has a
deadline and an answer has a cap. What failed before the first byte left is told from what failed
after: only the latter may have been delivered.
"""

import io
import re
import ssl

import pycurl

from ..errors import ChannelUnavailable, FailureCode, ProviderError, TransientError
from .http import CONNECT_TIMEOUT, UNUSABLE, Request, Response

MAX_BODY = 64 * 1024
MAX_HEADERS = 100
"""Lines; a provider sends some twenty."""
MAX_HEADER_BYTES = 64 * 1024
FIRST_REFUSAL = 300
"""From this status on, an answer says that the message was not taken."""
REFUSED = 0
"""What a callback returns instead of a number of bytes to end a transfer."""
_STATUS_LINE = b"HTTP/"
_UNFIT = re.compile(r"[\x00-\x1f\x7f]")
_NO_HOST = frozenset({pycurl.E_COULDNT_RESOLVE_HOST})
_NO_TLS = frozenset(
    {
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER,
        pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_INVALIDCERTSTATUS,
    }
)
_NO_ADDRESS = frozenset({pycurl.E_URL_MALFORMAT, pycurl.E_UNSUPPORTED_PROTOCOL})


def new_handle() -> pycurl.Curl:
    """Return a handle with all that is the same for every request."""
    handle = pycurl.Curl()
    options = {
        pycurl.NOSIGNAL: 1,
        pycurl.POST: 1,
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.PROXY: "",
        pycurl.NOPROXY: "*",
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        # Nothing packed is asked for; what comes packed all the same is unpacked.
        pycurl.ACCEPT_ENCODING: "identity",
        pycurl.SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
        # Firewalls forget a connection that lies idle: what is sent on it has an unknown outcome.
        pycurl.TCP_KEEPALIVE: 1,
        pycurl.TCP_KEEPIDLE: 30,
        pycurl.TCP_KEEPINTVL: 10,
    }
    for option, value in options.items():
        handle.setopt(option, value)
    trusted = ssl.get_default_verify_paths()
    # The file alone: libcurl reads it once for many connections, a folder for each.
    if trusted.cafile:
        handle.setopt(pycurl.CAINFO, trusted.cafile)
    elif trusted.capath:
        handle.setopt(pycurl.CAPATH, trusted.capath)
    return handle


class Transfer:
    """A request on its way, and as much of its answer as has come."""

    def __init__(self, handle: pycurl.Curl, request: Request) -> None:
        """Prepare ``handle``; raises ChannelUnavailable for what cannot be a request."""
        self._handle = handle
        self._body = io.BytesIO(request.body)
        self._left = False
        """Bytes may have left."""
        self._has_headers = False
        """All of the answer's headers have come, and so its status is no interim one."""
        self._lines: list[bytes] = []
        self._parts: list[bytes] = []
        self._room, self._header_room = MAX_BODY, MAX_HEADER_BYTES
        try:
            self._prepare(request)
        except (ValueError, pycurl.error) as error:
            # A line break in a key, a host that is none. The error repeats the key: we do not.
            raise ChannelUnavailable(UNUSABLE) from error

    def _prepare(self, request: Request) -> None:
        if not request.url.startswith(("https://", "http://")):
            # libcurl would take it for http, and the key would go in clear text.
            raise ValueError("no scheme")
        handle, milliseconds = self._handle, max(int(request.timeout * 1000), 1)
        handle.setopt(pycurl.URL, _fit(request.url))
        handle.setopt(pycurl.HTTPHEADER, [*map(_line, request.headers.items()), b"Expect:"])
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, min(int(CONNECT_TIMEOUT * 1000), milliseconds))
        handle.setopt(pycurl.TIMEOUT_MS, milliseconds)
        # libcurl repeats a request by itself if a connection that it used before breaks without an
        # answer, even if the server has read all of it. It cannot where the body is read from a
        # function and there is none to wind it back.
        handle.setopt(pycurl.POSTFIELDSIZE_LARGE, len(request.body))
        handle.setopt(pycurl.READFUNCTION, self._read)
        handle.setopt(pycurl.HEADERFUNCTION, self._take_header)
        handle.setopt(pycurl.WRITEFUNCTION, self._take_body)

    def outcome(self, code: int) -> Response | ProviderError:
        """Return what came of it: ``code`` is libcurl's, 0 if all went well."""
        status = self._handle.getinfo(pycurl.RESPONSE_CODE)
        is_refusal = self._has_headers and status >= FIRST_REFUSAL
        if code == pycurl.E_OK or is_refusal:
            # Of a refusal as much as has come and is read, for its status says what matters.
            body = b"".join(self._parts)[:MAX_BODY]
            return Response(status=status, headers=_headers(self._lines), body=body)
        if not self._left and not self._handle.getinfo(pycurl.REQUEST_SIZE):
            return _not_sent(code)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return TransientError(
                "The provider did not answer in time.", code=FailureCode.TIMEOUT, ambiguous=True
            )
        return TransientError(
            "The answer is too long to read."
            if self._room < 0
            else "The connection broke before the provider had answered.",
            code=FailureCode.CONNECTION_LOST,
            ambiguous=True,
        )

    def release(self) -> None:
        """Forget what was said: the handle waits for its next request, maybe for hours."""
        self._body = io.BytesIO()
        self._lines, self._parts = [], []
        self._handle.unsetopt(pycurl.HTTPHEADER)

    def _read(self, size: int) -> bytes:
        self._left = True
        return self._body.read(size)

    def _take_header(self, line: bytes) -> int | None:
        if line.startswith(_STATUS_LINE):
            self._lines.clear()
            self._header_room, self._has_headers = MAX_HEADER_BYTES, False
        elif not line.strip():
            self._has_headers = True
        self._lines.append(line)
        self._header_room -= len(line)
        return REFUSED if self._header_room < 0 or len(self._lines) > MAX_HEADERS else None

    def _take_body(self, part: bytes) -> int | None:
        self._parts.append(part)
        self._room -= len(part)
        return REFUSED if self._room < 0 else None


def _line(header: tuple[str, str]) -> bytes:
    """Return a header's line; raises ValueError if it cannot be one."""
    return _fit(": ".join(header)).encode("latin-1")


def _fit(text: str) -> str:
    if _UNFIT.search(text):
        raise ValueError("a control character")
    return text


def _headers(lines: list[bytes]) -> dict[str, str]:
    """Return the headers of an answer, their names in lower case."""
    pairs = (line.decode("latin-1").partition(":") for line in lines if b":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _not_sent(code: int) -> ProviderError:
    if code in _NO_ADDRESS:
        return ChannelUnavailable(UNUSABLE)
    if code in _NO_HOST:
        reason = "The provider's host name has no address."
    elif code in _NO_TLS:
        reason = "No secure connection to the provider."
    elif code == pycurl.E_OPERATION_TIMEDOUT:
        reason = "The provider did not take the connection in time."
    else:
        reason = "The provider refused the connection."
    return TransientError(reason, code=FailureCode.CONNECTION_FAILED)
