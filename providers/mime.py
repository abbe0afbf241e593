"""Builds MIME messages that any server takes: 7-bit, in lines of at most 76 characters.

The standard library writes 8-bit text, looks for long lines by ``str.splitlines``, which splits
where mail does not, and makes one encoded word of a long name. RFC 5322, RFC 2045, RFC 2047.
"""

import base64
import binascii
import re
import secrets
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.message import Message as EmailPart
from email.utils import formatdate, quote
from urllib.parse import quote as percent_encode

from .contract import SendRequest
from .mail import AttachmentFile, ascii_email, extra_headers, reply_to, sender_of

NEWLINE = "\r\n"
MAX_LINE = 76
"""Characters of a line with an encoded word (RFC 2047, 2), and of an encoded body."""
MAX_WORD = 75
"""Characters of an encoded word."""
MAX_PLAIN_TOKEN = 200
"""A longer text without a blank is encoded, since a line has at most 998 characters."""
_SAFE_IN_WORD = frozenset(string.ascii_letters + string.digits + "!*+/-")
"""Characters that stand for themselves in an encoded word of a name (RFC 2047, 5)."""
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]+")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_FOLD = re.compile(r" (?=[^ ])")
_FROM_LINE = re.compile(rb"^From [^\r\n]*", re.MULTILINE)
_ADDRESS = re.compile(r"[!-~]+@[!-~]+")
_TOKEN = re.compile(r"[A-Za-z0-9!#$&^_.+-]+")

