"""Base of the models."""

from django.db import models
from django_mongodb_backend.managers import MongoManager


class MongoModel(models.Model):
    """A model over a MongoDB collection."""

    objects = MongoManager()

    class Meta:
        abstract = True
