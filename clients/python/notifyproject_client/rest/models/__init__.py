"""Contains all the data models used in inputs/outputs"""

from .attachment_request import AttachmentRequest
from .attempt_list import AttemptList
from .attempt_status import AttemptStatus
from .attempt_view import AttemptView
from .attempt_view_platform_response_type_0 import AttemptViewPlatformResponseType0
from .audience_request import AudienceRequest
from .broadcast_audience_view import BroadcastAudienceView
from .broadcast_list import BroadcastList
from .broadcast_request import BroadcastRequest
from .broadcast_request_data import BroadcastRequestData
from .broadcast_status import BroadcastStatus
from .broadcast_view import BroadcastView
from .broadcast_view_data import BroadcastViewData
from .broadcast_view_notifications_type_0 import BroadcastViewNotificationsType0
from .bulk_item_view import BulkItemView
from .bulk_request import BulkRequest
from .bulk_view import BulkView
from .callback_delivery_list import CallbackDeliveryList
from .callback_delivery_view import CallbackDeliveryView
from .callback_event import CallbackEvent
from .callback_event_data import CallbackEventData
from .callback_outcome import CallbackOutcome
from .callback_request import CallbackRequest
from .callback_request_events_item import CallbackRequestEventsItem
from .callback_secret_view import CallbackSecretView
from .callback_state import CallbackState
from .callback_status import CallbackStatus
from .callback_try_view import CallbackTryView
from .callback_view import CallbackView
from .category import Category
from .channel import Channel
from .channel_preview_view import ChannelPreviewView
from .channel_preview_view_payload_type_0 import ChannelPreviewViewPayloadType0
from .channels_request import ChannelsRequest
from .cleanup_request import CleanupRequest
from .cleanup_view import CleanupView
from .content_request import ContentRequest
from .content_request_payload_type_0 import ContentRequestPayloadType0
from .content_view import ContentView
from .content_view_attachments_item import ContentViewAttachmentsItem
from .content_view_payload_type_0 import ContentViewPayloadType0
from .deactivation_reason import DeactivationReason
from .delivery_status import DeliveryStatus
from .delivery_view import DeliveryView
from .device_changes import DeviceChanges
from .device_list import DeviceList
from .device_preferences_request import DevicePreferencesRequest
from .device_preferences_request_categories import DevicePreferencesRequestCategories
from .device_preferences_view import DevicePreferencesView
from .device_preferences_view_categories import DevicePreferencesViewCategories
from .device_quiet_hours_view import DeviceQuietHoursView
from .device_receipt_request import DeviceReceiptRequest
from .device_receipt_request_event import DeviceReceiptRequestEvent
from .device_request import DeviceRequest
from .device_state_view import DeviceStateView
from .device_view import DeviceView
from .disabled_reason import DisabledReason
from .erasure_view import ErasureView
from .error_view import ErrorView
from .event_type import EventType
from .export_view import ExportView
from .field_problem_view import FieldProblemView
from .get_notification_stats_by import GetNotificationStatsBy
from .group_by import GroupBy
from .heartbeat_request import HeartbeatRequest
from .inbox_counts import InboxCounts
from .inbox_item import InboxItem
from .inbox_item_payload_type_0 import InboxItemPayloadType0
from .inbox_list import InboxList
from .inbox_token_request import InboxTokenRequest
from .inbox_token_view import InboxTokenView
from .lift_suppression_reason import LiftSuppressionReason
from .lifted_view import LiftedView
from .list_callback_deliveries_status import ListCallbackDeliveriesStatus
from .list_notifications_category import ListNotificationsCategory
from .list_notifications_channel import ListNotificationsChannel
from .list_notifications_delivery_status import ListNotificationsDeliveryStatus
from .list_notifications_status import ListNotificationsStatus
from .list_recipient_notifications_category import ListRecipientNotificationsCategory
from .list_recipient_notifications_channel import ListRecipientNotificationsChannel
from .list_recipient_notifications_delivery_status import (
    ListRecipientNotificationsDeliveryStatus,
)
from .list_recipient_notifications_status import ListRecipientNotificationsStatus
from .list_suppressions_channel import ListSuppressionsChannel
from .list_suppressions_reason import ListSuppressionsReason
from .local_time import LocalTime
from .member_list import MemberList
from .member_view import MemberView
from .notification_list import NotificationList
from .notification_request import NotificationRequest
from .notification_request_data import NotificationRequestData
from .notification_status import NotificationStatus
from .notification_view import NotificationView
from .notification_view_data import NotificationViewData
from .parts_request import PartsRequest
from .person_request import PersonRequest
from .person_request_attributes import PersonRequestAttributes
from .person_view import PersonView
from .person_view_attributes import PersonViewAttributes
from .personal_quiet_hours import PersonalQuietHours
from .platform import Platform
from .preferences_request import PreferencesRequest
from .preferences_request_preferences import PreferencesRequestPreferences
from .preferences_view import PreferencesView
from .preferences_view_preferences import PreferencesViewPreferences
from .preview_view import PreviewView
from .priority import Priority
from .problem_view import ProblemView
from .quiet_hours_request import QuietHoursRequest
from .reason_view import ReasonView
from .recipient_request import RecipientRequest
from .recipient_view import RecipientView
from .reschedule_request import RescheduleRequest
from .statistics_group_view import StatisticsGroupView
from .statistics_view import StatisticsView
from .suppression_list import SuppressionList
from .suppression_reason import SuppressionReason
from .suppression_request import SuppressionRequest
from .suppression_request_reason import SuppressionRequestReason
from .suppression_view import SuppressionView
from .template_request import TemplateRequest
from .template_request_parts import TemplateRequestParts
from .type_request import TypeRequest
from .type_request_example_data import TypeRequestExampleData
from .type_view import TypeView
from .type_view_example_data import TypeViewExampleData
from .unknown_policy import UnknownPolicy
from .updated_view import UpdatedView
from .version_list import VersionList
from .version_view import VersionView
from .version_view_parts import VersionViewParts
from .version_view_parts_additional_property import VersionViewPartsAdditionalProperty
from .whats_app_template_request import WhatsAppTemplateRequest
from .wish_request import WishRequest
from .wish_view import WishView

