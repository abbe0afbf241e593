"""Approval of broadcasts: who decides, in which status, and what a change does to it."""

from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any

import msgspec
import pytest
from bson import ObjectId

from access.actors import Actor, client_actor, staff_actor
from delivery import sweeper
from domain.states import BroadcastStatus
from notifications.actions.actions import InvalidStateError
from notifications.broadcasts import (
    approvals,
    control,
    creation,
    fan_out,
    preview,
    repository,
)
from notifications.broadcasts.approvals import OwnApprovalError
from notifications.broadcasts.fingerprint import PROGRESS
from notifications.broadcasts.requests import AudienceRequest, BroadcastRequest
from notifications.catalog import designs, types
from notifications.catalog.designs import BrandRequest, Kind
from notifications.content import design_changes, templates
from notifications.content.design_changes import Change
from notifications.intake import pages
from notifications.intake.requests import Caller, ContentRequest
from notifications.models import Broadcast
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff
from tests.support.factories.broadcasts import (
    CALLER,
    EVERYBODY,
    NEWS,
    begun,
    leased,
    notified_users,
    read,
    recipients,
    run_page,
    run_to_completion,
    topic,
)
from tests.support.factories.notifications import NOON
from tests.support.factories.templates import publish_version
from tests.support.mongo.written_collections import reads

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")

HOUR = timedelta(hours=1)
B = BroadcastStatus
AUTHOR = client_actor(CALLER.client_id)
COLLEAGUE = Actor(key="staff:colleague", keys=frozenset({"staff:colleague"}))
SAME_PERSON = Actor(
    key="staff:other-account", keys=frozenset({"staff:other-account", "oidc:https://id ada"})
)
THIRD = Actor(key="staff:third", keys=frozenset({"staff:third"}))
WRITER = Actor(key="staff:writer", keys=frozenset({"staff:writer", "oidc:https://id ada"}))
REASON = "The site is down."


@pytest.fixture(autouse=True)
def _policy() -> None:
    policy(above=0)


def policy(*, above: int | None) -> None:
    """Set how many recipients a marketing broadcast may have without an approval."""
    own = None if above is None else {"above": above, "by": "approvers"}
    types.define_type("marketing", {"approval": own}, now=NOON)


def asked(*, author: Actor | None = None, **fields: Any) -> ObjectId:
    """Return a broadcast that awaits an approval."""
    given = {"type": "marketing", "content": NEWS, "audience": EVERYBODY, **fields}
    made = creation.create(BroadcastRequest(**given), caller=CALLER, author=author, now=NOON)
    assert made.document["status"] == B.AWAITING_APPROVAL
    return ObjectId(made.document["_id"])


def seen(broadcast_id: ObjectId) -> str:
    """Return the fingerprint of what an approver sees."""
    return str(read(broadcast_id)["approval"].get("fingerprint", ""))


def approved(broadcast_id: ObjectId, *, by: Actor = COLLEAGUE, **options: Any) -> dict[str, Any]:
    given = {"fingerprint": seen(broadcast_id), "now": NOON, **options}
    return dict(approvals.approve(broadcast_id, by=by, **given))


def changed(broadcast_id: ObjectId, *, by: Actor = AUTHOR, **fields: Any) -> None:
    given = {"type": "marketing", "content": NEWS, "audience": EVERYBODY, **fields}
    new = creation.validate(BroadcastRequest(**given), caller=CALLER, now=NOON)
    approvals.change({**new, "_id": broadcast_id}, by=by, now=NOON)


def published(body: str, *, slug: str = "marketing") -> int:
    """Publish a template. Return its version."""
    version = templates.create_version(
        type_slug=slug,
        parts={"default": {"subject": "Spring", "body": body}},
        note="",
        created_by="ada",
        now=NOON,
    )
    publish_version(type_slug=slug, number=version.number, now=NOON)
    return version.number


def branded(name: str) -> None:
    """Store the brand ``acme`` with a name."""
    known = designs.read_newest().items(Kind.BRAND).get("acme")
    change = Change(
        kind=Kind.BRAND,
        name="acme",
        content=msgspec.to_builtins(BrandRequest(name=name)),
        replaces=None if known is None else designs.revision_of(known),
        pointer="/brand",
    )
    design_changes.store([change], created_by="ada", now=NOON)


