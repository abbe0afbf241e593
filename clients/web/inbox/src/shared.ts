import { Inbox, tokenFrom, type Filter, type GetToken } from "@notifyproject/inbox-core";

type Source = string | GetToken;

/** Inboxes by the source of their tokens, and by their filter. */
const inboxes = new Map<Source, Map<string, { inbox: Inbox; users: number }>>();

/** Return the inbox that all elements of a page with the same token and filter share. Release it afterwards. */
export function acquire(source: Source, service: string | null, filter: string): Inbox {
  const own = inboxes.get(source) ?? new Map<string, { inbox: Inbox; users: number }>();
  inboxes.set(source, own);
  let shared = own.get(filter);
  if (shared === undefined) {
    const getToken = typeof source === "string" ? tokenFrom(source) : source;
    shared = { inbox: new Inbox({ getToken, service, filter: parseFilter(filter) }), users: 0 };
    own.set(filter, shared);
    void shared.inbox.start();
  }
  shared.users += 1;
  return shared.inbox;
}

export function release(source: Source, filter: string): void {
  const own = inboxes.get(source);
  const shared = own?.get(filter);
  if (own === undefined || shared === undefined) return;
  shared.users -= 1;
  if (shared.users > 0) return;
  shared.inbox.close();
  own.delete(filter);
  if (own.size === 0) inboxes.delete(source);
}

/** Return the filter of a text such as `type:order_shipped category:alert`. */
export function parseFilter(text: string): Filter {
  const pairs = text.split(/\s+/).map((one) => one.split(":", 2));
  return Object.fromEntries(pairs.filter(([name, value]) => value && /^(type|category)$/.test(name!)));
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
