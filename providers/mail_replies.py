"""What a mail server's reply speaks of: the account that sends, the recipient, or the message.

Its words and its enhanced status code (RFC 3463) say so. A reply that says none of these is
unclear: it may be a policy of the server (RFC 5321, 4.2.1), so it never counts against an address.
The words are those of Postfix, Exim, qmail, Exchange, Gmail, cPanel, and of mail services.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_NEAR = r"[^.;]{0,60}?"
"""A gap within one sentence."""
_LIMIT = r"(?:exceed\w*|reached|limit\w*|quotas?|max(?:imum)?|allot\w*)"
_PERIOD = r"(?:hour(?:ly|s)?|da(?:y|ily)|minutes?|month(?:ly)?|today|24 ?h)"
ADDRESS_CODES = frozenset({"1.0", "2.0"})
"""In a reply to RCPT they speak of the recipient; later they may speak of any address."""
LOGIN_CODES = (530, 534, 535, 538)
NO_MAIL_FOR_DOMAIN = 556
_ENHANCED = re.compile(r"(?m)^\W{0,3}([45]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)", re.ASCII)
_LATER_ENHANCED = r"(?<![\d.])({}\.\d{{1,3}}\.\d{{1,3}})(?![\d.]*\d)"
_ADDRESS = re.compile(r"<?[^\s<>]*@[^\s<>]*>?")
_LINK = re.compile(r"https?://\S+")
_BLOCK_LIST = re.compile(r"spamhaus|spamcop|sorbs|barracuda|abusix|rbl|dnsbl|block|black|blist")
MAX_WORDS = 2_000
"""Characters of a reply whose words count."""
BEGINNING = 300
"""Characters of a reply that are searched for a code that doesn't begin a line."""


class Step(StrEnum):
    """The part of an SMTP dialogue that a reply answers."""

    CONNECTION = "connection"
    """The greeting, EHLO, or STARTTLS."""
    LOGIN = "login"
    SENDER = "sender"
    """MAIL FROM."""
    RECIPIENT = "recipient"
    """RCPT TO."""
    MESSAGE = "message"
    """DATA, or the end of the message."""


class Subject(StrEnum):
    """What a reply speaks of."""

    ACCOUNT = "account"
    """The account, its sender address, its server, or their limits."""
    RECIPIENT = "recipient"
    """An unknown or disabled mailbox, or its domain."""
    FULL_MAILBOX = "full mailbox"
    BUSY_MAILBOX = "busy mailbox"
    """The mailbox gets too many messages."""
    GREYLISTING = "greylisting"
    """The recipient's server takes a message of an unknown sender only when it is repeated."""
    RECIPIENT_RULE = "recipient's rule"
    """The mailbox exists and takes no mail from this sender."""
    SIZE = "size"
    CONTENT = "content"
    UNCLEAR = "unclear"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


