"""Unique names that cost no system call."""

import os
import re
import uuid

import pytest

from notifyproject.platform.unique import new_token, new_uuid


def test_a_uuid_is_of_version_4_as_others_expect_it() -> None:
    found = new_uuid()

    assert (found.version, found.variant) == (4, uuid.RFC_4122)
    assert uuid.UUID(str(found)) == found


def test_a_token_has_16_digits_also_with_zeros_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.fullmatch("[0-9a-f]{16}", new_token())

    monkeypatch.setattr("random.getrandbits", lambda bits: 10)

    assert new_token() == "000000000000000a"


def test_none_is_made_twice() -> None:
    assert len({new_token() for _ in range(10_000)}) == 10_000
    assert len({new_uuid() for _ in range(10_000)}) == 10_000


def test_processes_of_one_parent_make_different_ones() -> None:
    receiver, sender = os.pipe()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os.write(sender, f"{new_token()}{new_uuid().hex}\n".encode())
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.close(sender)
    with open(receiver) as lines:
        made = lines.read().split()

    assert len(set(made)) == 3
    assert len({line[:16] for line in made} | {new_token()}) == 4


def test_the_kernel_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.urandom", lambda size: pytest.fail("asked the kernel"))

    new_token()
    new_uuid()
