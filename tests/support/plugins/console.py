"""Staff with different permissions, and a listener for reads."""

from collections.abc import Iterator

import pytest
from django.test import Client

from access.models import StaffUser
from tests.support.clients.console import make_staff, signed_in
from tests.support.mongo.explained_reads import _Reads, reads


@pytest.fixture
def admin_user(db: None) -> StaffUser:
    return make_staff("maria", superuser=True)


@pytest.fixture
def console(admin_user: StaffUser) -> Client:
    """Return a client signed in as a superuser."""
    return signed_in(admin_user)


@pytest.fixture
def support(db: None) -> Client:
    """Return a client that may view notifications and recipients."""
    names = ("notifications.view_notification", "notifications.view_deliveryattempt")
    others = ("notifications.view_webhooklog", "recipients.view_recipient")
    return signed_in(
        make_staff("rui", *names, *others, "recipients.view_suppression", "admin.view_logentry")
    )


@pytest.fixture
def operator(db: None) -> Client:
    """Return a client that may retry in bulk."""
    return signed_in(
        make_staff(
            "olga",
            "notifications.view_notification",
            "notifications.view_bulkoperation",
            "notifications.run_bulkoperation",
            "notifications.retry_notification",
        )
    )


@pytest.fixture
def reading() -> Iterator[_Reads]:
    yield reads
    reads.is_on = False
