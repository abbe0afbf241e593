"""Types of a new installation. ``migrate`` adds those that are missing. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.channels import Channel
from domain.retry import DEFAULT_MAX_RETRIES, UnknownPolicy
from domain.states import Category, Priority

REDUCED_MAX_RETRIES = 2  # Retries of types with three attempts
EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultType:
    """A shipped type, with the fields of :class:`notifications.models.NotificationType`."""

    slug: str
    name: str
    description: str
    category: Category = Category.TRANSACTIONAL
    priority: Priority = Priority.NORMAL
    channels: tuple[Channel, ...] = (EMAIL,)
    max_retries: int = DEFAULT_MAX_RETRIES
    ttl_seconds: int | None = None
    notify_before_seconds: int | None = None
    on_unknown: UnknownPolicy = UnknownPolicy.RETRY
    example_data: Mapping[str, Any] = field(default_factory=dict)
    sensitive_variables: tuple[str, ...] = ()
    approved_templates: tuple[Mapping[str, Any], ...] = ()


def _whatsapp(name: str, *parameters: str, en: str, pt: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {**language, "name": name, "parameters": list(parameters), "body": body}
        for language, body in zip(_WHATSAPP_LANGUAGES, (en, pt), strict=True)
    )


def _whatsapp_code(name: str) -> tuple[Mapping[str, Any], ...]:
    fields = {"name": name, "parameters": ["code"], "button": "code"}
    return tuple({**language, **fields} for language in _WHATSAPP_LANGUAGES)


_WHATSAPP_LANGUAGES = ({"locale": "en", "language": "en"}, {"locale": "pt", "language": "pt_PT"})
DEFAULT_TYPES = (
    # Without a template: the request contains the content.
    DefaultType(
        slug="transactional",
        name="Transactional",
        description="A message the recipient requested; subject and body come from the request.",
        approved_templates=_whatsapp(
            "transactional_message",
            "subject",
            "body",
            en="📨 We have a message for you about *{{1}}*:\n\n{{2}}\n\n"
            "You receive it because of your account with us.",
            pt="📨 Temos uma mensagem para si sobre *{{1}}*:\n\n{{2}}\n\n"
            "Recebe-a por causa da sua conta connosco.",
        ),
    ),
    DefaultType(
        slug="marketing",
        name="Marketing",
        description="A promotion; subject and body come from the request.",
        category=Category.MARKETING,
        priority=Priority.LOW,
        on_unknown=UnknownPolicy.FAIL,
        approved_templates=_whatsapp(
            "marketing_message",
            "subject",
            "body",
            en="💌 News for you: *{{1}}*\n\n{{2}}\n\n"
            "You receive it because you agreed to hear from us.",
            pt="💌 Novidades para si: *{{1}}*\n\n{{2}}\n\n"
            "Recebe-as porque aceitou ter notícias nossas.",
        ),
    ),
    DefaultType(
        slug="alert",
        name="Alert",
        description="An important message; subject and body come from the request.",
        category=Category.ALERT,
        priority=Priority.HIGH,
        channels=(EMAIL, IN_APP),
        approved_templates=_whatsapp(
            "alert_message",
            "subject",
            "body",
            en="⚠️ Please note: *{{1}}*\n\n{{2}}\n\n"
            "You receive it because it concerns your account.",
            pt="⚠️ Tome nota, por favor: *{{1}}*\n\n{{2}}\n\n"
            "Recebe este aviso porque diz respeito à sua conta.",
        ),
    ),
    # Commerce.
    DefaultType(
        slug="order_shipped",
        name="Order shipped",
        description="An order is on its way.",
        priority=Priority.HIGH,
        channels=(EMAIL, PUSH, IN_APP),
        example_data={"order": "12345"},
        approved_templates=_whatsapp(
            "order_on_its_way",
            "order",
            en="📦 Your order *{{1}}* has left our warehouse and is on its way to you. "
            "Thank you for your purchase.",
            pt="📦 A sua encomenda *{{1}}* já saiu do nosso armazém e vai a caminho. "
            "Agradecemos a sua compra.",
        ),
    ),
    DefaultType(
        slug="payment_confirmed",
        name="Payment confirmed",
        description="A payment arrived.",
        priority=Priority.HIGH,
        max_retries=REDUCED_MAX_RETRIES,
        example_data={"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"},
        approved_templates=_whatsapp(
            "payment_confirmed",
            "amount",
            "video_title",
            "order_id",
            en="✅ Your payment of *{{1}}* for “{{2}}” has arrived, for order {{3}}. Thank you.",
            pt="✅ Recebemos o seu pagamento de *{{1}}*, referente a «{{2}}», da encomenda {{3}}. "
            "Obrigado.",
        ),
    ),
    DefaultType(
        slug="new_sale",
        name="New sale",
        description="A sale was made through a promoter.",
        max_retries=REDUCED_MAX_RETRIES,
        example_data={"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"},
        approved_templates=_whatsapp(
            "new_sale",
            "video_title",
            "amount",
            "order_id",
            en="🎉 “{{1}}” was just sold for *{{2}}*. The number of the order is {{3}}. Well done.",
            pt="🎉 Foi vendido «{{1}}», no valor de *{{2}}*. O número da encomenda é {{3}}. "
            "Parabéns.",
        ),
    ),
    DefaultType(
        slug="video_release_schedule",
        name="Video release",
        description="A video is about to be released.",
        max_retries=REDUCED_MAX_RETRIES,
        notify_before_seconds=86_400,
        example_data={"video_title": "Sunrise", "release_date": "2026-12-24T18:00:00Z"},
        # Without the date, since a parameter can't be formatted in the recipient's time zone.
        approved_templates=_whatsapp(
            "video_release_schedule",
            "video_title",
            en="🎬 The release of *{{1}}* is near. We look forward to seeing you there.",
            pt="🎬 A estreia de *{{1}}* está próxima. Contamos consigo.",
        ),
    ),
    # Accounts.
    DefaultType(
        slug="mfa_code",
        name="Login code",
        description="A code for logging in.",
        priority=Priority.CRITICAL,
        max_retries=REDUCED_MAX_RETRIES,
        ttl_seconds=300,
        example_data={"code": "123456", "expires_in": 5},
        sensitive_variables=("code",),
        approved_templates=_whatsapp_code("mfa_code"),
    ),
    DefaultType(
        slug="user_activation",
        name="Account activation",
        description="A code for activating an account.",
        priority=Priority.CRITICAL,
        max_retries=REDUCED_MAX_RETRIES,
        ttl_seconds=86_400,
        example_data={"code": "123456"},
        sensitive_variables=("code",),
        approved_templates=_whatsapp_code("user_activation"),
    ),
    DefaultType(
        slug="forgot_password",
        name="Forgotten password",
        description="A code for setting a new password.",
        priority=Priority.CRITICAL,
        max_retries=REDUCED_MAX_RETRIES,
        ttl_seconds=3_600,
        example_data={"code": "123456"},
        sensitive_variables=("code",),
        approved_templates=_whatsapp_code("forgot_password"),
    ),
    # Identity checks.
    DefaultType(
        slug="kyc_submitted",
        name="Identity documents submitted",
        description="Identity documents are ready for review.",
        category=Category.ALERT,
        max_retries=REDUCED_MAX_RETRIES,
        channels=(EMAIL, IN_APP),
        example_data={"applicant": "Ada Lovelace"},
        approved_templates=_whatsapp(
            "kyc_submitted",
            "applicant",
            en="🪪 Identity documents of *{{1}}* have been submitted. Please review them.",
            pt="🪪 Foram enviados os documentos de identificação de *{{1}}*. "
            "Verifique-os, por favor.",
        ),
    ),
    DefaultType(
        slug="kyc_approved",
        name="Identity confirmed",
        description="Identity documents were accepted.",
        max_retries=REDUCED_MAX_RETRIES,
        approved_templates=_whatsapp(
            "kyc_approved",
            en="✅ We have checked your documents and everything is in order. "
            "*Your account is now fully open.*",
            pt="✅ Verificámos os seus documentos e está tudo em ordem. "
            "*A sua conta já está totalmente ativa.*",
        ),
    ),
    DefaultType(
        slug="kyc_rejected",
        name="Identity not confirmed",
        description="Identity documents were rejected.",
        max_retries=REDUCED_MAX_RETRIES,
        example_data={"reason": "The photo is blurred."},
        approved_templates=_whatsapp(
            "kyc_rejected",
            "reason",
            en="We could not accept your documents, for this reason:\n\n_{{1}}_\n\n"
            "Please submit them again.",
            pt="Não pudemos aceitar os seus documentos, pelo seguinte motivo:\n\n_{{1}}_\n\n"
            "Por favor, envie-os novamente.",
        ),
    ),
    # Contests.
    DefaultType(
        slug="contest_reminder",
        name="Contest reminder",
        description="A contest starts in a few hours.",
        channels=(EMAIL, PUSH),
        notify_before_seconds=7_200,
        example_data={
            "contest_name": "Codeforces Round #900 (Div. 2)",
            "hours_until_start": 2,
            "minutes_until_start": 120,
            "start_time": "2026-12-01T14:35:00Z",
        },
        # Without times, since a parameter can't be formatted in the recipient's time zone.
        approved_templates=_whatsapp(
            "contest_reminder",
            "contest_name",
            en="⏰ A reminder: the contest *{{1}}* starts soon. Good luck!",
            pt="⏰ Um lembrete: a competição *{{1}}* começa em breve. Boa sorte!",
        ),
    ),
    DefaultType(
        slug="contest_starting",
        name="Contest starting",
        description="A contest is about to start.",
        priority=Priority.HIGH,
        channels=(EMAIL, PUSH),
        ttl_seconds=3_600,
        example_data={"contest_name": "Codeforces Round #900 (Div. 2)"},
        approved_templates=_whatsapp(
            "contest_starting",
            "contest_name",
            en="🏁 The contest *{{1}}* is starting now. Good luck!",
            pt="🏁 A competição *{{1}}* começa agora. Boa sorte!",
        ),
    ),
    DefaultType(
        slug="contest_ending",
        name="Contest ending",
        description="A contest is about to end.",
        priority=Priority.HIGH,
        channels=(EMAIL, PUSH),
        ttl_seconds=3_600,
        example_data={"contest_name": "Codeforces Round #900 (Div. 2)", "minutes_left": 15},
        approved_templates=_whatsapp(
            "contest_ending",
            "contest_name",
            "minutes_left",
            en="⏳ The contest *{{1}}* is about to end. Minutes left: {{2}}. "
            "Submit what you have while there is time.",
            pt="⏳ A competição *{{1}}* está a terminar. Minutos que faltam: {{2}}. "
            "Envie o que tem enquanto há tempo.",
        ),
    ),
    DefaultType(
        slug="system_alert",
        name="System alert",
        description="A message about the service, such as maintenance.",
        category=Category.ALERT,
        priority=Priority.HIGH,
        channels=(EMAIL, IN_APP),
        example_data={
            "maintenance_start": "2026-12-25T02:00:00Z",
            "maintenance_end": "2026-12-25T04:00:00Z",
        },
        approved_templates=_whatsapp(
            "system_alert",
            en="🛠️ *Maintenance of our service is planned.* It may not be available for some time. "
            "There is nothing for you to do.",
            pt="🛠️ *Está prevista uma manutenção do nosso serviço.* Poderá não estar disponível "
            "durante algum tempo. Não precisa de fazer nada.",
        ),
    ),
)