# The table: who, in which state, does what.

WHO = {
    "the author": WRITER,
    "the author, with another account": SAME_PERSON,
    "another person": COLLEAGUE,
}
ACTS: dict[str, Callable[[ObjectId, Actor], Any]] = {
    "approve": lambda key, who: approved(key, by=who),
    "reject": lambda key, who: approvals.reject(
        key, fingerprint=seen(key), reason=REASON, by=who, now=NOON
    ),
    "override": lambda key, who: approvals.override(
        key, fingerprint=seen(key), reason=REASON, by=who, now=NOON
    ),
    "change": lambda key, who: changed(key, by=who, source="again"),
    "submit": lambda key, who: approvals.submit(key, by=who, now=NOON),
    "cancel": lambda key, who: control.cancel(key, now=NOON),
}


WHEN = {
    "approve": {B.AWAITING_APPROVAL},
    "reject": {B.AWAITING_APPROVAL},
    "override": {B.AWAITING_APPROVAL},
    "change": {*approvals.UNDECIDED, B.SCHEDULED},
    "submit": {B.DRAFT, B.EXPIRED},
    "cancel": set(B) - {B.CANCELLED},
}
THEN = {
    "approve": B.SCHEDULED,
    "reject": B.REJECTED,
    "override": B.SCHEDULED,
    "change": B.DRAFT,
    "submit": B.AWAITING_APPROVAL,
    "cancel": B.CANCELLING,
}
ONLY_OTHERS = {"approve", "reject"}


def expected_status(status: B, act: str, who: str) -> B | None:
    """Return the status after an act, or None if it's refused."""
    is_refused = status not in WHEN[act] or (act in ONLY_OTHERS and who != "another person")
    return None if is_refused else THEN[act]


def in_status(status: B) -> ObjectId:
    """Return a broadcast in a status, which it reaches as in life."""
    recipients(1)
    at = (NOON + HOUR).isoformat()
    broadcast_id = asked(author=WRITER, scheduled_at=at)
    if status is B.DRAFT:
        changed(broadcast_id, by=WRITER, scheduled_at=at)
    elif status is B.REJECTED:
        ACTS["reject"](broadcast_id, THIRD)
    elif status is B.EXPIRED:
        run_page(broadcast_id, at=NOON + approvals.DECIDE_WITHIN)
    elif status is not B.AWAITING_APPROVAL:
        ACTS["override"](broadcast_id, THIRD)
        collection("broadcasts").update_one(
            {"_id": broadcast_id}, {"$set": {"status": status.value}}
        )
    return broadcast_id


STATES = (B.DRAFT, B.AWAITING_APPROVAL, B.REJECTED, B.EXPIRED, B.SCHEDULED, B.RUNNING, B.PAUSED)


@pytest.mark.parametrize("status", STATES)
def test_each_act_of_each_person_has_one_outcome(status: B) -> None:
    for act, who in product(ACTS, WHO):
        collection("recipients").delete_many({})
        broadcast_id = in_status(status)
        before = read(broadcast_id)
        expected = expected_status(status, act, who)
        where = f"{who}: {act} of {status}"
        if expected is None:
            with pytest.raises(InvalidStateError):
                ACTS[act](broadcast_id, WHO[who])
            assert read(broadcast_id) == before, where
        else:
            ACTS[act](broadcast_id, WHO[who])
            assert read(broadcast_id)["status"] == expected, where
        sent = run_page(broadcast_id) and notified_users(broadcast_id)
        is_running = status is B.RUNNING and expected is None
        assert not sent or is_running, f"{where}: before its time"


def test_author_is_refused_by_the_write_too() -> None:
    broadcast_id = asked(author=WRITER)
    document = repository.read(broadcast_id)
    written = repository.write_approval(
        document,
        B.SCHEDULED,
        approval=document["approval"],
        where={"approval.authors": {"$nin": sorted(SAME_PERSON.keys)}},
        now=NOON,
    )
    assert written is None
    with pytest.raises(OwnApprovalError):
        approved(broadcast_id, by=SAME_PERSON)


