import { NotifyBell } from "./bell.ts";
import { NotifyInbox } from "./inbox.ts";
import { NotifyPreferences } from "./preferences.ts";

export type { Words } from "./words.ts";
export { NotifyBell, NotifyInbox, NotifyPreferences };

const elements = {
  "notify-inbox": NotifyInbox, "notify-bell": NotifyBell, "notify-preferences": NotifyPreferences,
};
for (const [name, element] of Object.entries(elements)) {
  if (!customElements.get(name)) customElements.define(name, element);
}
