"""The floor (minimal baseline) of the API: a Django view that stores its input with majority write.

``gunicorn bench.bare:application``. It has no middleware, authentication, or validation.
"""

import json
import os
from datetime import UTC, datetime
from functools import cache
from typing import Any

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.write_concern import WriteConcern

settings.configure(
    ROOT_URLCONF="bench.bare", ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="of-a-benchmark", USE_TZ=True
)
django.setup()


@cache
def stored_requests() -> Collection[dict[str, Any]]:
    """Return the collection. Connects at the first call, which is after gunicorn's fork."""
    client = MongoClient[dict[str, Any]](os.environ["MONGODB_URI"])
    majority = WriteConcern(w="majority", j=True)
    return client.get_default_database().get_collection("bare", write_concern=majority)


def accept(request: HttpRequest) -> JsonResponse:
    """Store the JSON body of a request; the only view."""
    document = json.loads(request.body) | {"created_at": datetime.now(UTC)}
    stored = stored_requests().insert_one(document)
    return JsonResponse({"id": str(stored.inserted_id)}, status=202)


urlpatterns = [path("", accept)]
application = get_wsgi_application()
