import type { Counts, InboxItem, Operation, Page, View } from "./types.ts";

/** An operation that the service has not answered, or that the last counts don't include yet. */
interface Pending {
  readonly operation: Operation;
  /** How many more items are unread after it. */
  readonly effect: number;
  readonly answeredAt: number | null;
}

/**
 * What the service last said, and the operations it has not confirmed.
 *
 * Requests carry a moment of this page, from `tick()`. Data that was requested before an operation was
 * answered doesn't undo that answer. What is shown is computed: operations replayed over the service's state.
 */
export class Ledger {
  private items = new Map<string, InboxItem>();
  private confirmed = new Map<string, { item: InboxItem; at: number }>();
  private allReadAt = 0;
  private pending: readonly Pending[] = [];
  private serverCounts: Counts | null = null;
  private moment = 0;

  constructor(private readonly view: View = "inbox") {}

  /** Return a moment that is later than all before. */
  tick(): number {
    return ++this.moment;
  }

  get operations(): readonly Operation[] {
    return this.pending.filter((one) => one.answeredAt === null).map((one) => one.operation);
  }

  get size(): number {
    return this.items.size;
  }

  /** Whether an operation is unanswered, or not in the counts yet. */
  get hasPending(): boolean {
    return this.pending.length > 0;
  }

  /** Whether an operation was answered at `since` or later. */
  wasAnsweredSince(since: number): boolean {
    return this.pending.some((one) => (one.answeredAt ?? 0) >= since);
  }

  get newestId(): string | null {
    return sorted(this.items.values())[0]?.id ?? null;
  }

  add(operation: Operation): void {
    const item = operation.kind === "read-all" ? undefined : this.replayed().get(operation.id);
    const effect = item === undefined ? 0 : weight(applied(operation, item)) - weight(item);
    this.pending = [...this.pending, { operation, effect, answeredAt: null }];
  }

  /** The service did the oldest operation. `item` is its answer. */
  answer(item: InboxItem | null): void {
    const index = this.pending.findIndex((one) => one.answeredAt === null);
    const done = this.pending[index];
    if (done === undefined) return;
    const at = this.tick();
    if (item !== null) {
      this.confirm(item, at);
    } else {
      this.confirmAllRead(at);
    }
    this.pending = this.pending.map((one) => (one === done ? { ...done, answeredAt: at } : one));
  }

  /** The service refused the oldest operation: it is shown no more. */
  refuse(): void {
    const index = this.pending.findIndex((one) => one.answeredAt === null);
    this.pending = this.pending.filter((_, at) => at !== index);
  }

  /** Take an item that another tab's operation changed. */
  confirm(item: InboxItem, at = this.tick()): void {
    this.confirmed.set(item.id, { item, at });
    this.items.set(item.id, item);
  }

  confirmAllRead(at = this.tick()): void {
    this.allReadAt = at;
    this.items = mapped(this.items, asRead);
    this.confirmed = new Map(
      [...this.confirmed].map(([id, one]) => [id, { item: asRead(one.item), at: one.at }]),
    );
  }

  /** Take a new item of the stream. It can come twice. */
  receive(item: InboxItem): boolean {
    const known = this.items.get(item.id) ?? this.confirmed.get(item.id)?.item;
    // One that comes back from a snooze is new again, at another time.
    if (known?.delivered_at === item.delivered_at) return false;
    this.confirm(item);
    return true;
  }

  /** Replace all items by pages that were requested from `since` on. */
  replace(pages: readonly Page[], since: number): void {
    const items = new Map<string, InboxItem>();
    for (const page of pages) for (const one of page.results) this.take(items, one, since);
    for (const [id, { item, at }] of this.confirmed) {
      if (at < since) this.confirmed.delete(id);
      else items.set(id, item);
    }
    this.items = items;
  }

  /** Append a page that was requested at `since`. */
  append(page: Page, since: number): void {
    for (const one of page.results) this.take(this.items, one, since);
  }

  /**
   * Take counts that were requested at `since`. Operations that were answered before are in them.
   * Counts that are older than the last ones came late, and are ignored.
   */
  count(counts: Counts, since: number): void {
    if (this.serverCounts !== null && counts.as_of < this.serverCounts.as_of) return;
    this.serverCounts = counts;
    this.pending = this.pending.filter((one) => one.answeredAt === null || one.answeredAt >= since);
  }

  /** The items of the view: newest first, or the next to come back first. */
  shownItems(): readonly InboxItem[] {
    const shown = [...this.replayed().values()].filter((one) => isInView(this.view, one));
    return this.view === "snoozed" ? shown.sort(bySnooze) : sorted(shown);
  }

  /** Counts as shown. */
  shownCounts(): Counts | null {
    if (this.serverCounts === null) return null;
    let { unread, unseen } = this.serverCounts;
    const { as_of } = this.serverCounts;
    for (const { operation, effect } of this.pending) {
      unread = operation.kind === "read-all" ? 0 : Math.max(0, unread + effect);
      unseen = Math.min(unseen, unread);
    }
    return { unread, unseen, as_of };
  }

  private replayed(): Map<string, InboxItem> {
    return this.operations.reduce((items, one) => replay(one, items), this.items);
  }

  private take(items: Map<string, InboxItem>, item: InboxItem, since: number): void {
    const known = this.confirmed.get(item.id);
    if (known !== undefined && known.at >= since) items.set(item.id, known.item);
    else items.set(item.id, this.allReadAt >= since ? asRead(item) : item);
  }
}

function applied(operation: Operation, item: InboxItem): InboxItem {
  switch (operation.kind) {
    case "read":
    case "read-all":
      return asRead(item);
    case "unread":
      return { ...item, is_read: false };
    case "archive":
      return { ...item, is_archived: true, snoozed_until: null };
    case "snooze":
      return { ...item, is_archived: false, snoozed_until: operation.until };
    case "act":
      return { ...asRead(item), action: item.action ?? operation.action };
    case "unsnooze":
      return { ...item, snoozed_until: null };
    case "unarchive":
      return { ...item, is_archived: false };
  }
}

function replay(operation: Operation, items: Map<string, InboxItem>): Map<string, InboxItem> {
  if (operation.kind === "read-all") return mapped(items, asRead);
  const item = items.get(operation.id);
  return item === undefined ? items : new Map(items).set(item.id, applied(operation, item));
}

function asRead(item: InboxItem): InboxItem {
  return item.is_read ? item : { ...item, is_read: true };
}

function weight(item: InboxItem): number {
  return isInView("unread", item) ? 1 : 0;
}

function isInView(view: View, item: InboxItem): boolean {
  if (view === "archived") return item.is_archived;
  if (item.is_archived) return false;
  if (view === "snoozed") return Boolean(item.snoozed_until);
  return !item.snoozed_until && (view === "inbox" || !item.is_read);
}

function mapped(
  items: Map<string, InboxItem>,
  change: (item: InboxItem) => InboxItem,
): Map<string, InboxItem> {
  return new Map([...items].map(([id, item]) => [id, change(item)]));
}

function sorted(items: Iterable<InboxItem>): InboxItem[] {
  return [...items].sort(
    (a, b) => compare(b.delivered_at, a.delivered_at) || compare(b.id, a.id),
  );
}

function bySnooze(a: InboxItem, b: InboxItem): number {
  return compare(a.snoozed_until ?? "", b.snoozed_until ?? "") || compare(a.id, b.id);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