def test_each_who_changed_or_submitted_it_is_an_author() -> None:
    broadcast_id = asked(author=WRITER)
    changed(broadcast_id, by=COLLEAGUE)
    approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    for author in (WRITER, COLLEAGUE, AUTHOR):
        with pytest.raises(OwnApprovalError):
            approved(broadcast_id, by=author)


def test_repeated_decision_changes_nothing() -> None:
    broadcast_id = asked()
    first = approved(broadcast_id)
    again = approved(broadcast_id, fingerprint=first["approval"]["fingerprint"])
    assert again == first
    rejected = asked()
    for _ in range(2):
        ACTS["reject"](rejected, COLLEAGUE)


def test_approver_decides_about_what_was_seen() -> None:
    broadcast_id = asked()
    with pytest.raises(InvalidStateError, match="look at it again"):
        approved(broadcast_id, fingerprint="0" * 64)
    before = seen(broadcast_id)
    changed(broadcast_id, source="other")
    approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    with pytest.raises(InvalidStateError):
        approved(broadcast_id, fingerprint=before)


class TestPolicy:
    def test_only_what_exceeds_it_is_approved(self) -> None:
        recipients(3)
        for above, size, awaits in ((2, 3, True), (3, 3, False), (0, 1, True), (None, 3, False)):
            policy(above=above)
            audience = AudienceRequest(user_ids=[f"user-{n:05d}" for n in range(size)])
            status = read(begun(audience))["status"]
            assert (status == B.AWAITING_APPROVAL) is awaits, (above, size)

    def test_lower_of_type_and_setting_counts_for_marketing(self, settings: Any) -> None:
        for own, general, awaits in ((None, 1, True), (9, 1, True), (1, 9, True), (9, 9, False)):
            settings.MARKETING_APPROVAL_ABOVE = general
            policy(above=own)
            audience = AudienceRequest(user_ids=["a", "b"])
            status = read(begun(audience))["status"]
            assert (status == B.AWAITING_APPROVAL) is awaits, (own, general)

    def test_zero_of_the_setting_is_all_and_no_setting_is_off(self, settings: Any) -> None:
        audience = AudienceRequest(user_ids=["a"])
        for general, awaits in ((0, True), (None, False)):
            settings.MARKETING_APPROVAL_ABOVE = general
            policy(above=None)
            status = read(begun(audience))["status"]
            assert (status == B.AWAITING_APPROVAL) is awaits, general

    def test_uncounted_audience_is_large(self) -> None:
        policy(above=1_000_000)
        document = creation.validate(
            BroadcastRequest(type="marketing", content=NEWS, audience=EVERYBODY),
            caller=CALLER,
            now=NOON,
        )
        assert not approvals.needs_approval(document)
        del document["audience_size"]
        assert approvals.needs_approval(document)

    def test_test_broadcast_needs_none(self) -> None:
        caller = Caller(client_id=CALLER.client_id, is_test=True, requires_approval=True)
        assert read(begun(caller=caller))["status"] == B.RUNNING

    def test_key_wants_an_approval_whatever_the_type_says(self) -> None:
        policy(above=None)
        caller = Caller(client_id=CALLER.client_id, requires_approval=True)
        broadcast_id = begun(caller=caller)
        assert read(broadcast_id)["status"] == B.AWAITING_APPROVAL
        request = BroadcastRequest(type="marketing", content=NEWS, audience=EVERYBODY)
        assert preview.preview(request, caller=caller, now=NOON).needs_approval

    def test_topic_that_outgrows_it_waits(self) -> None:
        policy(above=4)
        names = recipients(9)
        news = topic("news", *names[:4])
        broadcast_id = begun(news)
        assert read(broadcast_id)["status"] == B.RUNNING
        topic("news", *names)
        run_to_completion(broadcast_id)
        waits = read(broadcast_id)
        assert waits["status"] == B.AWAITING_APPROVAL
        assert waits["approval"]["reason"] == approvals.GROWN_BEYOND_POLICY
        assert len(notified_users(broadcast_id)) == 3, "one page of three; a second exceeds four"
        approved(broadcast_id)
        run_to_completion(broadcast_id)
        assert notified_users(broadcast_id) == names, "it continues, and nobody gets it twice"

    def test_author_of_what_outgrew_it_does_not_approve_it(self) -> None:
        policy(above=4)
        names = recipients(9)
        request = BroadcastRequest(
            type="marketing", content=NEWS, audience=topic("news", *names[:4])
        )
        made = creation.create(request, caller=CALLER, author=WRITER, now=NOON)
        broadcast_id = ObjectId(made.document["_id"])
        topic("news", *names)
        run_to_completion(broadcast_id)
        assert read(broadcast_id)["status"] == B.AWAITING_APPROVAL
        for person in (WRITER, SAME_PERSON):
            with pytest.raises(OwnApprovalError):
                approved(broadcast_id, by=person)
        assert approved(broadcast_id)["status"] == B.SCHEDULED

    def test_broadcast_that_needs_none_reads_nothing_more(self) -> None:
        recipients(2)
        counts = []
        # The first one fills the caches.
        for above in (None, None, 2):
            policy(above=above)
            broadcast_id = begun()
            before = reads.count
            run_page(broadcast_id)
            counts.append(reads.count - before)
            assert "approval" not in read(broadcast_id)
        assert counts[1] == counts[2]


