"""Staff of each kind, and the commands that a page sends to MongoDB."""

from collections.abc import Iterator

import pytest
from django.test import Client

from access.models import StaffUser
from tests.support.clients.console import make_staff, signed_in
from tests.support.mongo.explained_reads import _Reads, reads


@pytest.fixture
def admin_user(db: None) -> StaffUser:
    """Give a superuser."""
    return make_staff("maria", superuser=True)


@pytest.fixture
def console(admin_user: StaffUser) -> Client:
    """Give a client on which a superuser has signed in."""
    return signed_in(admin_user)


@pytest.fixture
def support(db: None) -> Client:
    """Give a client of somebody who may look at notifications and people, and do nothing."""
    names = ("notifications.view_notification", "notifications.view_deliveryattempt")
    others = ("notifications.view_webhooklog", "recipients.view_recipient")
    return signed_in(
        make_staff(
            *("rui", *names, *others), *("recipients.view_suppression", "admin.view_logentry")
        )
    )


@pytest.fixture
def operator(db: None) -> Client:
    """Give a client of somebody who may retry in bulk, and do nothing else."""
    return signed_in(
        make_staff(
            *("olga", "notifications.view_notification", "notifications.view_bulkoperation"),
            *("notifications.run_bulkoperation", "notifications.retry_notification"),
        )
    )


@pytest.fixture
def reading() -> Iterator[_Reads]:
    """Give the listener, switched off after the test."""
    yield reads
    reads.is_on = False
