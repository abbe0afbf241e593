"""SMTP replies of real servers, and what they touch: the account, one recipient, or one message."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from bson import ObjectId
from django.core.mail.backends import smtp as smtp_backend

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Recipient
from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    RecipientAction,
    TransientError,
)
from notifyproject.db.collections import collection
from notifyproject.platform import smtp as smtp_client
from notifyproject.platform.event_loop import run
from notifyproject.settings.environment import read
from providers.mail_replies import Reply, Step, Subject
from providers.smtp.replies import PERMANENT, TEMPORARY, classify_reply
from providers.smtp.setup import check as try_smtp
from providers.smtp.variables import Settings
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted, outbound
from tests.support.fakes import socket_server
from tests.support.fakes.smtp_server import QUESTIONS, MailServer, mail_server, refusal
from tests.support.mongo.query_plans import plans
from tests.support.samples import sampled
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

F = FailureCode
RECIPIENT, MESSAGE = Step.RECIPIENT, Step.MESSAGE
LATER = (RECIPIENT, MESSAGE)

OF_THE_ACCOUNT: Mapping[str, str] = {
    # https://forums.cpanel.net/threads/email-quota.697029/
    "550 Domain example.com has exceeded the max emails per hour (123/100 (123%)) allowed. "
    "Message discarded.": "",
    "550 Domain example.com has exceeded the max defers and failures per hour (5/5 (100%)) "
    "allowed.": "",
    "451 Domain example.com has exceeded the max emails per hour (2/2 (100%)) allowed. Message "
    "will be reattempted later": "",
    "550 Email account a@example.com is sending too many emails - rate overlimit = 83.6 / 1h": "",
    # https://github.com/gen-smtp/gen_smtp/issues/140
    "550 5.4.5 Daily user sending quota exceeded. o65sm25351206pga.71 - gsmtp": "5.4.5",
    # https://github.com/woowacourse-teams/2025-ah-madda/issues/635
    "550-5.4.5 Daily user sending limit exceeded. For more information on Gmail\n"
    "5.4.5 sending limits go to\n5.4.5  https://support.google.com/a/answer/166852": "5.4.5",
    # https://github.com/MicrosoftDocs/OfficeDocs-Exchange/issues/2729
    "550 5.1.90 Your message can't be sent because you've reached your daily limit for message "
    "recipients": "5.1.90",
    # https://github.com/MicrosoftDocs/OfficeDocs-Support/issues/1187
    "554 5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException.MapiExceptionSendAsDenied; "
    "Failed to process message due to a permanent exception": "5.2.0",
    # https://github.com/gophish/gophish/issues/2900
    "554 5.2.252 SendAsDenied; a@example.com not allowed to send as b@example.com": "5.2.252",
    # https://github.com/deltachat/deltachat-core/issues/647
    "554 5.7.1 <DATA>: Data command rejected: limit of 400 rcpts per 24 hours for client "
    "a@example.com reached": "5.7.1",
    # https://github.com/root-io/vmail/issues/67
    "554 5.7.1 <DATA>: Data command rejected: only 10 messages per day": "5.7.1",
    # https://github.com/WWBN/AVideo/issues/7527
    "552 C13ypH3DXQO9CC140p6S9y Message would take you over your relay quota of 500 Current quota "
    "used: 487": "",
    # https://github.com/nodemailer/nodemailer/issues/1137
    "550 User me@example.com has exceeded its 24-hour sending limit. Messages to 25 recipients "
    "out of 25": "",
    # https://github.com/namshi/docker-smtp/issues/77
    "550 relay not permitted": "",
    # https://github.com/mikechabot/smtp-email-spoofer-py/issues/18
    "550 relay access denied - please authenticate": "",
    # https://github.com/Ecotrust/forestplanner/issues/220
    "550 5.7.1 Unable to relay": "5.7.1",
    # https://github.com/docker-mailserver/docker-mailserver/issues/2257
    "550-Verification failed for <user@example.com>\nThe mail server does not recognize "
    "user@example.com as a valid sender.\nSender verify failed": "",
    # https://github.com/zone-eu/zone-mta/blob/master/config/bounces.txt
    "550 rejected because 192.0.2.1 is in a black list at zen.spamhaus.org": "",
    "550 5.2.1 Mailbox unavailable. Your IP address 192.0.2.1 is blacklisted using "
    "SPAMHAUS-XBL.": "5.2.1",
    "550 https://www.spamhaus.org/query/ip/192.0.2.1": "",
    "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using spamhaus.org": "5.7.1",
    "550 5.7.606 Access denied, banned sending IP [192.0.2.1]": "5.7.606",
    # https://smtpfieldmanual.com
    "550 5.1.8 <a@example.com>: Sender address rejected: Domain not found": "5.1.8",
    "501 5.1.0 Emetteur invalide. Invalid Sender. OFR004_405 [405]": "5.1.0",
    "550 5.7.26 Unauthenticated email from example.com is not accepted due to DMARC": "5.7.26",
    # https://github.com/sahat/hackathon-starter/issues/1083
    "550 The from address does not match a verified Sender Identity. Mail cannot be sent until "
    "this error is resolved.": "",
    # https://github.com/openedx/openedx-platform/pull/1410
    "454 Throttling failure: Daily message quota exceeded.": "",
    "454 Throttling failure: Maximum sending rate exceeded.": "",
    # https://github.com/getsentry/self-hosted/issues/1045
    "504 5.5.2 <0391926cb167>: Helo command rejected: need fully-qualified hostname": "5.5.2",
    # https://github.com/Mailu/Mailu/issues/656
    "554 5.7.1 <a@example.com>: Sender address rejected: Access denied": "5.7.1",
    # https://github.com/mattermost/mattermost/issues/1012
    "554 5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access denied": "5.7.1",
    # https://github.com/getconversio/email-deep-validator/issues/9
    '550-"JunkMail rejected - mail.example.com\n(example.com) [192.0.2.1]:34032 is in an RBL, see\n'
    "https://www.spamhaus.org/query/ip/192.0.2.1": "",
    # https://github.com/aschroder/Magento-SMTP-Pro-Email-Extension/issues/94
    "550 sorry, too many emails (#5.7.1)": "5.7.1",
    # https://github.com/gophish/gophish/issues/3231
    "550 send spam mail rejected: exceeded hour limit": "",
    # https://github.com/ChangemakerStudios/Papercut-SMTP/issues/199
    "550 User has exceeded outgoing email quota": "",
    "451 4.7.1 Hourly limit exceeded": "4.7.1",
    # https://github.com/roundcube/roundcubemail/issues/8103
    "550 5.7.1 <mail.example.net[192.0.2.1]>: Client host rejected: Blacklisted user: "
    "a@example.com": "5.7.1",
    # https://github.com/postalserver/postal/issues/1200
    "550 too many emails per connection": "",
    # https://github.com/fm/smtp-codes/pull/7
    "550 5.7.515 Access denied, sending domain example.com doesn't meet the required "
    "authentication level.": "5.7.515",
    # https://github.com/docker-mailserver/docker-mailserver/issues/1476
    "450 4.7.1 <a@example.com>: Sender address rejected: sorry, max 2 requests per hour.": "4.7.1",
    # A mailbox that is full may be the sender's.
    "552 5.2.2 This message was rejected: sender over quota": "5.2.2",
    "552 5.2.2 Sender's mailbox is full, cannot send": "5.2.2",
    "550 The user a@example.com exceeded the maximum number of messages allowed to send today": "",
    "550 You have exceeded your hourly email allotment": "",
    "550 Kunde hat das Versandlimit erreicht": "",
    "454 4.7.0 Too many login attempts, please try again later. - gsmtp": "4.7.0",
    "550-5.7.1 Invalid credentials for relay [192.0.2.1]. The IP address you've registered in\n"
    "5.7.1 your G Suite SMTP Relay service doesn't match": "5.7.1",
    "421 4.7.1 Error: too many recipients from 192.0.2.1": "4.7.1",
    "550 5.7.1 [TSS09] All messages from 192.0.2.1 will be permanently deferred": "5.7.1",
    "554 IP=192.0.2.1 - A problem occurred. (Ask your postmaster for help)": "",
    "550 5.7.1 Unverified sender": "5.7.1",
    "550 5.7.1 Command not allowed: need permission to send from this address": "5.7.1",
    "550 Callback setup failed while verifying <a@example.com>": "",
    # https://github.com/sabuhish/fastapi-mail/issues/75
    "432 4.3.2 Concurrent connections limit exceeded. Visit https://aka.ms/x": "4.3.2",
    "432 4.3.2 STOREDRV.ClientSubmit; sender thread limit exceeded": "4.3.2",
    # https://github.com/in2code-de/luxletter/issues/247
    "421 Too many concurrent SMTP connections": "",
    # https://github.com/in2code-de/luxletter/issues/79
    "421 4.7.0 mail.example.com Error: too many connections from 192.0.2.1": "4.7.0",
    # https://github.com/Ombi-app/Ombi/issues/4429
    "421 4.3.2 The maximum number of concurrent connections has exceeded a limit, closing": "4.3.2",
    "421 4.7.0 Too many sessions opened": "4.7.0",
    # https://github.com/bbottema/simple-java-mail/issues/348
    "450 4.7.1 <a@x.io>: Recipient address rejected: Policy Rejection- Quota Exceeded.": "4.7.1",
    # https://github.com/Mailu/Mailu/issues/2599, https://github.com/iredmail/iRedMail/issues/264
    "550-5.7.1 [192.0.2.1] The IP you're using to send mail is not authorized to\n"
    "5.7.1 send email directly to our servers. Please use the SMTP relay": "5.7.1",
    # https://github.com/mail-in-a-box/mailinabox/issues/1194
    "554 5.7.1 You are not allowed to connect.": "5.7.1",
    "550 5.7.1 Client does not have permission to submit mail to this server": "5.7.1",
    "550 Domain frequency limited [example.com].": "",
    "550 Ip frequency limited": "",
    # https://github.com/frappe/erpnext/issues/19057
    "553 Relaying disallowed as a@example.com": "",
    # https://github.com/Billionmail/BillionMail/issues/171
    "550 Unauthenticated senders not allowed": "",
    # https://github.com/portier/portier-broker/issues/128
    "550 550 OU-001 Unfortunately, messages from 192.0.2.1 weren't sent. Please contact your "
    "provider since part of their network is on our block list.": "",
    # Answers of Exchange Online, Zoho, Amazon SES, Exim, qmail, and Postfix in their documentation.
    "550 5.1.8 Access denied, bad outbound sender": "5.1.8",
    "550 5.7.708 Service unavailable. Access denied, traffic not accepted from this IP": "5.7.708",
    "530 5.7.57 Client not authenticated to send mail": "5.7.57",
    "550 5.4.6 Unusual sending activity detected": "5.4.6",
    "554 Message rejected: Email address is not verified. The following identities failed the "
    "check in region US-EAST-1: a@example.com": "",
    "550 authentication required": "",
    "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)": "5.7.1",
    "503 5.5.1 Error: authenticate first": "5.5.1",
    "553 5.7.1 <a@example.com>: Sender address rejected: not owned by user b": "5.7.1",
    "450 4.7.1 Client host rejected: cannot find your reverse hostname, [192.0.2.1]": "4.7.1",
}
"""Replies about the account by the enhanced code that is read."""

OF_THE_RECIPIENT: Mapping[str, str] = {
    "550 5.1.1 The email account that you tried to reach does not exist.": "5.1.1",
    "550 5.2.1 The email account that you tried to reach is disabled.": "5.2.1",
    "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by address lookup": "5.1.10",
    "550 Invalid recipient <ada@example.com> (#5.1.1)": "5.1.1",
    "550 cuda_nsu 5.1.1 <ada@example.com>... User unknown": "5.1.1",
    "550-5.1.1 <ada@example.com>:\nuser does not exist": "5.1.1",
    "550-Unknown\n550 5.1.2 Host unknown": "5.1.2",
    "501 5.1.3 Bad recipient address syntax": "5.1.3",
    "550 5.7.1 No such user!": "5.7.1",
    "550 No such user (ada@example.com)": "",
    "550 Unrouteable address": "",
    "550 User unknown": "",
    "550 sorry, no mailbox here by that name (#5.1.1 - chkuser)": "5.1.1",
    "554 delivery error: dd This user doesn't have a example.com account": "",
    "554 Message rejected: Address blacklisted": "",
    "556 Domain does not accept mail": "",
    "552 5.2.2 Mailbox full": "5.2.2",
    "552 5.2.2 Mailbox has been over quota for more than 24 hours": "5.2.2",
    # The link is to a page of help.
    "550 5.1.1 The address is marked as invalid. See https://smtp.example.com/spf.html": "5.1.1",
    "550 5.1.1 The account that you tried to reach was not used for 90 days": "5.1.1",
    "550 Benutzer nicht gefunden": "",
    # https://github.com/MicrosoftDocs/OfficeDocs-Exchange/issues/2654
    "550 5.4.1 Recipient address rejected: Access denied. AS(201806281)": "5.4.1",
    # https://github.com/sisimai/rb-sisimai/issues/77
    "550 5.4.1 [ada@example.com]: Recipient address rejected: Access denied": "5.4.1",
    "550-5.4.1 <ada@example.com>:\nRecipient address rejected: Access denied": "5.4.1",
    "550 5.4.1 All recipient addresses rejected : Access denied": "5.4.1",
    # https://github.com/zone-eu/zone-mta/issues/324
    "550 No user found": "",
    "550 4.2.2 over quota": "4.2.2",
    "552 Requested mail action aborted: exceeded storage allocation, Quota exceeded": "",
    "552 5.1.1 Boite du destinataire pleine. Recipient overquota. OFR_417": "5.1.1",
}

UNCLEAR: tuple[str, ...] = (
    "550 I cannot deliver mail for <ada@example.com>",
    # https://github.com/jstedfast/MailKit/issues/968
    "550-Requested action not taken: mailbox unavailable\nFailure sending mail. Try again later",
    # https://github.com/Excision-Mail/Excision-Mail/issues/54
    "550 message rejected",
    # https://github.com/chatmail/core/pull/1748
    "550 5.5.0 Rejected",
    # https://github.com/AI-Shipping-Labs/website/issues/827
    "550 5.3.0 denied",
    "550 Requested action not taken: mailbox unavailable",
    "550 5.5.0 Requested action not taken: mailbox unavailable",
    "550 Mailbox unavailable or access denied",
    "550 5.7.1 <ada@example.com>: Recipient address rejected: Access denied",
    "550 5.4.1 Access denied",
    "550 5.7.1 Policy rejection on the target address",
    "550 permanent failure for one or more recipients (ada@example.com:blocked)",
    "550 Administrative prohibition - envelope blocked",
    "550 Account suspended",
    "550 Quota exceeded",
    "550 5.0.0 Rejected",
    "551 No",
    "553 No",
    "554 5.3.0 Error",
    "554 Transaction failed",
    "571 No",
)
"""They may be a rule of the server for everybody."""

OF_THE_MESSAGE: Mapping[str, FailureCode] = {
    "550 maximum allowed line length is 998 octets, got 1973": F.REJECTED,
    "550 5.7.1 Message considered as SPAM": F.REJECTED,
    "554 5.7.1 Spam message rejected; If this is not spam contact abuse": F.REJECTED,
    "552 5.7.0 This message was blocked because its content presents a potential issue": F.REJECTED,
    "550 5.7.1 Message contains a blacklisted url": F.REJECTED,
    "554 5.6.0 Malformed header": F.REJECTED,
    "550 5.7.1 RESOLVER.RST.NotAuthorized; not authorized": F.REJECTED,
    "550 5.7.1 You do not have permission to send to this recipient": F.REJECTED,
    # https://github.com/ActiveCampaign/smtp-field-manual/issues/11
    "554 5.7.1 The recipient definitively does not want your mail. It will not be delivered. We "
    "may feed it to a spam blacklist.": F.REJECTED,
    # https://github.com/chatmail/provider-db/issues/205
    "554 5.7.1 [2] Message rejected under suspicion of SPAM; https://ya.cc/1IrBc": F.REJECTED,
    # https://github.com/postalserver/postal/issues/266
    "550-5.7.1 [192.0.2.1 12] Our system has detected that this message is\n5.7.1 likely "
    "unsolicited mail. To reduce the amount of spam sent to Gmail, this was blocked.": F.REJECTED,
    "552 You have exceeded the maximum message size": F.TOO_LARGE,
    "550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required": F.REJECTED,
    "552 5.3.4 Message size exceeds fixed limit": F.TOO_LARGE,
    "552 message size exceeds fixed maximum message size": F.TOO_LARGE,
    "554 5.2.3 Message too large for the mailbox": F.TOO_LARGE,
}


def classified(line: str, step: Step) -> ProviderError:
    return classify_reply(Reply(step=step, status=int(line[:3]), text=line[4:]))


def touches_nobody_else(error: ProviderError) -> bool:
    return error.reach is Reach.RECIPIENT


@each_case("step", LATER)
@each_case("line, code", OF_THE_ACCOUNT.items())
def test_reply_about_the_account_is_held(line: str, code: str, step: Step) -> None:
    error = classified(line, step)
    assert isinstance(error, ProviderUnavailableError)
    assert error.response is not None
    assert error.response.code == (code or None)
    # Perhaps the recipient's server said it: several recipients are needed to stop the others.
    assert error.reach is Reach.UNCERTAIN


@each_case("line", [line for line in OF_THE_ACCOUNT if line.startswith("5")])
@each_case("step", [Step.CONNECTION, Step.LOGIN, Step.SENDER])
def test_reply_before_a_recipient_was_named_is_about_the_account(line: str, step: Step) -> None:
    error = classified(line, step)
    assert isinstance(error, ProviderUnavailableError)
    assert error.reach is Reach.ACCOUNT


@each_case("step", LATER)
@each_case("line, code", OF_THE_RECIPIENT.items())
def test_reply_about_the_recipient_is_a_soft_bounce(line: str, code: str, step: Step) -> None:
    error = classified(line, step)
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT
    assert error.response is not None
    assert error.response.code == (code or None)
    assert touches_nobody_else(error)


@each_case("step", LATER)
@each_case("line", UNCLEAR)
def test_unclear_reply_is_no_soft_bounce(line: str, step: Step) -> None:
    error = classified(line, step)
    assert type(error) is PermanentError
    assert error.code is F.REJECTED
    assert error.reach is Reach.UNCERTAIN


@each_case("step", LATER)
@each_case("line, code", OF_THE_MESSAGE.items())
def test_reply_about_the_message_ends_it_alone(line: str, code: FailureCode, step: Step) -> None:
    error = classified(line, step)
    assert type(error) is PermanentError
    assert error.code is code
    assert touches_nobody_else(error)


def test_invalid_address_in_the_message_is_not_the_recipient() -> None:
    assert type(classified("554 5.7.1 [x] invalid address in header", MESSAGE)) is PermanentError


@each_case(
    "line, code",
    [
        ("450 4.2.1 The user you are trying to contact is receiving mail too quickly", "limited"),
        ("550 5.2.1 The user is receiving mail at a rate that prevents additional", "limited"),
        (
            "554 5.2.122 The recipient has exceeded their limit for the number of messages",
            "limited",
        ),
        ("452 4.2.1 The user has received too many messages today", "limited"),
        # https://github.com/MicrosoftDocs/OfficeDocs-Exchange/pull/2409
        ("432 4.3.2 STOREDRV.Deliver; recipient thread limit exceeded", "limited"),
        ("451 4.7.1 Greylisting in action, please come back later", "error"),
        ("450 4.2.0 <ada@example.com>: Recipient address rejected: Greylisted", "error"),
        ("550 5.7.1 Grey listed, try again in 5 minutes", "error"),
        ("452 4.2.2 The email account that you tried to reach is over quota", "error"),
        ("450 4.1.1 <ada@example.com>: unverified recipient", "error"),
        # https://github.com/civicrm/civicrm-core/pull/31608
        ("450 4.1.2 <ada@example.com>: Recipient address rejected: Domain not found", "error"),
        ("450 Requested mail action not taken: mailbox unavailable", "error"),
    ],
)
def test_temporary_reply_about_the_recipient_says_nothing_of_the_server(
    line: str, code: str
) -> None:
    error = classified(line, RECIPIENT)
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous
    assert error.code is (F.RECIPIENT_RATE_LIMITED if code == "limited" else F.PROVIDER_ERROR)
    assert touches_nobody_else(error)


@each_case(
    "line",
    [
        "451 4.3.0 Local error",
        "452 4.3.1 Full",
        "421 4.7.0 Later",
        # https://github.com/knadh/listmonk/issues/2683: of one session; the next one is new.
        "421 Connection closed by server. Maximum message count per session reached.",
        # https://github.com/postalserver/postal/issues/576
        "451 4.7.1 Try again later",
        "451 4.4.2 Timeout - closing connection",
        "452-4.5.3 Domain policy size per transaction exceeded, please try again",
    ],
)
@each_case("step", [*LATER, Step.SENDER, Step.CONNECTION])
def test_temporary_reply_of_the_server_is_retried(line: str, step: Step) -> None:
    error = classified(line, step)
    assert isinstance(error, TransientError)
    assert error.reach is Reach.ACCOUNT


def test_no_other_code_than_of_an_address_or_a_mailbox_counts_against_it() -> None:
    """RFC 3463: X.1 speaks of addresses, 7 and 8 being the sender's, and X.2 of mailboxes."""
    allowed = {f"1.{n}" for n in (0, 1, 2, 3, 4, 6, 10)} | {f"2.{n}" for n in (0, 1, 2, 4)}
    for code in (f"{x}.{y}" for x in range(8) for y in range(40)):
        for status in (500, 501, 550, 551, 552, 553, 554):
            error = classified(f"{status} 5.{code} No", RECIPIENT)
            assert isinstance(error, InvalidRecipientError) is (code in allowed), (status, code)