class TestWhatIsApproved:
    def test_each_field_but_the_progress_is_part_of_it(self) -> None:
        recipients(2)
        stored = {field.column for field in Broadcast._meta.get_fields()}
        assert stored > PROGRESS
        values: dict[str, Any] = {
            "client_id": ObjectId(),
            "is_test": True,
            "type": "maintenance",
            "priority": "high",
            "request": {"type": "marketing", "content": {"body": "Other", "subject": "Spring"}},
            "audience": "user_ids",
            "topic": "others",
            "user_ids": ["mallory"],
            "file_id": ObjectId(),
            "file_check": 1,
            "name": "Other",
            "scheduled_at": NOON - HOUR,
            "spread_seconds": 60,
            "local_hour": 9,
            "expires_at": NOON + 400 * HOUR,
        }
        assert values.keys() == stored - PROGRESS - {"_id"}
        for field, value in values.items():
            broadcast_id = asked()
            approved(broadcast_id)
            collection("broadcasts").update_one({"_id": broadcast_id}, {"$set": {field: value}})
            run_to_completion(broadcast_id)
            after = read(broadcast_id)
            assert (after["status"], notified_users(broadcast_id)) == (B.DRAFT, []), field
            assert after["approval"]["reason"] == approvals.CHANGED

    def test_each_byte_of_the_text_is_part_of_it(self) -> None:
        recipients(1)
        body = str(NEWS.body)
        for place in range(len(body)):
            broadcast_id = asked()
            approved(broadcast_id)
            other = f"{body[:place]}{chr(ord(body[place]) ^ 1)}{body[place + 1 :]}"
            collection("broadcasts").update_one(
                {"_id": broadcast_id}, {"$set": {"request.content.body": other}}
            )
            run_to_completion(broadcast_id)
            assert notified_users(broadcast_id) == [], place

    def test_change_between_the_look_and_the_approval_makes_a_draft(self) -> None:
        broadcast_id = asked()
        look = seen(broadcast_id)
        collection("broadcasts").update_one({"_id": broadcast_id}, {"$set": {"priority": "high"}})
        with pytest.raises(InvalidStateError):
            approved(broadcast_id, fingerprint=look)
        assert read(broadcast_id)["status"] == B.DRAFT

    def test_type_that_changes_the_message_is_part_of_it(self) -> None:
        recipients(1)
        broadcast_id = asked()
        approved(broadcast_id)
        types.define_type("marketing", {"channels": ["email", "in_app", "push"]}, now=NOON)
        run_to_completion(broadcast_id)
        assert read(broadcast_id)["status"] == B.DRAFT

    def test_published_template_changes_nothing(self) -> None:
        recipients(2)
        first = published("It is spring.")
        broadcast_id = asked(content=ContentRequest())
        approved(broadcast_id)
        second = published("Entirely new.")
        run_to_completion(broadcast_id)
        assert read(broadcast_id)["status"] == B.COMPLETED
        sent = list(collection("notifications").find({"broadcast_id": broadcast_id}))
        assert {document["content"]["template_version"] for document in sent} == {first}
        assert {document["content"]["body"] for document in sent} == {"It is spring."}
        again = asked(content=ContentRequest())
        assert read(again)["approval"]["template_version"] == second

    def test_template_of_another_type_is_part_of_it(self) -> None:
        recipients(1)
        published("It is spring.", slug="transactional")
        broadcast_id = asked(content=ContentRequest(template_id="transactional"))
        approved(broadcast_id)
        published("Entirely new.", slug="transactional")
        run_to_completion(broadcast_id)
        assert read(broadcast_id)["status"] == B.DRAFT

    def test_approved_design_is_sent_whatever_brands_become(self) -> None:
        recipients(2)
        branded("Acme")
        broadcast_id = asked(brand="acme")
        number = read(broadcast_id)["approval"]["design"]
        approved(broadcast_id)
        branded("Apex")
        run_to_completion(broadcast_id)
        assert read(broadcast_id)["status"] == B.COMPLETED
        sent = list(collection("notifications").find({"broadcast_id": broadcast_id}))
        assert [document["content"]["look"]["design"] for document in sent] == [number, number]
        assert designs.read_newest().number > number
        again = asked(brand="acme")
        assert read(again)["approval"]["design"] == designs.read_newest().number

    def test_brand_of_the_type_is_part_of_it(self) -> None:
        recipients(1)
        branded("Acme")
        broadcast_id = asked()
        approved(broadcast_id)
        types.define_type("marketing", {"brand": "acme"}, now=NOON)
        try:
            run_to_completion(broadcast_id)
            assert (read(broadcast_id)["status"], notified_users(broadcast_id)) == (B.DRAFT, [])
        finally:
            types.define_type("marketing", {"brand": None}, now=NOON)

    def test_change_while_a_page_is_made_is_not_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        recipients(2)
        branded("Acme")
        broadcast_id = asked()
        approved(broadcast_id)

        def prepare_during_a_change(*args: Any, **options: Any) -> Any:
            types.define_type("marketing", {"brand": "acme"}, now=NOON)
            return pages.prepare_page(*args, **options)

        monkeypatch.setattr(fan_out, "prepare_page", prepare_during_a_change)
        try:
            run_to_completion(broadcast_id)
            assert (read(broadcast_id)["status"], notified_users(broadcast_id)) == (B.DRAFT, [])
        finally:
            types.define_type("marketing", {"brand": None}, now=NOON)


