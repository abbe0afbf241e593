"""A secret is hidden wherever it stands: by its name at any depth, and by its value."""

import html
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.content import SensitiveContent
from domain.errors import FailureCode, PermanentError, ProviderResponse
from notifications.catalog.types import MASK
from notifications.content.redaction import (
    WITHHELD,
    find_secrets,
    mask,
    mask_all,
    mask_response,
    remove_secrets,
)
from providers.contract import SendResult

NAMES = frozenset({"code", "link"})
CANARY = "CANARY-493021"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "code", "link"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"code": CANARY, "n": 5}, {"code": MASK, "n": 5}),
        ({"a": {"code": CANARY}}, {"a": {"code": MASK}}),
        ({"a": [{"b": {"code": CANARY}}]}, {"a": [{"b": {"code": MASK}}]}),
        ({"code": {"value": CANARY, "hint": None}}, {"code": MASK}),
        ({"code": CANARY, "text": f"Use {CANARY}."}, {"code": MASK, "text": f"Use {MASK}."}),
        (
            {"code": 493021, "again": 493021, "other": 493},
            {"code": MASK, "again": MASK, "other": 493},
        ),
        ({"code": "12", "year": "2012"}, {"code": MASK, "year": "2012"}),
        (
            {"other": "kept", "flag": True, "none": None},
            {"other": "kept", "flag": True, "none": None},
        ),
    ],
    ids=[
        *("by name", "nested", "in a list", "whole", "repeated", "a number"),
        *("too short to look for", "no secret"),
    ],
)
def test_what_is_secret_is_masked(data: dict[str, Any], expected: dict[str, Any]) -> None:
    assert mask(data, NAMES) == expected


@given(data=st.dictionaries(st.sampled_from(["a", "code"]), JSON, max_size=3))
def test_no_secret_is_left_in_any_shape_of_data(data: dict[str, Any]) -> None:
    secrets = find_secrets({**data, "deep": [{"code": CANARY}]}, NAMES)
    assert CANARY in secrets
    shown = mask({**data, "deep": [{"code": CANARY}], "text": f"<{CANARY}>"}, NAMES)
    assert CANARY not in json.dumps(shown)
    assert mask(shown, NAMES) == shown


def test_values_are_looked_for_the_longest_first() -> None:
    assert find_secrets({"code": ["1234", "123456", "1"], "link": True}, NAMES) == (
        "123456",
        "1234",
    )


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=4, max_size=30))
def test_a_value_is_found_however_it_is_written(secret: str) -> None:
    shown = [
        secret,
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        json.dumps(secret, ensure_ascii=False).replace("/", "\\/"),
        html.escape(secret),
        quote(secret),
        quote(secret, safe=""),
    ]
    for text in shown:
        assert MASK in remove_secrets(f"before {text} after", [secret])


def test_words_keep_their_shape_and_nothing_else() -> None:
    payload = {"a": CANARY, "b": [1, {"c": 2.5}], "d": None, "e": False}
    assert mask_all(payload) == {"a": MASK, "b": [MASK, {"c": MASK}], "d": None, "e": False}


SECRET = SensitiveContent(data={"code": CANARY}, secrets=(CANARY,))


def refused(said: str) -> PermanentError:
    answer = ProviderResponse(status=400, code="x", excerpt=said)
    return PermanentError(f"No: {said}", code=FailureCode.REJECTED, response=answer)


def test_what_a_provider_repeats_of_a_secret_is_not_kept() -> None:
    error = mask_response(refused(f"your code is {CANARY}"), SECRET)
    assert (error.reason, str(error)) == (f"No: your code is {MASK}",) * 2
    assert error.response == ProviderResponse(status=400, code="x", excerpt=f"your code is {MASK}")
    answer = ProviderResponse(status=202, excerpt=CANARY)
    taken = mask_response(SendResult(provider_id="1", response=answer), SECRET)
    assert taken.response.excerpt == MASK


def test_a_secret_that_was_cut_off_is_not_kept_either() -> None:
    for size in range(3, len(CANARY)):
        error = mask_response(refused(f"code={CANARY[:size]}"), SECRET)
        assert error.response is not None
        assert error.response.excerpt == f"code={MASK}"


def test_of_words_that_may_all_be_secret_nothing_is_kept() -> None:
    error = mask_response(refused("Use 1234"), SensitiveContent(data={}, has_inline_content=True))
    assert error.response == ProviderResponse(status=400, code="x", excerpt=WITHHELD)


def test_what_hides_nothing_stays_as_it_is() -> None:
    error = refused("anything")
    assert mask_response(error, None) is error
    assert error.response == ProviderResponse(status=400, code="x", excerpt="anything")


def test_neither_a_secret_nor_its_values_are_in_what_is_logged_of_it() -> None:
    assert CANARY not in repr(
        SensitiveContent(data={"code": CANARY}, content={"body": CANARY}, secrets=(CANARY,))
    )
