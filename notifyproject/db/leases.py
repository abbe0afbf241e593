"""Leases: for a time, one process works on a document, and only that process writes to it.

A claim is stored in the document: a token, the end of the lease, and the worker. Anyone may
claim a document that has no claim or an expired one. Each write of a holder names its token, so
that a holder whose lease was taken over changes nothing. ``docs/decisions/0049-leases.md`` lists
the users, and what each does after too many claims.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic

from pymongo import ReturnDocument

from .collections import D, Documents, Filter
from .documents import ClaimDocument

Update = Mapping[str, Mapping[str, Any]]
TOKEN_BYTES = 16
MILLISECOND = timedelta(milliseconds=1)


def unclaimed(*, now: datetime) -> dict[str, Any]:
    """Return the filter for documents that may be claimed."""
    return {"$or": [{"claim": None}, {"claim.lease_until": {"$lte": now}}]}


def is_unclaimed(path: str, *, now: datetime) -> dict[str, Any]:
    """Return :func:`unclaimed` as an expression, for the claim at a path such as ``$$d.claim``."""
    return {"$lte": [{"$ifNull": [f"{path}.lease_until", now]}, now]}


def is_leased(document: Mapping[str, Any], *, now: datetime) -> bool:
    """Return whether a document has a claim whose lease hasn't expired."""
    claim = document.get("claim")
    return claim is not None and claim["lease_until"] > now


