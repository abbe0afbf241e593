"""Each use of a plain hash is listed with its reason: a guessable value needs a key."""

import re

from tests.support.source import SERVICE, files, text

_HASH = re.compile(r"hashlib\.(?:sha\d|md5|blake|new|pbkdf)")
_KEYED = "an HMAC, under a key"
_RANDOM_SECRET = "a random secret, which can't be guessed"
_NAMES = "client and user IDs, which other documents contain, and no address"
_GROUP = "a recipient's ID or keyed digest, and names, hashed for an ID"
_IDS = "random IDs, hashed for new ones"
REASONS = {
    "access/clients/inbox_tokens.py": f"{_KEYED}; {_NAMES}",
    "access/clients/registry.py": _RANDOM_SECRET,
    "access/staff/lockout.py": _KEYED,
    "access/staff/oidc/flow.py": _RANDOM_SECRET,
    "access/staff/second_factor.py": _RANDOM_SECRET,
    "api/http/rate_limits.py": _NAMES,
    "api/openapi/document.py": "a public document, for its entity tag",
    "domain/signing.py": _KEYED,
    "console/widgets/forms.py": "values of a form, which the same page shows",
    "devices/browser_tokens.py": f"{_NAMES}; within an encrypted token",
    "devices/tokens.py": "a push token or an endpoint, which are random",
    "domain/digests.py": _GROUP,
    "domain/web_push.py": "a public key, and an ID of ours",
    "notifications/intake/addressees.py": _IDS,
    "notifications/broadcasts/fingerprint.py": "an approval is of these bytes alone",
    "notifications/bulk/operation.py": _IDS,
    "notifications/catalog/designs.py": "an item of a design, which the same response shows",
    "notifications/content/type_files.py": "a type and its texts, which the same response shows",
    "notifications/intake/bulk.py": "a fingerprint, of which only a keyed digest is stored",
    "notifications/intake/idempotency.py": "client and key; a fingerprint that is stored keyed",
    "notifications/intake/mismatches.py": "the schema of a type, which isn't secret",
    "notifications/store/inbox.py": _NAMES,
    "notifyproject/stack/demo.py": "a public file, for its integrity attribute",
    "notifyproject/platform/valkey.py": "a script of this repository, which Valkey names by it",
    "providers/aws_signing.py": _KEYED,
    "providers/contract.py": _RANDOM_SECRET,
    "providers/email_webhooks.py": f"{_KEYED}; an event, which the webhook log holds for as long",
    "providers/fcm/messages.py": _IDS,
    "providers/sendgrid/webhooks.py": "an event, which the webhook log holds for as long",
    "providers/twilio/webhooks.py": _KEYED,
    "providers/webpush/encryption.py": _KEYED,
    "providers/whatsapp/webhooks.py": _KEYED,
    "domain/channels/__init__.py": "the input of a keyed digest",
}


def test_each_use_of_a_hash_has_a_reason() -> None:
    found = {str(path) for path in files(*SERVICE) if _HASH.search(text(path))}
    assert found == REASONS.keys()
