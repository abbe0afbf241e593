import { NotifyBell } from "./bell.ts";
import { NotifyInbox } from "./inbox.ts";

export type { Words } from "./words.ts";
export { NotifyBell, NotifyInbox };

if (!customElements.get("notify-inbox")) customElements.define("notify-inbox", NotifyInbox);
if (!customElements.get("notify-bell")) customElements.define("notify-bell", NotifyBell);
