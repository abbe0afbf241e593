export { Api, ApiError, tokenFrom, Tokens } from "./api.ts";
export { Inbox, type InboxOptions } from "./inbox.ts";
export { isOn, preferenceFor, switchCategory, switchType } from "./preferences.ts";
export { normalizedLocale } from "./locale.ts";
export type * from "./types.ts";
