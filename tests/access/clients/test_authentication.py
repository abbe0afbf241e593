"""Test mode is default-deny: a write is refused unless its view declares the write safe."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from bson import ObjectId
from rest_framework.permissions import BasePermission
from rest_framework.views import APIView

from access.clients import authentication
from access.clients.authentication import HasScope, OwnsInbox, SafeWrite
from access.clients.inbox_tokens import InboxUser
from access.clients.registry import Client
from access.models import Scope
from tests.support.tables import each_case

WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Undeclared(APIView):
    scopes: ClassVar = dict.fromkeys(("GET", *WRITES), Scope.TEMPLATES_WRITE)

    def get(self, request: Any) -> None:
        pass

    post = put = patch = delete = get


class Declared(Undeclared):
    test_mode: ClassVar = {"PUT": SafeWrite.OWN}


def client(*, is_test: bool, scopes: frozenset[Scope] = frozenset({Scope.ADMIN})) -> Client:
    return Client(id=ObjectId(), name="app", scopes=scopes, is_test=is_test)


def inbox_user(*, is_test: bool) -> InboxUser:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    token = {"client_id": ObjectId(), "user_id": "ada", "jti": "1", "epoch": 0, "is_test": is_test}
    return InboxUser(expires_at=until, **token)


def is_allowed(view: APIView, method: str, user: Any) -> bool:
    permission: BasePermission = HasScope() if isinstance(user, Client) else OwnsInbox()
    return permission.has_permission(SimpleNamespace(user=user, method=method), view)


@each_case("make", [client, inbox_user])
@each_case("method", WRITES)
def test_undeclared_write_is_refused_to_test_keys(make: Any, method: str) -> None:
    with pytest.raises(authentication.TestKeyError):
        is_allowed(Undeclared(), method, make(is_test=True))
    assert is_allowed(Undeclared(), method, make(is_test=False))


@each_case("make", [client, inbox_user])
def test_safe_write_declaration_covers_one_method(make: Any) -> None:
    assert is_allowed(Declared(), "PUT", make(is_test=True))
    with pytest.raises(authentication.TestKeyError):
        is_allowed(Declared(), "DELETE", make(is_test=True))


@each_case("make", [client, inbox_user])
def test_read_needs_no_declaration(make: Any) -> None:
    assert is_allowed(Undeclared(), "GET", make(is_test=True))


def test_missing_scope_is_reported_before_test_mode() -> None:
    few = frozenset({Scope.NOTIFICATIONS_READ})
    assert not is_allowed(Undeclared(), "POST", client(is_test=True, scopes=few))
