"""Reads the JSON of a Google service account, also as environments change it on the way."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 64 * 1024
REQUIRED_FIELDS = ("client_email", "private_key")
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_LINE = 64


class OtherFileError(ValueError):
    """The JSON isn't a service account's. The message names what it lacks, and no secret."""


def read(source: str) -> dict[str, Any]:
    """Return the service account in a file or in JSON text, with all of REQUIRED_FIELDS.

    Raises OtherFileError for other JSON, and OSError, ValueError, or RecursionError.
    Quotes around the text, line breaks in a value, and a key whose line breaks are escaped twice or
    became blanks are repaired: an env file keeps the first, and shells make the others.
    """
    text = _unquoted(source.strip("\ufeff \t\r\n"))
    if not text.startswith("{"):
        text = _read_file(text)
    found = json.loads(text, strict=False)
    account = found if isinstance(found, dict) else {}
    if missing := [name for name in REQUIRED_FIELDS if not account.get(name)]:
        raise OtherFileError(
            f"The JSON has no {' and no '.join(missing)}. Use the key of a service account, "
            "neither the configuration of an app nor another kind of credentials."
        )
    key = account["private_key"]
    return account | {"private_key": _repaired(key)} if isinstance(key, str) else account


def _unquoted(text: str) -> str:
    is_quoted = text[:1] in ("'", '"') and text[-1] == text[0]
    inner = text[1:-1].strip() if is_quoted else text
    return inner if inner.startswith("{") else text


def _read_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES)
    except ValueError as error:
        # A path with a NUL.
        raise OSError(str(error)) from error
    return content.decode("utf-8-sig")


def _repaired(key: str) -> str:
    """Return a private key with the lines of PEM. Any other text is unchanged."""
    found = _PEM.search(key)
    if found is None:
        return key
    body = "".join(re.sub(r"\\+[nr]", " ", found[2]).split())
    lines = textwrap.wrap(body, _PEM_LINE)
    return "\n".join([f"-----BEGIN {found[1]}-----", *lines, f"-----END {found[1]}-----", ""])
