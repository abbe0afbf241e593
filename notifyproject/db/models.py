"""The embedded model of a claim, for the models of all documents that have leases."""

from django.db import models
from django_mongodb_backend.models import EmbeddedModel


class Claim(EmbeddedModel):
    """A worker's lease. Only the holder of its token may write."""

    token = models.CharField(max_length=32)
    lease_until = models.DateTimeField()
    worker = models.CharField(max_length=120)
