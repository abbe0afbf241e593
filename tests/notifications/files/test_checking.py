"""Rows that name the same person, of which one is kept."""

import random

import pytest

from notifications.files.checking import find_duplicates

ROWS = 100_000
Names = list[tuple[str, str]]


def test_equal_rows_are_found_in_one_pass() -> None:
    people = [(number, [("email", "ada@example.com")]) for number in range(ROWS)]
    assert find_duplicates(people, keeps_last=False) == dict.fromkeys(range(1, ROWS), "email")
    assert find_duplicates(people, keeps_last=True) == dict.fromkeys(range(ROWS - 1), "email")


def test_rows_that_name_nobody_are_no_duplicates() -> None:
    assert find_duplicates([(2, []), (3, [])], keeps_last=False) == {}


def test_row_of_a_row_that_is_not_kept_is_kept() -> None:
    people: list[tuple[int, Names]] = [
        (2, [("user_id", "ada")]),
        (3, [("user_id", "ada"), ("email", "a@b.co")]),
        (4, [("user_id", "bob"), ("email", "a@b.co")]),
    ]
    assert find_duplicates(people, keeps_last=False) == {3: "user_id"}
    assert find_duplicates(people, keeps_last=True) == {3: "email"}


@pytest.mark.parametrize("keeps_last", [False, True])
def test_no_two_kept_rows_name_the_same_person_and_each_other_row_has_a_kept_one(
    keeps_last: bool,
) -> None:
    chance = random.Random(1)
    for _ in range(200):
        people = [
            (number, [(field, str(chance.randrange(6))) for field in ("user_id", "email", "phone")])
            for number in range(chance.randrange(12))
        ]
        found = find_duplicates(people, keeps_last=keeps_last)
        kept = [(number, set(names)) for number, names in people if number not in found]
        for number, names in kept:
            assert all(names.isdisjoint(other) for another, other in kept if another != number)
        for number, names in people:
            if number in found:
                same = next(name for name in names if name[0] == found[number])
                assert any(same in other for _, other in kept)
