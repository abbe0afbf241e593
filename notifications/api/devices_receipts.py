"""What a device tells of a push it got."""

from typing import Any, ClassVar

from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from devices.tokens import is_device_id
from domain.time import utc_now

from ..receipts import device_receipts
from .devices import BAD_BODY, DEVICE_ID
from .devices_requests import DeviceReceiptRequest, receipt
from .parsing import check_values, convert, decode, read_body
from .problems import not_found
from .schema import describe


class Receipts(APIView):
    """A push that came, or was opened."""

    scopes: ClassVar = {"POST": Scope.DEVICES_WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="reportDeviceReceipt",
        scope=Scope.DEVICES_WRITE,
        request=DeviceReceiptRequest,
        response=None,
        status=204,
        problems=(*BAD_BODY, 404),
        parameters=(DEVICE_ID,),
    )
    def post(self, request: Any, device_id: str) -> Response:
        """Tell that a push reached a device or was opened there; again changes nothing."""
        if not is_device_id(device_id):
            raise not_found()
        raw = decode(read_body(request._request))
        check_values(raw)
        told = receipt(convert(raw, DeviceReceiptRequest))
        try:
            device_receipts.apply_device_receipt(
                device_id=device_id,
                notification_id=told.notification_id,
                client_id=request.user.id,
                event=told.event,
                now=utc_now(),
            )
        except device_receipts.NotPushedError:
            raise not_found() from None
        return Response(status=204)
