"""Mailboxes of settings: one name and one address, however people write them."""

import pytest

from domain.mailboxes import parse_mailbox
from tests.support.tables import each_case

ADDRESS = "shop@example.com"


@each_case(
    "text, name",
    [
        (ADDRESS, ""),
        (f"<{ADDRESS}>", ""),
        (f" Shop  <{ADDRESS}> ", "Shop"),
        (f"Shop<{ADDRESS}>", "Shop"),
        (f"{ADDRESS} (Shop)", "Shop"),
        (f"Shop, Inc. <{ADDRESS}>", "Shop, Inc."),
        (f'"Shop, Inc." <{ADDRESS}>', "Shop, Inc."),
        (f'"The \\"Shop\\" <new>" <{ADDRESS}>', 'The "Shop" <new>'),
        (f'The "Shop" <{ADDRESS}>', 'The "Shop"'),
        (f"The <new> Shop <{ADDRESS}>", "The <new> Shop"),
        (f"Shop: News; all <{ADDRESS}>", "Shop: News; all"),
        (f"Shop @ Home <{ADDRESS}>", "Shop @ Home"),
        (f"Shop via ada@example.org <{ADDRESS}>", "Shop via ada@example.org"),
        (f"=?utf-8?q?Caf=C3=A9?= <{ADDRESS}>", "Caf\u00e9"),
        (f"=?nonsense?q?Shop?= <{ADDRESS}>", "=?nonsense?q?Shop?="),
        (f"=?utf-8?b?!!!?= <{ADDRESS}>", "=?utf-8?b?!!!?="),
        (f"=?utf-8?b?/w==?= <{ADDRESS}>", "=?utf-8?b?/w==?="),
    ],
)
def test_one_mailbox_has_a_name_and_an_address(text: str, name: str) -> None:
    mailbox = parse_mailbox(text)
    assert (mailbox.name, mailbox.address) == (name, ADDRESS)
    assert mailbox.label == (name or ADDRESS)
    assert mailbox.domain == "example.com"


@each_case(
    "domain, ascii_domain",
    [("b\u00fccher.example", "xn--bcher-kva.example"), ("stra\u00dfe.de", "xn--strae-oqa.de")],
)
def test_domain_is_encoded_as_in_mail(domain: str, ascii_domain: str) -> None:
    assert parse_mailbox(f"Shop <info@{domain}>").address == f"info@{ascii_domain}"


@each_case(
    "text",
    [
        "",
        "Shop",
        "shop@",
        "@example.com",
        "shop@localhost",
        "Shop shop@example.com",
        "a@example.com, b@example.com",
        "a@example.com; b@example.com",
        "A <a@example.com>, B <b@example.com>",
        "a@example.com, B <b@example.com>",
        "Group: <a@example.com>;",
        "<a@example.com> <b@example.com>",
        "A <a@example.com",
        "A <a@example.com>\n",
        "A\r\nBcc: x <a@example.com>",
        "A\x00 <a@example.com>",
        "=?utf-8?q?A=0D=0ABcc:_x?= <a@example.com>",
        "A <\u00e4@example.com>",
        "A <a b@example.com>",
        "A <a@example.com> x",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_mailbox(text)
