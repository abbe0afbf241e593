"""The web, for gunicorn."""

import gc
import os

from django.core.wsgi import get_wsgi_application

from .starting import load_everything, refuse_unsafe_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.production")

application = get_wsgi_application()
refuse_unsafe_settings()
load_everything()

# What is loaded by now stays: the collector need not look through it in the midst of a call, nor at
# every 700 objects of one that makes a hundred thousand. A quarter of the CPU of a bulk call.
gc.collect()
gc.freeze()
gc.set_threshold(10_000, 20, 20)
