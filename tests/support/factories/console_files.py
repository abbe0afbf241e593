"""Files that staff upload and check on the pages of the console."""

import re
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from domain.time import utc_now
from notifications.catalog import types
from tests.support.factories import files

START = "/admin/files/"
NAME = "customers.csv"


def allow(slug: str = files.TYPE, **fields: Any) -> None:
    """Let staff send a type."""
    types.store_type(slug, {"console_send": True} | fields, now=utc_now())
    types.invalidate_types()


def page_of(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def upload(client: Client, content: bytes, *, slug: str = files.TYPE, **fields: str) -> Any:
    """Send the form of a new file as a browser without scripts does."""
    given = SimpleUploadedFile(NAME, content)
    return client.post(START, {"type": slug, "file": given, **fields})


def id_in(url: str) -> str:
    found = re.search(r"/admin/files/([0-9a-f]{24})/", url)
    assert found is not None, url
    return found[1]


def checked(client: Client, content: bytes, *, slug: str = files.TYPE, **fields: str) -> str:
    """Upload and check a file. Return its ID."""
    answer = upload(client, content, slug=slug, **fields)
    assert answer.status_code == 302, page_of(answer)
    file_id = id_in(answer["Location"])
    files.run(file_id)
    return file_id


def url(file_id: str, page: str) -> str:
    return f"{START}{file_id}/{page}"


def columns_of(client: Client, file_id: str) -> dict[str, str]:
    """Return the inputs of the page of columns as they are shown."""
    page = client.get(url(file_id, "columns/")).content.decode()
    found = {}
    for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', page, re.S):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        found[name] = chosen[1] if chosen else ""
    return found