__all__ = (
    "AttachmentRequest",
    "AttemptList",
    "AttemptStatus",
    "AttemptView",
    "AttemptViewPlatformResponseType0",
    "AudienceRequest",
    "BroadcastAudienceView",
    "BroadcastList",
    "BroadcastRequest",
    "BroadcastRequestData",
    "BroadcastStatus",
    "BroadcastView",
    "BroadcastViewData",
    "BroadcastViewNotificationsType0",
    "BulkItemView",
    "BulkRequest",
    "BulkView",
    "CallbackDeliveryList",
    "CallbackDeliveryView",
    "CallbackEvent",
    "CallbackEventData",
    "CallbackOutcome",
    "CallbackRequest",
    "CallbackRequestEventsItem",
    "CallbackSecretView",
    "CallbackState",
    "CallbackStatus",
    "CallbackTryView",
    "CallbackView",
    "Category",
    "Channel",
    "ChannelPreviewView",
    "ChannelPreviewViewPayloadType0",
    "ChannelsRequest",
    "CleanupRequest",
    "CleanupView",
    "ContentRequest",
    "ContentRequestPayloadType0",
    "ContentView",
    "ContentViewAttachmentsItem",
    "ContentViewPayloadType0",
    "DeactivationReason",
    "DeliveryStatus",
    "DeliveryView",
    "DeviceChanges",
    "DeviceList",
    "DevicePreferencesRequest",
    "DevicePreferencesRequestCategories",
    "DevicePreferencesView",
    "DevicePreferencesViewCategories",
    "DeviceQuietHoursView",
    "DeviceReceiptRequest",
    "DeviceReceiptRequestEvent",
    "DeviceRequest",
    "DeviceStateView",
    "DeviceView",
    "DisabledReason",
    "ErasureView",
    "ErrorView",
    "EventType",
    "ExportView",
    "FieldProblemView",
    "GetNotificationStatsBy",
    "GroupBy",
    "HeartbeatRequest",
    "InboxCounts",
    "InboxItem",
    "InboxItemPayloadType0",
    "InboxList",
    "InboxTokenRequest",
    "InboxTokenView",
    "LiftedView",
    "LiftSuppressionReason",
    "ListCallbackDeliveriesStatus",
    "ListNotificationsCategory",
    "ListNotificationsChannel",
    "ListNotificationsDeliveryStatus",
    "ListNotificationsStatus",
    "ListRecipientNotificationsCategory",
    "ListRecipientNotificationsChannel",
    "ListRecipientNotificationsDeliveryStatus",
    "ListRecipientNotificationsStatus",
    "ListSuppressionsChannel",
    "ListSuppressionsReason",
    "LocalTime",
    "MemberList",
    "MemberView",
    "NotificationList",
    "NotificationRequest",
    "NotificationRequestData",
    "NotificationStatus",
    "NotificationView",
    "NotificationViewData",
    "PartsRequest",
    "PersonalQuietHours",
    "PersonRequest",
    "PersonRequestAttributes",
    "PersonView",
    "PersonViewAttributes",
    "Platform",
    "PreferencesRequest",
    "PreferencesRequestPreferences",
    "PreferencesView",
    "PreferencesViewPreferences",
    "PreviewView",
    "Priority",
    "ProblemView",
    "QuietHoursRequest",
    "ReasonView",
    "RecipientRequest",
    "RecipientView",
    "RescheduleRequest",
    "StatisticsGroupView",
    "StatisticsView",
    "SuppressionList",
    "SuppressionReason",
    "SuppressionRequest",
    "SuppressionRequestReason",
    "SuppressionView",
    "TemplateRequest",
    "TemplateRequestParts",
    "TypeRequest",
    "TypeRequestExampleData",
    "TypeView",
    "TypeViewExampleData",
    "UnknownPolicy",
    "UpdatedView",
    "VersionList",
    "VersionView",
    "VersionViewParts",
    "VersionViewPartsAdditionalProperty",
    "WhatsAppTemplateRequest",
    "WishRequest",
    "WishView",
)
