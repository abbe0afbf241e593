"""WSGI application of the web process."""

import os

from django.core.wsgi import get_wsgi_application

from .platform.process import freeze_gc, preload, refuse_unsafe_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.production")

application = get_wsgi_application()
refuse_unsafe_settings()
preload()
freeze_gc()