def test_every_reply_has_a_class() -> None:
    for step in Step:
        for status in (*TEMPORARY, *PERMANENT):
            assert isinstance(classified(f"{status} What", step), ProviderError)


@each_case(
    "text, code",
    [
        ("5.1.1 No", "5.1.1"),
        ("#5.1.1 No", "5.1.1"),
        ("[5.1.1] No", "5.1.1"),
        ("<ada@example.com>: 5.1.1 No", "5.1.1"),
        ("No (#5.7.1)", "5.7.1"),
        ("mail.example.com cmsmtp 5.7.1 No", "5.7.1"),
        ("first line\n5.4.5 second line", "5.4.5"),
        ("5.1 No", None),
        ("[5.1.1.4] No", None),
        ("Exim 4.94.2 says no", None),
        ("<ada5.1.1@example.com> no", None),
        ("x" * 400 + " 5.1.1 No", None),
        ("5.1.1.7 No", None),
    ],
)
def test_enhanced_code_is_found_where_servers_write_it(text: str, code: str | None) -> None:
    assert Reply(step=RECIPIENT, status=550, text=text).enhanced_code == code


def test_words_are_looked_for_in_time() -> None:
    """The expressions of the words have no exponential case."""
    for text in (
        "ip " * 20_000,
        "mailbox" * 9_000,
        "recipient account user " * 3_000,
        "a" * 65_000,
    ):
        assert Reply(step=RECIPIENT, status=550, text=text).subject in Subject


