from recipients.masking import mask_address, mask_text
from tests.support.tables import each_case


@each_case(
    "address, masked",
    [
        ("ada@example.com", "a***@example.com"),
        ("a@b.example", "a***@b.example"),
        ("@example.com", "***"),
        ("+351912345678", "+351******678"),
        ("+1234567", "+123*567"),
        ("1234567", "*******"),
    ],
)
def test_address_is_masked(address: str, masked: str) -> None:
    assert mask_address(address) == masked


def test_every_address_in_a_text_is_masked() -> None:
    text = '{"email":"ada@example.com","to":"<bob.b@x.example>, +351 912 345 678"} 351912345678 550'
    masked = mask_text(text)
    assert "ada@" not in masked
    assert "bob" not in masked
    assert "912" not in masked
    assert "351912" not in masked
    assert '"a***@example.com"' in masked
    assert "550" in masked


@each_case(
    "text",
    [
        "The provider had a problem of its own. (503)",
        "550 5.1.1 The mailbox does not exist.",
        '{"status": 503, "excerpt": "upstream connect error"}',
        "65a1b2c3d4e5f60718293a4b.email.1",
        "on 2026-11-21 at 2026-11-21T10:00:00Z, order 20450",
    ],
)
def test_text_without_addresses_is_unchanged(text: str) -> None:
    assert mask_text(text) == text