class TestAuthors:
    def told(self) -> list[tuple[str, str]]:
        found = collection("notifications").find({"type": "system_alert"})
        return [(one["user_id"], one["content"]["subject"]) for one in found]

    def test_each_is_told_once_that_it_is_held(self) -> None:
        recipients(1)
        author = staff_actor(make_staff("wanda").pk)
        broadcast_id = asked(author=author)
        approved(broadcast_id)
        types.define_type("marketing", {"channels": ["email", "in_app", "push"]}, now=NOON)
        lease = leased(broadcast_id)
        # A worker that crashed after it had told the author.
        approvals.hold(lease, approvals.CHANGED, now=NOON)
        collection("broadcasts").update_one(
            {"_id": broadcast_id},
            {"$set": {"status": "running", "due_at": NOON, "approval.revision": 1}},
        )
        run_to_completion(broadcast_id)
        held = read(broadcast_id)
        assert (held["status"], held["approval"]["stopped_at"]) == (B.DRAFT, NOON)
        assert self.told() == [("staff:wanda", "Not sent: your broadcast of the type marketing")]

    def test_each_is_told_that_nobody_decided(self) -> None:
        author = staff_actor(make_staff("wanda").pk)
        broadcast_id = asked(author=author)
        end = NOON + approvals.DECIDE_WITHIN
        run_page(broadcast_id, at=end)
        ended = read(broadcast_id)
        assert (ended["status"], ended["approval"]["stopped_at"]) == (B.EXPIRED, end)
        assert self.told() == [("staff:wanda", "Not sent: your broadcast of the type marketing")]
        approvals.submit(broadcast_id, by=author, now=end)
        assert "stopped_at" not in read(broadcast_id)["approval"]

    def test_client_is_nobody_to_tell(self) -> None:
        broadcast_id = asked()
        run_page(broadcast_id, at=NOON + approvals.DECIDE_WITHIN)
        assert self.told() == []


