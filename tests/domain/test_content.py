"""The host of an attachment URL, stored attachments, and addresses by channel."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.channels import Channel
from domain.content import Recipient, attachment_host
from notifications.store.reading import content_of
from tests.support.tables import each_case


@each_case(
    "url",
    [
        "https://files.example.com/a",
        "https://FILES.example.com:443/a?b#c",
        "HTTPS://files.example.com",
        "https://files.example.com/https://user@other.example.com:8080/",
    ],
)
def test_host_is_parsed(url: str) -> None:
    assert attachment_host(url) == "files.example.com"


@each_case(
    "url",
    [
        "",
        "files.example.com/a",
        "//files.example.com/a",
        "https:files.example.com",
        "https://",
        "http://files.example.com/a",
        "ftp://files.example.com/a",
        "file:///etc/passwd",
        "https://files.example.com:80/",
        "https://files.example.com:8443/",
        "https://x:99999/",
        "https://files.example.com:x/",
        "https://user@files.example.com/",
        "https://u:p@x.com/",
        "https://@files.example.com/",
        "https://[::1",
        "https://[nonsense]/",
        "https://%A",
        "https://files%2eexample.com/",
        "https://[fe80::1%25eth0]/",
    ],
)
def test_invalid_attachment_url_has_no_host(url: str) -> None:
    assert attachment_host(url) is None


@given(st.text(max_size=50) | st.text(max_size=40).map(lambda text: f"https://{text}"))
def test_any_text_has_a_host_or_none(text: str) -> None:
    host = attachment_host(text)
    assert host is None or host == host.lower()


def test_stored_attachments_are_read() -> None:
    stored = {"url": "https://x.example/a", "filename": "a.pdf", "content_type": "application/pdf"}
    document: Any = {"content": {"attachments": [stored]}}
    (attachment,) = content_of(document).attachments
    assert (attachment.url, attachment.filename, attachment.content_type) == tuple(stored.values())


@each_case(
    "channel, address",
    [
        (Channel.EMAIL, "ada@example.com"),
        (Channel.WHATSAPP, "+351912345678"),
        (Channel.PUSH, None),
        (Channel.IN_APP, None),
    ],
)
def test_only_email_and_whatsapp_have_addresses(channel: Channel, address: str | None) -> None:
    recipient = Recipient(email="ada@example.com", phone="+351912345678", device_ids=("d",))
    assert recipient.address(channel) == address
