from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.suppression_request_reason import (
    SuppressionRequestReason,
    check_suppression_request_reason,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="SuppressionRequest")


@_attrs_define
class SuppressionRequest:
    """Why an address gets nothing more. What stands already for this reason is never loosened.

    Attributes:
        reason (SuppressionRequestReason | Unset):  Default: 'manual'.
        marketing_only (bool | Unset): True: receipts and codes still go. Default: False.
        expires_at (datetime.datetime | None | Unset):
    """

    reason: SuppressionRequestReason | Unset = "manual"
    marketing_only: bool | Unset = False
    expires_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        reason: str | Unset = UNSET
        if not isinstance(self.reason, Unset):
            reason = self.reason

        marketing_only = self.marketing_only

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if reason is not UNSET:
            field_dict["reason"] = reason
        if marketing_only is not UNSET:
            field_dict["marketing_only"] = marketing_only
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _reason = d.pop("reason", UNSET)
        reason: SuppressionRequestReason | Unset
        if isinstance(_reason, Unset):
            reason = UNSET
        else:
            reason = check_suppression_request_reason(_reason)

        marketing_only = d.pop("marketing_only", UNSET)

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        suppression_request = cls(
            reason=reason,
            marketing_only=marketing_only,
            expires_at=expires_at,
        )

        return suppression_request
