"""Which files a mail may carry along. Nothing is fetched and no name is resolved here.

What a host's name stands for when the mail is sent is looked at then:
:mod:`providers.mail`.
"""

import mimetypes
import re
from collections.abc import Sequence

from django.conf import settings

from domain.content import Attachment, attachment_host

from .. import templates
from .addresses import has_control_characters
from .links import LinkProblem, check_public_url
from .problems import Collector
from .requests import AttachmentRequest

PLACE = "/content/attachments"
ANY_TYPE = "application/octet-stream"
"""What a file is whose name tells nothing."""
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
_MADE_OF_PARTS = ("multipart/", "message/")
_NO_NAME = re.compile(r'[/\\:*?"<>|;]|^\.|\.$')
_TYPES = mimetypes.MimeTypes(filenames=())
"""Python's own table: what the machine has besides differs from one to the next."""


def check_attachments(
    given: Sequence[AttachmentRequest], problems: Collector
) -> tuple[Attachment, ...]:
    """Return the attachments a mail is to have; what is wrong with any of them is noted.

    Their hosts must be public names that the setting ATTACHMENT_HOSTS lists, letter for letter.
    """
    if not given:
        return ()
    if not settings.ATTACHMENT_HOSTS:
        problems.add(PLACE, "not_enabled", "No host is allowed here to fetch attachments from.")
        return ()
    return tuple(_checked(one, f"{PLACE}/{i}", problems) for i, one in enumerate(given))


def _checked(one: AttachmentRequest, place: str, problems: Collector) -> Attachment:
    filename = templates.without_invisible(one.filename).strip()
    _check_url(one.url, f"{place}/url", problems)
    _check_filename(filename, f"{place}/filename", problems)
    content_type = (one.content_type or _type_of(filename)).lower()
    _check_type(content_type, f"{place}/content_type", problems)
    return Attachment(url=one.url, filename=filename, content_type=content_type)


def _check_url(url: str, place: str, problems: Collector) -> None:
    try:
        check_public_url(url, schemes=("https",))
    except LinkProblem as problem:
        problems.add(place, "invalid_url", str(problem))
        return
    host = attachment_host(url)
    if host is None or not url.isascii():
        problems.add(place, "invalid_url", "Expected a URL in ASCII, without a port.")
    elif host not in settings.ATTACHMENT_HOSTS:
        problems.add(place, "host_not_allowed", "Attachments are not fetched from this host.")


def _check_filename(name: str, place: str, problems: Collector) -> None:
    if not name:
        problems.add(place, "blank", "A file has a name.")
    elif has_control_characters(name) or _NO_NAME.search(name):
        problems.add(place, "invalid_filename", "Expected the name of a file such as invoice.pdf.")


def _check_type(content_type: str, place: str, problems: Collector) -> None:
    if not _TYPE.fullmatch(content_type) or content_type.startswith(_MADE_OF_PARTS):
        problems.add(place, "invalid_content_type", "Expected a media type such as text/csv.")


def _type_of(filename: str) -> str:
    """Return the type a name tells of; a packed file is that, whatever is in it."""
    content_type, packing = _TYPES.guess_type(filename)
    if content_type is None or packing is not None or content_type.startswith(_MADE_OF_PARTS):
        return ANY_TYPE
    return content_type