class TestTime:
    def test_approvers_are_told_and_the_sweep_ends_it(self) -> None:
        broadcast_id = asked()
        assert run_page(broadcast_id)
        waits = read(broadcast_id)
        end = NOON + approvals.DECIDE_WITHIN
        assert (waits["status"], waits["due_at"]) == (B.AWAITING_APPROVAL, end)
        assert "started_at" not in waits
        sweeper.sweep(now=end)
        assert run_page(broadcast_id, at=end)
        ended = read(broadcast_id)
        assert (ended["status"], ended["purge_at"]) == (B.EXPIRED, end + repository.RETENTION)
        assert not run_page(broadcast_id, at=end + 10 * HOUR)

    def test_nobody_approves_after_it(self) -> None:
        broadcast_id = asked()
        with pytest.raises(InvalidStateError, match="over"):
            approved(broadcast_id, now=NOON + approvals.DECIDE_WITHIN)

    def test_expiry_of_the_message_is_the_last_moment(self) -> None:
        end = NOON + HOUR
        broadcast_id = asked(expires_at=end.isoformat())
        assert read(broadcast_id)["approval"]["expires_at"] == end
        run_page(broadcast_id, at=end)
        assert read(broadcast_id)["status"] == B.EXPIRED
        with pytest.raises(InvalidStateError):
            approvals.submit(broadcast_id, by=AUTHOR, now=end)

    def test_late_approval_sends_at_once_and_an_early_one_at_its_time(self) -> None:
        recipients(1)
        at = NOON + 2 * HOUR
        for decided, begins in ((NOON, at), (NOON + 3 * HOUR, NOON + 3 * HOUR)):
            broadcast_id = asked(scheduled_at=at.isoformat())
            assert approved(broadcast_id, now=decided)["due_at"] == begins
            assert not run_page(broadcast_id, at=begins - HOUR)
            run_to_completion(broadcast_id, at=begins)
            assert len(notified_users(broadcast_id)) == 1

    def test_approval_while_approvers_are_told_wins(self) -> None:
        at = NOON + HOUR
        broadcast_id = asked(scheduled_at=at.isoformat())
        lease = leased(broadcast_id)
        approved(broadcast_id)
        assert approvals.tell_or_expire(lease, now=NOON) is None
        after = read(broadcast_id)
        assert (after["status"], after["due_at"], "claim" in after) == (B.SCHEDULED, at, False)

    def test_cancellation_while_approvers_are_told_wins(self) -> None:
        broadcast_id = asked()
        lease = leased(broadcast_id)
        control.cancel(broadcast_id, now=NOON)
        assert approvals.tell_or_expire(lease, now=NOON) == NOON
        run_to_completion(broadcast_id)
        assert read(broadcast_id)["status"] == B.CANCELLED


def test_override_has_a_reason_and_needs_nobody() -> None:
    recipients(1)
    broadcast_id = asked(author=WRITER)
    done = approvals.override(
        broadcast_id, fingerprint=seen(broadcast_id), reason=REASON, by=WRITER, now=NOON
    )
    assert done["approval"]["reason"] == REASON
    assert (done["approval"]["overridden_at"], done["approval"]["decided_by"]) == (
        NOON,
        WRITER.key,
    )
    run_to_completion(broadcast_id)
    assert len(notified_users(broadcast_id)) == 1


