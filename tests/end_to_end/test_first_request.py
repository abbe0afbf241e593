"""The first request to a web process is not slowed by imports."""

import json

import redis

from tests.support.clients.api import App, request
from tests.support.subprocess import python

PROGRAM = """
import io, json, sys
from wsgiref.util import setup_testing_defaults
from notifyproject.wsgi import application

def answer(key, body):
    call = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/api/v1/notifications",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_AUTHORIZATION": "Bearer " + key,
        "wsgi.input": io.BytesIO(body),
    }
    setup_testing_defaults(call)
    statuses = []
    application(call, lambda status, headers: statuses.append(status))
    return statuses

key, body = sys.argv[1], sys.argv[2].encode()
before = set(sys.modules)
status = answer(key, body)
print(json.dumps({"status": status, "loaded": sorted(set(sys.modules) - before)}))
"""


def test_wsgi_process_imports_everything_before_the_first_request(
    app: App, broker: redis.Redis
) -> None:
    found = json.loads(python("-c", PROGRAM, app.key, json.dumps(request())))
    assert found["status"] == ["202 Accepted"]
    # What Django keeps a session's messages in, it loads by itself: a few milliseconds.
    assert [name for name in found["loaded"] if not name.startswith("django.contrib.")] == []