OVERLIMIT = "550 Email account shop@example.com is sending too many emails - rate overlimit = 83"


def mail(address: str) -> ObjectId:
    document = accepted(user_id=address, recipient=Recipient(email=address))
    found: ObjectId = document["_id"]
    return found


def dispatch(*ids: ObjectId, at: datetime = NOON) -> None:
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: at)


def state(notification_id: ObjectId) -> tuple[Any, ...]:
    delivery = factories.delivery(factories.read(notification_id))
    return delivery["status"], delivery.get("failure_code")


@pytest.mark.usefixtures("db", "broker", "valkey_anew", "opened")
class TestSent:
    """Mails to a server that refuses."""

    @pytest.mark.parametrize(
        "replies",
        [
            {"RCPT": OVERLIMIT},
            {"RCPT": "550 5.4.5 Daily user sending quota exceeded"},
            {"RCPT": "550 rejected because 192.0.2.1 is in a black list at zen.spamhaus.org"},
            {"message": "554 5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException"},
            {"message": "554 Message rejected: Email address is not verified"},
        ],
        ids=["rate", "quota", "blocklist", "send as", "not verified"],
    )
    def test_fault_of_the_account_costs_no_recipient_a_mail(
        self, replies: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = MailServer(replies)
        with mail_server(server) as (smtp, _):
            monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (smtp,))
            notification_id = mail("rate@example.com")
            for minutes in range(0, 60, 10):
                at = NOON + timedelta(minutes=minutes)
                dispatch(notification_id, at=at)
                assert state(notification_id) == ("pending", "channel_unavailable")
            assert collection("soft_bounces").count_documents({}) == 0
            assert collection("suppressions").count_documents({}) == 0
            server.replies = {}
            dispatch(notification_id, at=NOON + timedelta(hours=2))
            assert state(notification_id) == ("sent", None)

    @pytest.mark.parametrize(
        ("command", "line"),
        sampled(
            [
                (command, line)
                for command in ("RCPT", "message")
                for line in (
                    OVERLIMIT,
                    "550 5.1.1 No such user",
                    "552 5.2.2 Mailbox full",
                    "450 4.2.0 Mailbox busy",
                    "451 4.7.1 Greylisted",
                    "550 5.7.1 Access denied",
                    "550 I cannot deliver mail",
                    "550 5.7.1 Looks like spam",
                    "556 No mail",
                )
            ],
            each=4,
        ),
    )
    def test_answer_about_one_recipient_delays_no_other(
        self, command: str, line: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = MailServer({command: line})
        with mail_server(server) as (smtp, _):
            monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (smtp,))
            refused, other = mail("refused@example.com"), mail("other@example.com")
            for _ in range(4):
                dispatch(refused)
            server.replies = {}
            dispatch(other)
            assert state(refused)[0] in ("pending", "failed")
            assert state(other) == ("sent", None)

    def test_unclear_refusals_of_five_recipients_hold_the_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = MailServer({"RCPT": "550 I cannot deliver mail"})
        with mail_server(server) as (smtp, _):
            monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (smtp,))
            ids = [mail(f"{n}@example.com") for n in range(40)]
            for notification_id in ids:
                dispatch(notification_id)
            assert [state(notification_id)[0] for notification_id in ids] == ["failed"] * 5 + [
                "pending"
            ] * 35
            assert collection("soft_bounces").count_documents({}) == 0
            server.replies = {}
            for minutes in (2, 4):
                dispatch(*ids, at=NOON + timedelta(minutes=minutes))
            assert [state(notification_id)[0] for notification_id in ids] == ["failed"] * 5 + [
                "sent"
            ] * 35

    @pytest.mark.parametrize("others", [0, 1, 12])
    def test_acceptance_clears_the_soft_bounces(
        self, others: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = MailServer()
        with mail_server(server) as (smtp, _):
            monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (smtp,))
            for line in (*("552 5.2.2 Mailbox full",) * 2, "250 OK", "552 5.2.2 Mailbox full"):
                server.replies = {"RCPT": line}
                beside = [mail(f"{n}@example.com") for n in range(others) if line == "250 OK"]
                dispatch(mail("Full@example.com"), *beside)
            assert collection("suppressions").count_documents({}) == 0
            (left,) = collection("soft_bounces").find()
            assert len(left["events"]) == 1

    @pytest.mark.parametrize("count", [1, 12])
    def test_acceptance_takes_no_command_for_soft_bounces(
        self, count: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with mail_server(MailServer()) as (smtp, _):
            monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (smtp,))
            ids = [mail(f"{n}@example.com") for n in range(count)]
            with plans("soft_bounces") as commands:
                dispatch(*ids)
            assert {state(notification_id) for notification_id in ids} == {("sent", None)}
            assert commands == []


