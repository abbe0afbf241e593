"""ASGI application of the stream process: inbox streams only."""

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
