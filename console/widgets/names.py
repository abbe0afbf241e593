"""The names people know things by."""

from collections.abc import Collection, Mapping

from notifications.models import NotificationType

from .labels import code_label


def type_names(slugs: Collection[str]) -> Mapping[str, str]:
    """Return the types' names; for one that is not registered any more, its slug as words."""
    known = NotificationType.objects.only("name").in_bulk(list(slugs))
    return {slug: known[slug].name if slug in known else code_label(slug) for slug in slugs}