@pytest.mark.usefixtures("opened")
@each_case(
    "host, configured, greeting",
    [
        # https://github.com/bitwarden/server/issues/4062: a container has a name of its own.
        ("15b0717dc4c2", "", "[127.0.0.1]"),
        ("localhost", "", "[127.0.0.1]"),
        # https://github.com/matomo-org/matomo/issues/20832
        ("localhost.localdomain", "", "[127.0.0.1]"),
        ("worker-7d9f.mail.svc.cluster.local", "", "[127.0.0.1]"),
        ("mail.example.com", "", "mail.example.com"),
        # https://github.com/pivotal-cf/email-resource/issues/27
        ("mail.example.com", "notify.example.org", "notify.example.org"),
        ("15b0717dc4c2", "relay", "relay"),
        ("15b0717dc4c2", "[192.0.2.1]", "[192.0.2.1]"),
    ],
)
def test_server_is_greeted_with_a_domain_or_an_address(
    host: str, configured: str, greeting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_backend.DNS_NAME, "_fqdn", host, raising=False)
    server = MailServer()
    with mail_server(server, ehlo_name=configured) as (smtp, _):
        run(smtp.send(outbound(), timeout=LIMIT))
    (name,) = {line.split()[1] for line in server.commands if line.upper().startswith("EHLO")}
    assert name == greeting