WORDS_FIRST: Sequence[tuple[Subject, re.Pattern[str]]] = (
    (
        Subject.RECIPIENT_RULE,
        _any(
            r"resolver\.rst",
            r"recipient'?s? (?:list|preferences|rule|polic)",
            rf"(?:recipient|user|mailbox|group|address|list)\b{_NEAR}\b(?:only accepts?|restricted"
            r"|refuses (?:to|mail|your)|do(?:es)?(?: not|n't) (?:accept|want) (?:e?-?mail|messages)"
            r" from|does(?: not|n't) want your)",
            r"black ?listed by (?:the )?(?:recipient|user)",
            r"blocked by (?:the |this )?(?:recipient|user)",
            r"rejected by this user|members?[- ]only|moderated",
            r"(?:not (?:authori[sz]ed|allowed|permitted)|permissions?) to send "
            r"(?:messages? |e-?mails? |mails? )?to",
        ),
    ),
    (Subject.GREYLISTING, _any(r"gr[ea]y[ -]?list")),
    (
        Subject.FULL_MAILBOX,
        _any(rf"(?<!your )(?<!sender's )(?<!sender )mail ?box\b{_NEAR}\b(?:full|over ?quota)\b"),
    ),
    (
        Subject.BUSY_MAILBOX,
        _any(
            r"receiving (?:mail|e-?mail|messages) (?:too|at a rate)",
            rf"recipient\b{_NEAR}(?:limit|number){_NEAR}receive",
            r"(?:receiv(?:ed|es|ing)|got|gets) too many",
            r"messages? they can receive|send to this recipient|recipient thread limit",
        ),
    ),
    (
        Subject.CONTENT,
        _any(r"\bur[il]s?\b", r"uribl|surbl", r"line (?:length|is too long|too long)"),
    ),
    (
        Subject.RECIPIENT,
        _any(
            r"account that you tried to reach (?!is over)",
            # Exchange Online, of an address that its directory lacks.
            r"\b5\.4\.1\b.{0,40}recipient address(?:es)? rejected ?: access denied",
            r"address (?:is )?black ?listed$",
            r"suppress(?:ed|ion)",
            r"inactive recipient|marked as inactive",
        ),
    ),
)
"""Words that mean something else than the words of the account which they contain."""
WORDS_OF_THE_ACCOUNT = _any(
    # Limits.
    rf"\b{_LIMIT}\b{_NEAR}\b{_PERIOD}\b",
    rf"\b{_PERIOD}\b{_NEAR}\b{_LIMIT}\b",
    rf"\byou(?:'ve| have)? (?:exceeded|reached)\b(?!{_NEAR}\b(?:size|length|bytes|[kmg]i?b)\b)",
    r"(?:versand|sende)-?limit|limite d'envoi|l.mite de env.o",
    r"^5\d\d\b.*too many (?:e-?mails|mails|messages|rcpts) (?:in this|in one|per) ",
    r"(?:sending|outbound|outgoing|relay|submission|smtp|daily|hourly|monthly|24-?hours?)\b"
    r"[\w' -]{0,30}(?:limit|quota|rate|allowance)",
    r"rate[ -]?(?:over)?limit|throttl",
    r"too many (?:e-?mails|mails|messages|rcpts|spam|complaints|unknown|invalid|bad|defers)"
    r"(?! (?:on the server|in (?:this|one) (?:connection|session)|per connection))",
    rf"(?:e-?mails?|messages?|mails|failures|recipients?|rcpts?)\b{_NEAR}\b(?:per|an|each|this|within|"
    r"in)\b (?:the last |one |\d+ ?)?(?:second|minute|hour|day|24)",
    r"unusual (?:sending|rate|activity|traffic|volume)|unexpected volume",
    r"(?:too many|maximum|number of|limit of)\b[^.;]{0,30}\b(?:connection|session)s\b",
    r"(?:concurrent|simultaneous|parallel|open) (?:smtp )?(?:connection|session)s?\b|thread limit"
    r"|frequency limited|policy rejection\b.{0,40}\bquota",
    r"(?:maximum|insufficient|no|not enough|out of) (?:credits?|balance|funds)\b|credits? exceeded",
    # Login and relaying.
    rf"authenti[cf]\w*{_NEAR}(?:required|requise|erforderlich|fail|first|needed|missing|invalid)",
    r"(?:must|please|need to|without|not|requires?|wasn't|isn't) (?:first |be |an? )?authenticat",
    r"login attempts|invalid credentials|authentication level",
    r"unauthenticated|smtp auth|\bauth first|not logged in|log ?in first",
    r"new mail (?:first|before)|before smtp",
    r"starttls|tls (?:is )?required|encryption (?:is )?(?:required|needed)",
    rf"relay\w*\b{_NEAR}(?:den|not|prohibit|permit|restrict|refus|reject|disallow|access)",
    r"(?:not|unable|don't|cannot|can't|no|n't)\b[^.;]{0,25}\brelay",
    r"not a gateway|rcpthosts|handle mail for",
    # The server's address and name.
    r"black[ -]?list|block[ -]?list|dnsbl|\bd?rbl\b|spamhaus|spamcop|sorbs|barracuda|cloudmark",
    r"reputation|blocked using|block(?:ed|ing) by policy of ip|banned send",
    rf"\bip\b{_NEAR}(?:block|ban|list|reject|denied|refus|not (?:allowed|authori)|spam|prison)",
    rf"your (?:ip|server|host|network|mta|mail server|domain|access|address)\b{_NEAR}"
    r"(?:block|ban|list|reject|not allowed|denied|spam|refus|not exist)",
    r"listed (?:at|in|on|by) |client host|\bhelo\b|\behlo\b|reverse (?:dns|lookup)|rdns|\bptr\b",
    r"dynamic ip|sending spam|spammer|blocked for abuse|permanently deferred|user complaints",
    r"\bfrom:? ?\[?\d{1,3}(?:\.\d{1,3}){3}\b|\bip ?[=:] ?\[?\d",
    # The sender's address.
    r"send ?as ?denied|storedrv\.submission",
    r"sender (?:address|domain|e-?mail|signature|verif|host|ip|id|policy|frequency|is|was|has|not)",
    r"sender (?:reject|denied|refus|blocked|over|exceed|mail ?box|quota)",
    r"sender'?s (?:mail ?box|quota|domain|e-?mail|address)|sending domain",
    r"permissions? to send (?:as|from|on behalf|mail|e-?mail|messages)|callback setup failed",
    r"(?:bad|unverified|invalid|unknown|bogus|unroutable|unauthori[sz]ed|outbound|spam)[ -]sender",
    r"return[ -]path|envelope (?:sender|from)|mail ?from",
    r"from[: -]{1,2}(?:header|address|domain|field)|header from|5322\.from|not owned by",
    r"not (?:allowed|authori[sz]ed|permitted) to (?:send|connect|submit|use)",
    r"permissions? to submit",
    r"address is not verified|identit(?:y|ies)\b|\bspf\b|\bdkim\b|\bdmarc\b",
    r"your e-?mail address",
    # The account itself.
    rf"(?:your|sending|smtp|hosting|sender's) account\b{_NEAR}(?:suspend|disabl|block|lock|restrict"
    r"|limit|exceed|hold|inactive|terminat|expired|compromis|not (?:yet )?(?:activ|approv|verif))",
    r"account\b.{0,60}\bis sending|outgoing (?:mail|e-?mail|message)|test purposes only",
    r"sending (?:is |has been |was )?(?:disabled|paused|suspended|blocked)|billing|unpaid"
    r"|trial (?:account|plan)",
)
WORDS: Sequence[tuple[Subject, re.Pattern[str]]] = (
    (
        Subject.FULL_MAILBOX,
        _any(
            rf"mail ?box\b{_NEAR}(?:full|exceed|over)",
            r"(?:mail ?box|in ?box|mail ?folder) (?:is )?full|full mail ?box",
            r"over ?quota|over (?:the |its |their )?(?:allowed |disk |mailbox |storage )?quota",
            r"(?:mail ?box|mail|storage|dis[ck]|recipient)\b[\w ]{0,20}quota (?:usage )?exceed",
            r"552\b.*quota",
            r"exceed\w* (?:its |their |his |the |your )?(?:\w+ ){0,2}(?:quota|disk|space)",
            r"too many messages on the server|space has been used",
        ),
    ),
    (
        Subject.RECIPIENT,
        _any(
            r"(?:no such|unknown|invalid|bad|non-?exist\w*|not a (?:valid|known|local)|not our) "
            r"(?:or \w+ )?(?:virtual |local )?(?:user|mail ?box|recipient|account|address|e-?mail"
            r"|person|local[ -]?part|destination|alias|customer)",
            rf"(?:user|mail ?box|recipient|account|address|person)\b{_NEAR}(?:not|n't|no longer)\b"
            r"[^.;]{0,20}(?:exist|found|known|listed|valid|present|recogni[sz]ed|local|active)",
            r"(?:user|person)\b[^.;]{0,20}n't have an?\b",
            r"(?:user|mail ?box|recipient|address|account)s? (?:\S+ )?(?:is |was )?unknown",
            r"no mail ?box\b|no (?:account|user|one|person|recipient)\b[^.;]{0,30}"
            r"(?:here|name|found|at this|with this|for this|available)",
            r"badrcptto|badrecipientto|validrcptto|resolver\.adr|unroute?able (?:address|mail)",
            r"relevant mx",
            r"recipient address rejected: (?:domain|undeliverable|unverified|user|invalid|unknown)",
            r"recipient domain|no longer (?:accepts|available|with|employed|active|valid|exists)",
            r"(?:mail ?box|recipient) (?:\S+ )?(?:is |has been |currently |temporarily )*"
            r"(?:disabled|inactive|suspended|deactivated|terminated|frozen|closed|expired|archived|locked)",
            r"inactive (?:user|mail ?box)|disabled or discontinued|user has moved",
            r"(?:benutzer|empf.{1,2}nger|adresse|postfach)\b[^.;]{0,20}nicht (?:gefunden|vorhanden)"
            r"|zieladresse existiert nicht",
            r"(?:utilisateur|destinataire|usager) inconnu|unbekannt|usuario desconocido|no existe"
            r"|nessun utente|utente sconosciuto|usu.rio (?:desconhecido|inexistente)",
        ),
    ),
    (
        Subject.SIZE,
        _any(
            r"too (?:big|large)|message length|size (?:limit|exceed)|maximum (?:message )?size",
            rf"(?:message|mail|size|data)\b{_NEAR}exceed{_NEAR}(?:size|length|maximum)",
        ),
    ),
    (
        Subject.CONTENT,
        _any(
            r"\bspam\b|\bjunk\b|virus|malware|phish|content|attachment|executable|header|too long",
            r"\brfc ?\d|8-?bit|bare (?:lf|cr)|\bmime\b|charset|encod|unsolicited|bulk|score|bayes",
        ),
    ),
)
"""The first that matches counts, so the account's words come before these."""


