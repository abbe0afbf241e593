import { createComponent, type EventName } from "@lit/react";
import type { Counts, InboxItem, Problem } from "@notifyproject/inbox-core";
import {
  NotifyBell as Bell, NotifyInbox as List, NotifyPreferences as Choices,
} from "@notifyproject/inbox";
import * as React from "react";

const events = {
  onOpen: "notify-open" as EventName<CustomEvent<InboxItem>>,
  onReceived: "notify-received" as EventName<CustomEvent<InboxItem>>,
  onCounts: "notify-counts" as EventName<CustomEvent<Counts>>,
  onProblem: "notify-problem" as EventName<CustomEvent<Problem>>,
};

/** `<NotifyBell getToken={…} onOpen={…} />`: the properties and events of `<notify-bell>`. */
export const NotifyBell = createComponent({ react: React, tagName: "notify-bell", elementClass: Bell, events });

/** `<NotifyInbox getToken={…} mode="page" />` */
export const NotifyInbox = createComponent({ react: React, tagName: "notify-inbox", elementClass: List, events });

/** `<NotifyPreferences getToken={…} />` */
export const NotifyPreferences = createComponent({
  react: React, tagName: "notify-preferences", elementClass: Choices, events: { onProblem: events.onProblem },
});