@each_case(
    "values, name",
    [
        ({"PUBLIC_URL": "https://notify.example.com/"}, "notify.example.com"),
        ({"PUBLIC_URL": "https://Notify.Example.com:8443"}, "notify.example.com"),
        ({"PUBLIC_URL": "https://b\u00fccher.example"}, "xn--bcher-kva.example"),
        ({"PUBLIC_URL": "http://127.0.0.1:8000"}, ""),
        ({"PUBLIC_URL": "http://[::1]:8000"}, ""),
        ({"PUBLIC_URL": "http://localhost:8000"}, ""),
        ({"PUBLIC_URL": "http://web:8000"}, ""),
        ({"PUBLIC_URL": "http://web.svc.cluster.local"}, ""),
        (
            {"PUBLIC_URL": "https://notify.example.com", "SMTP_EHLO_NAME": "mx.example.org"},
            "mx.example.org",
        ),
        ({"SMTP_EHLO_NAME": "[IPv6:2001:db8::1]"}, "[IPv6:2001:db8::1]"),
    ],
)
def test_name_of_the_greeting_is_the_public_one(values: dict[str, str], name: str) -> None:
    environment = read(values)
    assert Settings.of(environment).ehlo_name(environment) == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://notify.example.com", "notify.example.com"),
        ("http://127.0.0.1:8000", "[127.0.0.1]"),
    ],
)
def test_setup_greets_the_server_as_the_service_does(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_backend.DNS_NAME, "_fqdn", "host.internal", raising=False)
    server = MailServer()
    sender = "Dept of A, B <info@b\u00fccher.example>"
    with socket_server.serving(server) as running:
        try_smtp(read({"SMTP_PORT": str(running.port), "PUBLIC_URL": url, "EMAIL_FROM": sender}))
    assert server.commands[0].split() == ["ehlo", name]
    # Versions of Python differ in the case of the command.
    assert server.commands[1].lower() == "mail from:<info@xn--bcher-kva.example>"


