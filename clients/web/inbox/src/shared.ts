import { Inbox, tokenFrom, type GetToken } from "@notifyproject/inbox-core";

const inboxes = new Map<string | GetToken, { inbox: Inbox; users: number }>();

/** Return the inbox that all elements of a page with the same token share. Release it afterwards. */
export function acquire(source: string | GetToken, service: string | null): Inbox {
  let shared = inboxes.get(source);
  if (shared === undefined) {
    const getToken = typeof source === "string" ? tokenFrom(source) : source;
    shared = { inbox: new Inbox({ getToken, service }), users: 0 };
    inboxes.set(source, shared);
    void shared.inbox.start();
  }
  shared.users += 1;
  return shared.inbox;
}

export function release(source: string | GetToken): void {
  const shared = inboxes.get(source);
  if (shared === undefined) return;
  shared.users -= 1;
  if (shared.users > 0) return;
  shared.inbox.close();
  inboxes.delete(source);
}

/** Return the link if a browser may follow it: http or https. */
export function safeLink(link: string | null | undefined): string | null {
  if (!link) return null;
  try {
    const url = new URL(link, document.baseURI);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
