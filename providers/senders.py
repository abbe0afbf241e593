"""Who may be the sender of emails, by the settings."""

from django.conf import settings

from domain.mailboxes import Mailbox, may_send_as, parse_mailbox


def own_sender() -> Mailbox:
    """Return the installation's sender, of emails whose brand has none."""
    return parse_mailbox(settings.EMAIL_FROM)


def is_allowed(mailbox: Mailbox) -> bool:
    """Return whether a brand may have a sender: the installation's own address, or an allowed one.

    The name is free.
    """
    own = own_sender().address.lower()
    return mailbox.address.lower() == own or may_send_as(mailbox, settings.EMAIL_SENDERS)