def test_reply_is_read_as_the_server_sent_it() -> None:
    reply = "550-5.4.5 Daily user sending limit exceeded.\r\n550-5.4.5 See\r\n550 5.4.5 https://x.example"
    error = refusal({"RCPT": reply})
    assert isinstance(error, ProviderUnavailableError)
    assert error.response is not None
    assert error.response.code == "5.4.5"


LOGIN, CRAM = "LOGIN", "CRAM-MD5"
BROKEN = {CRAM: ["not base64!"]}
NAMELESS = {LOGIN: ["", ""]}
LONG_NAMES = {LOGIN: ["VXNlciBOYW1lAA==", "UGFzc3dvcmQA"]}
REVERSED = {LOGIN: ["UGFzc3dvcmQ6", "VXNlcm5hbWU6"]}


@pytest.mark.usefixtures("opened")
@each_case("password", ["secret", "p\u00e4ssw\u00f6rd", "10 \u20ac", "\u5bc6\u7801"])
@each_case(
    "offer, questions",
    [
        ("AUTH PLAIN LOGIN", {}),
        ("AUTH LOGIN", {}),
        ("AUTH=LOGIN", {}),
        # https://github.com/basecamp/once/issues/12
        ("AUTH LOGIN XOAUTH2", {}),
        ("auth plain login", {}),
        ("AUTH LOGIN", LONG_NAMES),
        ("AUTH LOGIN", NAMELESS),
        ("AUTH LOGIN", REVERSED),
        ("AUTH CRAM-MD5", {}),
        # https://github.com/python/cpython/issues/136134: the next mechanism is tried.
        ("AUTH CRAM-MD5 PLAIN", BROKEN),
        ("AUTH CRAM-MD5 LOGIN", BROKEN),
    ],
)
def test_login_works_by_what_the_server_offers(
    offer: str, questions: dict[str, list[str]], password: str
) -> None:
    """https://github.com/python/cpython/issues/73936: a password may have any character."""
    server = MailServer(
        {"EHLO": f"250-mail.example.com\r\n250 {offer}"},
        credentials=("\u00fcser@example.com", password),
        questions=QUESTIONS | questions,
    )
    with mail_server(server, username="\u00fcser@example.com", password=password) as (smtp, _):
        run(smtp.send(outbound(), timeout=LIMIT))
    assert len(server.mails) == 1


