"""URLs of a local stack: the service's, and the demo of the inbox elements."""

from django.urls import path

from ..urls import handler400, handler403, handler404, handler500
from ..urls import urlpatterns as service
from . import demo

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]
urlpatterns = [
    path("demo/inbox", demo.page),
    path("demo/inbox/token/<slug:user_id>", demo.token),
    path("demo/inbox/send/<slug:user_id>", demo.send),
    path("demo/inbox/push/<slug:user_id>", demo.send_push),
    path("demo/notify-push.js", demo.push_worker),
    *service,
]