def test_begun_broadcast_keeps_its_content() -> None:
    recipients(5)
    broadcast_id = asked()
    approved(broadcast_id)
    run_page(broadcast_id)
    types.define_type("marketing", {"channels": ["email", "in_app"]}, now=NOON)
    run_page(broadcast_id)
    assert read(broadcast_id)["status"] == B.DRAFT
    with pytest.raises(InvalidStateError, match="read already"):
        changed(broadcast_id)
    approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    approved(broadcast_id)
    run_to_completion(broadcast_id)
    assert len(set(notified_users(broadcast_id))) == len(notified_users(broadcast_id)) == 5


def test_file_of_another_broadcast_is_no_change() -> None:
    broadcast_id = asked()
    new = creation.validate(
        BroadcastRequest(type="marketing", content=NEWS, audience=EVERYBODY),
        caller=CALLER,
        now=NOON,
    )
    other = {**new, "_id": broadcast_id, "file_id": ObjectId(), "file_check": 1}
    with pytest.raises(InvalidStateError, match="of its own"):
        approvals.change(other, by=AUTHOR, now=NOON)
    assert read(broadcast_id)["status"] == B.AWAITING_APPROVAL


def test_audience_that_has_grown_far_is_approved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "MARGIN", 1)
    recipients(2)
    broadcast_id = asked()
    approved(broadcast_id)
    known = list(collection("recipients").find())
    for number in range(7):
        collection("recipients").insert_one({**known[0], "_id": f"zoe-{number}"})
    run_to_completion(broadcast_id)
    held = read(broadcast_id)
    assert (held["status"], held["approval"]["reason"]) == (B.DRAFT, approvals.GROWN_SINCE_APPROVAL)
    assert len(notified_users(broadcast_id)) <= 3
    approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    assert read(broadcast_id)["approval"]["audience_size"] == 9


def test_broadcast_without_its_brand_is_not_submitted_again() -> None:
    """While it is expired, its brand may be removed. Each message would be refused."""
    recipients(2)
    branded("Acme")
    broadcast_id = asked(brand="acme")
    lease = leased(broadcast_id, at=NOON + approvals.DECIDE_WITHIN)
    assert approvals.tell_or_expire(lease, now=NOON + approvals.DECIDE_WITHIN) is None
    removal = Change(
        kind=Kind.BRAND,
        name="acme",
        content=None,
        replaces=designs.revision_of(designs.read_newest().brands["acme"]),
        pointer="/brand",
    )
    design_changes.store([removal], created_by="ada", now=NOON)
    with pytest.raises(InvalidStateError, match="Its brand acme was removed"):
        approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    assert read(broadcast_id)["status"] == B.EXPIRED
    branded("Acme, Inc.")
    approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    approved(broadcast_id)
    run_to_completion(broadcast_id)
    assert len(notified_users(broadcast_id)) == 2


def test_broadcast_without_the_rows_of_its_file_is_not_submitted_again() -> None:
    broadcast_id = asked()
    changed(broadcast_id)
    own = {"file_id": ObjectId(), "audience": "file"}
    collection("broadcasts").update_one({"_id": broadcast_id}, {"$set": own})
    with pytest.raises(InvalidStateError, match="rows of the file are removed"):
        approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    assert read(broadcast_id)["status"] == B.DRAFT


def test_type_that_became_critical_is_not_sent() -> None:
    recipients(2)
    broadcast_id = asked()
    approved(broadcast_id)
    types.define_type("marketing", {"priority": "critical"}, now=NOON)
    try:
        run_to_completion(broadcast_id)
        assert read(broadcast_id)["status"] == B.DRAFT
        with pytest.raises(InvalidStateError, match="critical"):
            approvals.submit(broadcast_id, by=AUTHOR, now=NOON)
    finally:
        types.define_type("marketing", {"priority": "low"}, now=NOON)


def test_approval_that_repeats_an_override_of_the_author_is_refused() -> None:
    broadcast_id = asked(author=WRITER)
    fingerprint = seen(broadcast_id)
    approvals.override(broadcast_id, fingerprint=fingerprint, reason=REASON, by=WRITER, now=NOON)
    with pytest.raises(InvalidStateError):
        approvals.approve(broadcast_id, fingerprint=fingerprint, by=WRITER, now=NOON)