@pytest.mark.usefixtures("opened")
def test_login_goes_on_without_md5(monkeypatch: pytest.MonkeyPatch) -> None:
    """https://github.com/python/cpython/issues/136134: FIPS mode forbids it."""

    def forbidden(*_: Any) -> None:
        raise ValueError("[digital envelope routines] unsupported")

    monkeypatch.setattr(smtp_client, "hmac", SimpleNamespace(new=forbidden))
    offer = {"EHLO": "250-mail.example.com\r\n250 AUTH CRAM-MD5 PLAIN"}
    server = MailServer(offer, credentials=("u", "p"))
    with mail_server(server, username="u", password="p") as (smtp, _):
        run(smtp.send(outbound(), timeout=LIMIT))
    assert [line.split()[:2] for line in server.commands if line.startswith("AUTH")] == [
        ["AUTH", CRAM],
        ["AUTH", "PLAIN"],
    ]


@each_case(
    "reply, reason",
    [
        ("454 4.7.0 Temporary authentication failure: Connection lost to server", "can't check"),
        ("421 4.3.0 Temporary System Problem. Try again later, hang up", "can't check"),
        ("432 4.7.12 A password transition is needed", "can't check"),
        ("535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled", "reject"),
        ("534-5.7.9 Application-specific password required.\r\n534 5.7.9 See", "reject"),
        ("504 5.7.4 Unrecognized authentication type", "reject"),
        ("553 5.3.0 Auth failure", "reject"),
        ("525 5.7.13 User account disabled", "reject"),
    ],
)
def test_failed_login_says_whether_the_credentials_are_wrong(reply: str, reason: str) -> None:
    server = MailServer({"EHLO": "250-mail.example.com\r\n250 AUTH PLAIN", "AUTH": reply})
    with (
        mail_server(server, username="u", password="p") as (smtp, _),
        pytest.raises(ProviderUnavailableError, match=reason) as error,
    ):
        run(smtp.send(outbound(), timeout=LIMIT))
    assert error.value.reach is Reach.ACCOUNT


