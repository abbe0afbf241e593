"""Files of recipients: what is stored of them, and their parts."""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField

from domain.states import Duplicates, FileStatus
from domain.tables.table import TableFormat
from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim

OPEN_FILES = {"due_at": {"$exists": True}}
OF_PEOPLE = {"people": {"$exists": True}}
DIGEST_LENGTH = 64
PERSON_LENGTH = 24


class AudienceFile(models.Model):
    """A file of recipients. What personal data it has is in its parts."""

    client_id = ObjectIdField()
    uploaded_by = optional_text(64)
    """The ID of the member of staff; missing for a file of an API client."""
    is_test = models.BooleanField(default=False)
    type = models.CharField(max_length=64)
    """The type whose schema the rows are checked against."""
    size = models.IntegerField()
    """Bytes, as declared before the upload."""
    status = choice_field(FileStatus)

    digest = optional_text(DIGEST_LENGTH)
    """A keyed digest of the content, by which the same file is known later."""
    header_digest = optional_text(DIGEST_LENGTH)
    """A keyed digest of the header, by which its columns are known later."""
    format = choice_field(TableFormat, null=True, blank=True)
    charset = optional_text(20)
    separator = optional_text(1)
    rows = models.IntegerField(null=True, blank=True)
    """Missing until the file is read."""
    parts = models.IntegerField(null=True, blank=True)
    """Parts with rows."""
    columns = ArrayField(models.CharField(max_length=140), null=True, blank=True)
    """What each column is: ``email``, ``data.amount``, or nothing if it is ignored."""
    duplicates = choice_field(Duplicates)
    country = optional_text(2)
    """The country of phone numbers without a country code."""

    check_number = models.IntegerField(default=0)
    """The checks that were begun. What another one found isn't stored."""
    cursor = models.IntegerField(null=True, blank=True)
    """The part to check next."""
    good = models.IntegerField(default=0)
    wrong = models.IntegerField(default=0)
    skipped = models.IntegerField(default=0)
    problems = models.JSONField(default=list, blank=True)
    """Each sentence about rows, how many have it, and the first ones."""
    doubts = models.JSONField(default=list, blank=True)
    """As ``problems``, of good rows: what may not be sent after all, such as over a limit."""
    messages = models.JSONField(default=dict, blank=True)
    """What the good rows would send by channel: messages, and parts by country."""
    failure_code = optional_text(40)
    failure_reason = optional_text(500)

    due_at = optional_datetime()
    """When to read or check next. Missing if there is nothing to do."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    claim_count = models.IntegerField(default=0)
    """Leases in a row that ended without progress."""
    content_until = models.DateTimeField()
    """When the parts are removed, or were."""
    sealed_at = optional_datetime()
    """When a broadcast of the file was stored, which has its ID. From then on, nothing changes."""
    checked_at = optional_datetime()
    purge_at = optional_datetime()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "audience_files"
        ordering = ("-created_at", "-id")
        verbose_name = "file"
        indexes = (
            MongoIndex("client_id", "-created_at", "-_id", name="fil_client_created"),
            MongoIndex("client_id", "digest", name="fil_client_digest"),
            MongoIndex("due_at", name="fil_due", partial=OPEN_FILES),
            MongoIndex("purge_at", name="fil_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"


class AudienceFilePart(models.Model):
    """An encrypted part of a file: of its upload, its header, or its rows."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=60)
    """``<file>:<kind>:<number>``."""
    file_id = ObjectIdField()
    content = models.TextField()
    """Encrypted."""
    findings = models.TextField(null=True, blank=True)
    """What the check found of the part's rows, as JSON. It has no value of a row."""
    check_number = models.IntegerField(null=True, blank=True)
    """The check that has these findings."""
    people = ArrayField(models.CharField(max_length=PERSON_LENGTH), null=True, blank=True)
    """Keyed digests of the people in the rows, by which an erasure finds them."""
    purge_at = models.DateTimeField()

    class Meta:
        db_table = "audience_file_parts"
        default_permissions = ()
        indexes = (
            MongoIndex("file_id", name="flp_file"),
            MongoIndex("people", name="flp_people", partial=OF_PEOPLE),
            MongoIndex("purge_at", name="flp_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return self.id
