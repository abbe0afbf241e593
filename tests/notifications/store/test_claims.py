"""What a claimed delivery has for its attempt."""

from datetime import timedelta

from bson import ObjectId

from domain.channels import Channel
from tests.support.factories.notifications import claimed_delivery as claimed

ID = ObjectId("65f0c0ffee65f0c0ffee65f0")


def test_claim_has_the_reference_of_its_attempt() -> None:
    claim = claimed(notification_id=ID, attempt_count=2, channel=Channel.PUSH)
    assert claim.reference == f"{ID}.push.2"


def test_claim_has_the_retry_state() -> None:
    claim = claimed(attempt_count=3, uncounted_attempts=1, held_for=timedelta(hours=1))
    assert claim.retry_state.counted_attempts == 2
    assert claim.retry_state.priority is claim.priority
    assert claim.retry_state.held_for == claim.held_for
