export type * from "./api.js";
export { verifyCallback, type CallbackHeaders, type CallbackOptions } from "./callbacks.js";
export { InvalidCallbackError, NotificationError, NotificationRejectedError, ServiceUnavailableError } from "./errors.js";
export { Notifier, type BroadcastFields, type CallOptions, type Listing, type NotificationFields, type NotifierOptions, type Rest } from "./notifier.js";
export type { RetryPolicy } from "./retry.js";