@pytest.mark.usefixtures("opened")
@each_case(
    "step, reply",
    [
        # https://github.com/jakartaee/mail-api/issues/577
        ("RCPT", "254 2.1.5 Suppressed recipient is accepted"),
        # https://github.com/dahlia/upyo/issues/37
        ("RCPT", "251 2.1.5 User not local; will forward"),
        ("RCPT", "252 2.1.5 Cannot VRFY user, but will take message"),
        # https://github.com/cutelyst/simple-mail/issues/28
        ("MAIL", "251 OK"),
        ("MAIL", "200 OK"),
        ("message", "251 OK"),
        ("message", "200 Queued"),
        ("message", "259 Queued"),
        ("message", "250-Queued\r\n250 Thanks"),
        ("greeting", "220-mail.example.com\r\n220 No spam, please"),
        ("DATA", "354-Go\r\n354 on"),
    ],
)
def test_any_positive_completion_is_an_acceptance(step: str, reply: str) -> None:
    """RFC 5321, 4.3.2: of an unknown code, the first digit counts."""
    server = MailServer({step: reply})
    with mail_server(server) as (smtp, _):
        result = run(smtp.send(outbound(), timeout=LIMIT))
    assert result.provider_id
    assert len(server.mails) == 1


@each_case("reply", ["550 5.1.1 " + "x" * 9000, "what?", "25 OK", "354 Go on"])
def test_invalid_reply_about_one_recipient_stops_nobody_else(reply: str) -> None:
    error = refusal({"RCPT": reply})
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous
    assert touches_nobody_else(error)
