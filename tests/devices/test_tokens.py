import hashlib

from hypothesis import given
from hypothesis import strategies as st

from devices.models import Platform
from devices.preferences import NO_PREFERENCES
from devices.queries import PushTarget
from devices.registration import Registration
from devices.tokens import MAX_LENGTH, MIN_LENGTH, device_id, is_device_id, is_token, mask_token
from tests.support.tables import each_case

TOKEN = "dGhpcyBpcyBh:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"


@each_case("token", ["x" * MIN_LENGTH, TOKEN, "_" * MAX_LENGTH, "unregistered-1"])
def test_token_of_firebase_is_a_token(token: str) -> None:
    assert is_token(token)


@each_case(
    "token",
    [
        "",
        " ",
        "abc",
        "a token",
        "token1\n",
        "token1\x00",
        "tok\u00e9n1",
        "\u202etoken1",
        "<script>",
        "../../etc/passwd",
        "token=1",
        "'token'",
        "$token1",
        "x" * (MAX_LENGTH + 1),
    ],
)
def test_other_text_is_not_a_token(token: str) -> None:
    assert not is_token(token)


def test_device_id_is_the_hash_of_the_token() -> None:
    assert device_id(TOKEN) == hashlib.sha256(TOKEN.encode()).hexdigest()
    assert is_device_id(device_id(TOKEN))


@each_case("text", ["", "x", "A" * 64, "a" * 63, "a" * 65, "a" * 64 + "\n", "g" * 64])
def test_malformed_device_id_is_refused(text: str) -> None:
    assert not is_device_id(text)


def test_token_is_masked_to_its_ends() -> None:
    assert mask_token(TOKEN) == "dGhpcy…RYqx"


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=200))
def test_mask_shows_at_most_ten_characters(token: str) -> None:
    shown = mask_token(token)
    assert len(shown) <= 11
    assert len(token) - len(shown.replace("…", "")) >= min(14, len(token))


def test_token_is_not_in_representations() -> None:
    new = Registration(user_id="ada", token=TOKEN, platform=Platform.IOS)
    target = PushTarget(
        device_id=device_id(TOKEN),
        user_id="ada",
        token=TOKEN,
        platform=Platform.IOS,
        preferences=NO_PREFERENCES,
    )
    for holder in (new, target):
        assert TOKEN not in repr(holder)
        assert TOKEN not in str(holder)
