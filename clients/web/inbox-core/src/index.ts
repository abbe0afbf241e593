export { ApiError, tokenFrom } from "./api.ts";
export { Inbox, type InboxOptions } from "./inbox.ts";
export type * from "./types.ts";
