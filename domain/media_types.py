"""Media types of attachments: their form, their parameters, and guesses from file names. Pure."""

import mimetypes
import re
from dataclasses import dataclass

DEFAULT = "application/octet-stream"
_NAME = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*"
_WORD = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_TYPE = re.compile(rf"({_NAME}/{_NAME}) *", re.ASCII)
# Printable ASCII alone: a line break in a header would begin another one.
_PARAMETER = re.compile(rf';\s*({_WORD})=(?:({_WORD})|"((?:[ !#-\[\]-~]|\\[ -~])*)")\s*', re.ASCII)
_COMPOSITE_TYPES = ("multipart/", "message/")
_OFFICE = "application/vnd.openxmlformats-officedocument"
_BY_SUFFIX = {
    # RFC 5545 and RFC 7763: both are UTF-8 unless the type says otherwise, which MIME doesn't know.
    "ics": "text/calendar; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "vcf": "text/vcard; charset=utf-8",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
    "pkpass": "application/vnd.apple.pkpass",
    "webp": "image/webp",
    "avif": "image/avif",
    "heic": "image/heic",
}
"""Types that Python's table lacks, or has in a form that depends on its version."""
_MIME_TYPES = mimetypes.MimeTypes(filenames=())
"""Python's own table only: system tables differ between machines."""


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type, such as ``text/calendar``, with its parameters in their order."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the value of a header Content-Type."""
        return "; ".join([self.name, *(f"{key}={_quoted(text)}" for key, text in self.parameters)])


def parse_media_type(text: str) -> MediaType | None:
    """Return a media type with its parameters, or None for another text or a composite type.

    Names are lowered; the values of parameters keep their case, such as ``method=REQUEST``.
    """
    found = _TYPE.match(text)
    if found is None or found[1].lower().startswith(_COMPOSITE_TYPES):
        return None
    parameters: dict[str, str] = {}
    at = found.end()
    while at < len(text):
        parameter = _PARAMETER.match(text, at)
        if parameter is None or (name := parameter[1].lower()) in parameters:
            return None
        quoted = parameter[3]
        parameters[name] = parameter[2] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = parameter.end()
    return MediaType(found[1].lower(), tuple(parameters.items()))


def guess_media_type(filename: str) -> MediaType:
    """Return the usual media type of a file with this name."""
    suffix = filename.rpartition(".")[2].lower() if "." in filename else ""
    guessed, encoding = _MIME_TYPES.guess_type(filename)
    known = _BY_SUFFIX.get(suffix) or (guessed if encoding is None else None)
    return parse_media_type(known or DEFAULT) or MediaType(DEFAULT)


def _quoted(text: str) -> str:
    if re.fullmatch(_WORD, text, re.ASCII):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
