"""WSGI application of the web process."""

import os

from django.core.wsgi import get_wsgi_application

from .platform import refusal
from .platform.memory import loading

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.production")

with loading():
    from .platform.process import preload, refuse_unsafe_settings

    with refusal.shown_alone():
        application = get_wsgi_application()
        refuse_unsafe_settings()
    preload()