def _codes() -> Mapping[str, Subject]:
    by_subject = {
        Subject.ACCOUNT: (
            "1.7",
            "1.8",
            "1.90",
            "2.251",
            "2.252",
            "7.8",
            "7.9",
            "7.10",
            "7.11",
            "7.13",
            "7.14",
            *(f"7.{n}" for n in (*range(20, 30), 32, 57, 60, 64, 139, 232, 233)),
            *(f"7.{n}" for n in (*range(500, 504), 506, 508, 509, 511, 512, 515)),
            *(f"7.{n}" for n in (*range(606, 650), *range(700, 760))),
        ),
        Subject.RECIPIENT: ("1.1", "1.2", "1.3", "1.4", "1.6", "1.10", "2.1", "2.4"),
        Subject.FULL_MAILBOX: ("2.2",),
        Subject.BUSY_MAILBOX: ("2.121", "2.122"),
        Subject.RECIPIENT_RULE: (
            "7.2",
            "7.12",
            "7.17",
            "7.18",
            "7.193",
            "7.504",
            "7.507",
            *(f"7.{n}" for n in range(120, 137)),
        ),
        Subject.SIZE: ("2.3", "3.4", "7.16"),
        Subject.CONTENT: tuple(f"6.{n}" for n in range(11)),
    }
    return {code: subject for subject, codes in by_subject.items() for code in codes}


