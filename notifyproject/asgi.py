"""The stream process, for gunicorn's ASGI worker: it answers streams of inboxes, nothing else."""

import os
from typing import Any

import django
from django.utils.module_loading import import_string

from .platform.process import refuse_unsafe_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.production")


def _application() -> Any:
    django.setup(set_prefix=False)
    refuse_unsafe_settings()
    return import_string("api.inbox.stream.app.InboxStreamApp")()


application = _application()
