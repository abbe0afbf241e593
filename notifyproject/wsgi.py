"""The web, for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

from .starting import load_everything, refuse_unsafe_settings, set_aside_what_stays

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.production")

application = get_wsgi_application()
refuse_unsafe_settings()
load_everything()
set_aside_what_stays()
