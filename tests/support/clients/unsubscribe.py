"""Unsubscribe links, and their pages."""

import re
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from privacy import unsubscribe

ADA = "ada@example.com"


def link(address: str = ADA, *, locale: str | None = None, is_test: bool = False) -> str:
    url = unsubscribe.url_for(
        channel=Channel.EMAIL,
        address=address,
        notification_id=ObjectId(),
        locale=locale,
        is_test=is_test,
    )
    return url[url.index("/u/") :]


def heading(page: Any) -> str:
    (found,) = re.findall(r"<h1>(.*?)</h1>", page.text)
    return found


def actions(page: Any) -> list[tuple[str, str]]:
    """Return the method and address of each form."""
    return re.findall(r'<form method="(\w+)" action="([^"]*)">', page.text)
