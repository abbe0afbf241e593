"""ASGI application of the stream process: inbox streams only."""

import os

import django
from django.utils.module_loading import import_string

from .platform import refusal
from .platform.memory import loading

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.production")

with loading():
    from .platform.process import refuse_unsafe_settings

    with refusal.shown_alone():
        django.setup(set_prefix=False)
        refuse_unsafe_settings()
    application = import_string("api.inbox.stream.app.InboxStreamApp")()