def held_with(token: str) -> dict[str, Any]:
    """Return the filter for the documents that are claimed with a token."""
    return {"claim.token": token}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases(Generic[D]):
    """The leases on the documents of one collection."""

    collection: Documents[D]
    length: timedelta
    """Longer than the slowest work between two renewals."""
    max_claims: int
    """Claims in a row without progress (``claim_count``), after which the user gives up."""
    max_length_factor: int = 1
    """Each further claim in a row is ``length`` longer, up to this factor."""

    def is_exhausted(self, claim_count: int) -> bool:
        """Return whether a claim that makes this count is one too many."""
        return claim_count > self.max_claims

    def new_claim(self, *, token: str, worker: str, now: datetime) -> ClaimDocument:
        """Return the claim to store."""
        return {"token": token, "lease_until": now + self.length, "worker": worker}

    def claim_one(
        self,
        wanted: Filter,
        *,
        changes: Mapping[str, Any] | None = None,
        worker: str,
        now: datetime,
    ) -> "Claim[D] | None":
        """Claim the document that a filter matches. Return None if it is leased, or none matches.

        ``changes`` are expressions, which may name the new claim. Raises PyMongoError.
        """
        token = new_token()
        before = self.collection().find_one_and_update(
            {"$and": [wanted, unclaimed(now=now)]},
            self._claiming(token, changes, worker=worker, now=now),
        )
        if before is None:
            return None
        count = before.get("claim_count", 0) + 1
        return Claim(
            leases=self,
            id=before["_id"],
            token=token,
            until=now + self.length * min(count, self.max_length_factor),
            claim_count=count,
            is_takeover=before.get("claim") is not None,
            document=before,
        )

    def claim_many(
        self,
        ids: Sequence[Any],
        wanted: Filter,
        *,
        changes: Mapping[str, Any] | None = None,
        worker: str,
        now: datetime,
    ) -> tuple[str, list[D]]:
        """Claim those documents that a filter matches and nobody leases, all with one token.

        Concurrent callers get different ones. ``changes`` as in :meth:`claim_one`.
        """
        token = new_token()
        among = {"_id": {"$in": list(ids)}}
        documents = self.collection()
        claimed = documents.update_many(
            {"$and": [among, wanted, unclaimed(now=now)]},
            self._claiming(token, changes, worker=worker, now=now),
        )
        found = list(documents.find({**among, **held_with(token)})) if claimed.matched_count else []
        return token, found

    def renewal(self, *, now: datetime) -> dict[str, Any]:
        """Return the fields that renew a lease and, since there was progress, count claims anew."""
        return {"claim.lease_until": now + self.length, "claim_count": 0}

    def give_back(self, token: str, ids: Sequence[Any]) -> int:
        """Release documents as if they hadn't been claimed with this token. Return how many."""
        wanted = {"_id": {"$in": list(ids)}, **held_with(token)}
        earlier = {"$max": [{"$subtract": ["$claim_count", 1]}, 0]}
        change = [{"$set": {"claim_count": earlier, "claim": "$$REMOVE"}}]
        return self.collection().update_many(wanted, change).matched_count

    def releasing(self, change: Update, *, claim_count: int = 0) -> dict[str, Any]:
        """Return an update that also releases the document. By default, it counts as progress."""
        return {
            **change,
            "$set": {"claim_count": claim_count, **change.get("$set", {})},
            "$unset": {**change.get("$unset", {}), "claim": ""},
        }

    def _claiming(
        self, token: str, changes: Mapping[str, Any] | None, *, worker: str, now: datetime
    ) -> list[dict[str, Any]]:
        count = {"$add": [{"$ifNull": ["$claim_count", 0]}, 1]}
        stages: list[dict[str, Any]] = [{"$set": {"claim_count": count}}]
        claim: dict[str, Any] = {"$literal": self.new_claim(token=token, worker=worker, now=now)}
        if self.max_length_factor > 1:
            factor = {"$min": ["$claim_count", self.max_length_factor]}
            length = {"$multiply": [self.length // MILLISECOND, factor]}
            claim = {"$mergeObjects": [claim, {"lease_until": {"$add": [now, length]}}]}
        stages.append({"$set": {"claim": claim}})
        return [*stages, {"$set": dict(changes)}] if changes else stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Generic[D]):
    """One holder's claim on one document."""

    leases: Leases[D]
    id: Any
    token: str
    until: datetime
    claim_count: int
    """Claims in a row without progress, with this one."""
    is_takeover: bool
    """The previous holder didn't release it: its last work may not be recorded."""
    document: D
    """As it was before the claim."""

    @property
    def is_exhausted(self) -> bool:
        """Whether too many claims in a row made no progress, so that the holder gives up."""
        return self.leases.is_exhausted(self.claim_count)

    def write(self, change: Update, *, where: Filter | None = None) -> D | None:
        """Change the document. Return it, or None if the lease was lost. Raises PyMongoError.

        ``where`` is a further condition, whose mismatch also returns None.
        """
        return self.leases.collection().find_one_and_update(
            self._held(where), change, return_document=ReturnDocument.AFTER
        )

    def renew(
        self, change: Update | None = None, *, where: Filter | None = None, now: datetime
    ) -> "tuple[Claim[D], D] | None":
        """Record progress, and lease the document for longer. Returns None as :meth:`write`."""
        changed = change or {}
        fields = {**changed.get("$set", {}), **self.leases.renewal(now=now)}
        document = self.write({**changed, "$set": fields}, where=where)
        if document is None:
            return None
        until = now + self.leases.length
        return replace(self, until=until, claim_count=0, is_takeover=False), document

    def release(self, change: Update | None = None, *, where: Filter | None = None) -> bool:
        """Change the document and release it. Return False if the lease was lost.

        It counts as progress. Work that wasn't begun is given back instead.
        """
        return self._update(self.leases.releasing(change or {}), where)

    def give_back(self, change: Update | None = None, *, where: Filter | None = None) -> bool:
        """Release the document as :meth:`release` does, with the count from before the claim.

        An idle claim, such as one that a shutdown ends, is neither progress nor a lost worker.
        """
        earlier = max(self.claim_count - 1, 0)
        return self._update(self.leases.releasing(change or {}, claim_count=earlier), where)

    def _update(self, change: Update, where: Filter | None) -> bool:
        return self.leases.collection().update_one(self._held(where), change).matched_count > 0

    def _held(self, where: Filter | None) -> dict[str, Any]:
        return {"_id": self.id, **held_with(self.token), **(where or {})}


def new_token() -> str:
    """Return a token that no other claim has."""
    return secrets.token_hex(TOKEN_BYTES)
