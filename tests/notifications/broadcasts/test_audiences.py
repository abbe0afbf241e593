"""Audiences that list their users."""

from domain.states import AudienceKind
from notifications.broadcasts import audiences
from notifications.broadcasts.audiences import Audience
from tests.support.tables import each_case

NAMED = Audience(kind=AudienceKind.USER_IDS, user_ids=["ada", "bob", "eve"])


@each_case(
    "after, limit, ids",
    [
        (None, 2, ["ada", "bob"]),
        ("bob", 2, ["eve"]),
        ("b", 9, ["bob", "eve"]),
        ("eve", 2, []),
        (None, 3, ["ada", "bob", "eve"]),
    ],
)
def test_listed_user_ids_follow_the_cursor(after: str | None, limit: int, ids: list[str]) -> None:
    page = audiences.next_page(NAMED, after=after, limit=limit)
    assert [each.user_id for each in page.addressees] == ids
    assert page.is_last is (len(ids) < limit)
    assert page.cursor == (ids[-1] if ids else None)