Header = tuple[str, str]
_CLUSTER = re.compile(
    # A character with what is joined to it: marks, variation selectors, skin tones, joiners.
    "[^\u200d](?:[\u0300-\u036f\u064b-\u065f\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]"
    "|\u200d[^\u200d]|\u200d$)*|\u200d",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """An encoded email and its envelope."""

    message_id: str
    sender: str
    recipient: str = field(repr=False)
    raw: bytes = field(repr=False)


def build_mail(
    request: SendRequest,
    *,
    sender: str,
    default_reply_to: str | None,
    files: Sequence[AttachmentFile],
    headers: Sequence[Header] = (),
) -> Mail:
    """Build an email, with more ``headers``. Raises ValueError if a field is invalid.

    ``sender`` and ``default_reply_to`` are those of emails whose brand has none.
    """
    message = request.message
    mailbox = sender_of(message, default=sender)
    recipient = ascii_email(request.recipient)
    message_id = f"<{request.reference}@{mailbox.domain}>"
    lines = [
        text_header("Subject", message.subject or ""),
        address_header("From", mailbox.name, mailbox.address),
        address_header("To", request.recipient_name or "", recipient),
        ("Date", formatdate()),
        ("Message-ID", message_id),
        # On one line, since some mail clients misread a folded URL.
        *extra_headers(message).items(),
        *headers,
    ]
    if reply_address := reply_to(message, default=default_reply_to):
        lines.append(address_header("Reply-To", *reply_address))
    raw = build_message(lines, text=message.text, html=message.html, files=files)
    return Mail(message_id=message_id, sender=mailbox.address, recipient=recipient, raw=raw)


def text_header(name: str, text: str) -> Header:
    """Return a header with any text, such as the subject. Raises ValueError for a line break."""
    lines = _words(text, indent=len(f"{name}: ")) if _needs_words(text) else _plain_lines(text)
    return name, f"{NEWLINE} ".join(lines)


def address_header(name: str, display_name: str, address: str) -> Header:
    """Return a header with one mailbox. Raises ValueError."""
    if not _ADDRESS.fullmatch(address) or {"<", ">", ","} & set(address):
        raise ValueError("the address can't stand in a header")
    if not display_name:
        return name, address
    if _needs_words(display_name):
        lines = list(_words(display_name, indent=len(f"{name}: ")))
    else:
        is_atoms = _ATOMS.fullmatch(display_name) is not None
        lines = list(_plain_lines(display_name if is_atoms else f'"{quote(display_name)}"'))
    before = len(f"{name}: ") if len(lines) == 1 else 1
    if before + len(f"{lines[-1]} <{address}>") > MAX_LINE:
        lines.append(f"<{address}>")
    else:
        lines[-1] += f" <{address}>"
    return name, f"{NEWLINE} ".join(lines)


def build_message(
    headers: Sequence[Header], *, text: str, html: str | None, files: Sequence[AttachmentFile]
) -> bytes:
    """Return a message with CRLF line ends. Raises UnicodeEncodeError for half a character."""
    body = _text_part("plain", text)
    if html:
        body = _multipart("alternative", [body, _text_part("html", html)])
    if files:
        body = _multipart("mixed", [body, *map(_file_part, files)])
    lines = [f"{name}: {value}" for name, value in (*headers, ("MIME-Version", "1.0"))]
    return f"{NEWLINE.join(lines)}{NEWLINE}".encode("ascii") + body


def _needs_words(text: str) -> bool:
    if "\r" in text or "\n" in text:
        raise ValueError("a header has no line break")
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    # What looks like an encoded word would be decoded.
    has_long_token = any(len(token) > MAX_PLAIN_TOKEN for token in text.split(" "))
    return not is_plain or "=?" in text or has_long_token


def _plain_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, broken before single blanks, which unfolding restores."""
    line = ""
    for token in _FOLD.split(text):
        if line and len(line) + 1 + len(token) > MAX_LINE - len("Reply-To: "):
            yield line
            line = token
        else:
            line = f"{line} {token}" if line else token
    yield line


def _words(text: str, *, indent: int, limit: int = MAX_WORD) -> Iterator[str]:
    """Yield encoded words of at most ``limit`` characters.

    The first leaves room for the ``indent`` characters already on its line.
    """
    kind, encode = min(
        ("q", _quoted), ("b", _base64_text), key=lambda encoding: len(encoding[1](text))
    )
    room = min(limit, MAX_LINE - indent) - len(f"=?utf-8?{kind}??=")
    word = ""
    for cluster in _CLUSTER.findall(text):
        if word and len(encode(word + cluster)) > room:
            yield f"=?utf-8?{kind}?{encode(word)}?="
            word, room = "", limit - len(f"=?utf-8?{kind}??=")
        for character in cluster:
            # A cluster may be longer than a word.
            if len(encode(word + character)) > room:
                yield f"=?utf-8?{kind}?{encode(word)}?="
                word, room = "", limit - len(f"=?utf-8?{kind}??=")
            word += character
    yield f"=?utf-8?{kind}?{encode(word)}?="


def _quoted(text: str) -> str:
    return "".join(
        "_"
        if character == " "
        else character
        if character in _SAFE_IN_WORD
        else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    return "".join(f"={byte:02X}" for byte in character.encode())


def _base64_text(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _text_part(subtype: str, text: str) -> bytes:
    raw = text.encode()
    lines = [line.encode() for line in _LINE_BREAK.split(text)]
    # Encoded line by line: nothing but a line break of the text becomes one of the mail.
    quoted = b"\r\n".join(
        binascii.b2a_qp(line, istext=False).replace(b"=\n", b"=\r\n") for line in lines
    )
    # Stores of mail change such a line, and break signatures (RFC 2049, 3).
    quoted = _FROM_LINE.sub(
        lambda found: (b"=46" if len(found[0]) < MAX_LINE - 1 else b"=46=\r\n") + found[0][1:],
        quoted,
    )
    is_shorter = len(quoted) <= len(raw) * 3 // 2
    transfer, body = ("quoted-printable", quoted) if is_shorter else ("base64", _base64(raw))
    head = f'Content-Type: text/{subtype}; charset="utf-8"'
    return f"{head}\r\nContent-Transfer-Encoding: {transfer}\r\n\r\n".encode() + body + b"\r\n"


def _base64(raw: bytes) -> bytes:
    encoded = base64.b64encode(raw)
    return b"\r\n".join(encoded[n : n + MAX_LINE] for n in range(0, len(encoded), MAX_LINE))


def _multipart(subtype: str, parts: Sequence[bytes]) -> bytes:
    # "=_" is in no encoded body.
    boundary = f"=_{secrets.token_hex(16)}"
    head = f'Content-Type: multipart/{subtype};\r\n boundary="{boundary}"\r\n\r\n'.encode()
    line = f"--{boundary}".encode()
    return head + b"".join(line + b"\r\n" + part for part in parts) + line + b"--\r\n"


def _file_part(file: AttachmentFile) -> bytes:
    # As base64: as text, its line ends would change.
    lines = [
        f"Content-Type: {_file_type(file)}",
        "Content-Transfer-Encoding: base64",
        f"Content-Disposition: attachment{_parameter('filename', file.filename)}",
    ]
    head = NEWLINE.join(lines).encode("ascii")
    return head + b"\r\n\r\n" + _base64(file.content) + b"\r\n"


def _file_type(file: AttachmentFile) -> str:
    header = EmailPart()
    header["Content-Type"] = file.content_type
    (kind, _), *parameters = header.get_params() or [("application/octet-stream", "")]
    is_text = kind.startswith("text/") and "charset" not in {name.lower() for name, _ in parameters}
    if is_text and _is_utf8(file.content):
        # Without one, the text would be US-ASCII (RFC 2046, 4.1.2).
        parameters.append(("charset", "utf-8"))
    text = kind + "".join(_parameter(name, value) for name, value in parameters)
    has_name = "name" in {name.lower() for name, _ in parameters}
    return text if has_name else text + _name_of_old_clients(file.filename)


def _name_of_old_clients(filename: str) -> str:
    """Return the parameter by which clients without RFC 2231 name an attachment.

    They decode an encoded word in it, although RFC 2047 has none there. Others read the filename.
    """
    if not _needs_words(filename):
        return _parameter("name", filename) if len(filename) < MAX_LINE - 20 else ""
    # Behind a blank, and before a quotation mark.
    limit = MAX_LINE - 2
    words = f"{NEWLINE} ".join(_words(filename, indent=len(' name="') + 1, limit=limit))
    return f';{NEWLINE} name="{words}"'


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\x1b" not in content


def _parameter(name: str, value: str) -> str:
    """Return a parameter on a line of its own, in the form of RFC 2231 if necessary."""
    if _TOKEN.fullmatch(value) and len(value) < MAX_LINE // 2:
        return f";{NEWLINE} {name}={value}"
    if value.isascii() and value.isprintable() and "=?" not in value and len(value) < MAX_LINE - 20:
        return f';{NEWLINE} {name}="{quote(value)}"'
    encoded = percent_encode(value, safe="")
    parts = re.findall(r"(?:%..|[^%]){1,18}", encoded)
    if len(parts) == 1:
        return f";{NEWLINE} {name}*=utf-8''{encoded}"
    parts[0] = f"utf-8''{parts[0]}"
    return "".join(f";{NEWLINE} {name}*{n}*={part}" for n, part in enumerate(parts))
