"""Requests that the live server is still processing when a test ends."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler

from tests.support.waiting import until


@contextmanager
def answered() -> Iterator[None]:
    """Wait after the block until no request is being processed.

    A late webhook would be stored after the test's database was emptied, and affect the next test.
    """
    lock, count = threading.Lock(), 0
    answer = WSGIHandler.get_response

    def counted(self: WSGIHandler, request: Any) -> Any:
        nonlocal count
        with lock:
            count += 1
        try:
            return answer(self, request)
        finally:
            with lock:
                count -= 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WSGIHandler, "get_response", counted)
        yield
        until(lambda: count == 0, otherwise="a request is still being answered")