CODE_SUBJECTS = _codes()
"""What an enhanced status code speaks of, by its last two numbers. Microsoft's are of its page of
error codes. A code that isn't here, such as most of X.3, X.4, X.5, and X.7, names no subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply other than an acceptance."""

    step: Step
    status: int
    text: str
    """Lines, without the status that begins each."""

    @property
    def enhanced_code(self) -> str | None:
        """The enhanced status code: it begins a line, or stands in the reply's beginning."""
        text = _ADDRESS.sub("", self.text[:MAX_WORDS])
        found = _ENHANCED.search(text) or re.search(
            _LATER_ENHANCED.format(self.status // 100), text[:BEGINNING], re.ASCII
        )
        return found[1] if found else None

    @property
    def subject(self) -> Subject:
        """What the reply speaks of: by clear words, by its code, and by other words."""
        text = _ADDRESS.sub(" ", self.text[:MAX_WORDS]).lower()
        # A page of help names other cases too, unless it is of a list of blocked servers.
        text = _LINK.sub(lambda link: link[0] if _BLOCK_LIST.search(link[0]) else " ", text)
        words = " ".join((str(self.status), *text.split()))
        for subject, pattern in WORDS_FIRST:
            if pattern.search(words):
                return subject
        if self.status in LOGIN_CODES or WORDS_OF_THE_ACCOUNT.search(words):
            return Subject.ACCOUNT
        meaning = (self.enhanced_code or "")[2:]
        if meaning in CODE_SUBJECTS:
            return CODE_SUBJECTS[meaning]
        # After the message, words about an address may mean one in its header.
        words_by_subject = WORDS if self.step is Step.RECIPIENT else tuple(reversed(WORDS))
        for subject, pattern in words_by_subject:
            if pattern.search(words):
                return subject
        is_about_address = self.step is Step.RECIPIENT and meaning in ADDRESS_CODES
        if is_about_address or self.status == NO_MAIL_FOR_DOMAIN:
            return Subject.RECIPIENT
        return Subject.UNCLEAR
