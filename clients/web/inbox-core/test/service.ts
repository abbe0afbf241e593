import type { Counts, InboxItem, Token, View } from "../src/index.ts";

export const STREAM_URL = "https://stream.example/api/v1/inbox/stream";

/** A request that waits: first to be served, then to be answered. Either may be lost. */
interface Waiting {
  serve(): void;
  lose(): void;
}

/** A model of the inbox API. A test decides when it serves and answers each request. */
export class Service {
  readonly items = new Map<string, InboxItem>();
  readonly streams = new Set<ReadableStreamDefaultController<Uint8Array>>();
  unserved: Waiting[] = [];
  unanswered: (() => void)[] = [];
  /** Serve and answer without waiting. */
  isDirect = false;
  refusesStreams: { status: number; retryAfter?: number } | null = null;
  tokensIssued = 0;
  validToken = "";
  requests: string[] = [];
  /** Requests to read all that are answered before the one that is complete. */
  readAllParts = 0;
  /** Answer requests to read all by 503. */
  failsReadAll = false;
  private seenUntil = "";
  private age = 0;
  /** How often anything changed: the time of the counts. */
  private changes = 0;

  person = "ada";

  readonly getToken = async (): Promise<Token> => {
    this.validToken = `token-${(this.tokensIssued += 1)}`;
    return { token: this.validToken, user_id: this.person, stream_url: STREAM_URL };
  };

  readonly fetch = ((input: string, init: RequestInit = {}) => {
    const url = new URL(input);
    this.requests.push(`${init.method ?? "GET"} ${url.pathname}${url.search}`);
    if (url.pathname.endsWith("/stream")) return Promise.resolve(this.stream(init));
    return new Promise<Response>((resolve, reject) => {
      const lose = (): void => reject(new TypeError("network"));
      const serve = (): void => {
        const answer = this.respond(url, init);
        this.unanswered.push(() => resolve(answer));
      };
      if (!this.isDirect) this.unserved.push({ serve, lose });
      else resolve(this.respond(url, init));
    });
  }) as typeof fetch;

  get counts(): Counts {
    const unread = this.list.filter((one) => !one.is_read);
    const unseen = unread.filter((one) => one.delivered_at > this.seenUntil);
    const as_of = `1767225600.${String(this.changes).padStart(10, "0")}`;
    return { unread: unread.length, unseen: unseen.length, as_of };
  }

  get list(): InboxItem[] {
    return this.listOf("inbox");
  }

  listOf(view: View): InboxItem[] {
    const newestFirst = [...this.items.values()].sort((a, b) => (a.delivered_at < b.delivered_at ? 1 : -1));
    if (view === "archived") return newestFirst.filter((one) => one.is_archived);
    const rest = newestFirst.filter((one) => !one.is_archived);
    if (view === "snoozed") {
      const key = (one: InboxItem): string => `${one.snoozed_until} ${one.id}`;
      return rest.filter((one) => one.snoozed_until).sort((a, b) => (key(a) < key(b) ? -1 : 1));
    }
    return rest.filter((one) => !one.snoozed_until && (view === "inbox" || !one.is_read));
  }

  deliver(): InboxItem {
    this.age += 1;
    const item: InboxItem = {
      id: `n${this.age}`, type: "paid", category: "transactional", subject: `Paid ${this.age}`,
      delivered_at: this.time(), is_read: false, is_archived: false, snoozed_until: null, action: null,
    };
    this.set(item);
    this.emit("notification", item, item.id);
    this.emit("counts", this.counts);
    return item;
  }

  mark(id: string, kind: string, until = "2026-02-01T00:00:00Z"): InboxItem | null {
    const item = this.items.get(id);
    if (item === undefined) return null;
    const changes = {
      read: { is_read: true }, unread: { is_read: false },
      archive: { is_archived: true, snoozed_until: null }, unarchive: { is_archived: false },
      snooze: { is_archived: false, snoozed_until: until }, unsnooze: { snoozed_until: null },
      actions: { is_read: true, action: item.action ?? "approve" },
    }[kind];
    const changed = { ...item, ...changes };
    this.set(changed);
    this.emit("counts", this.counts);
    return changed;
  }

  /** A snoozed item comes back as new. */
  resurface(id: string): void {
    const item = this.items.get(id);
    if (!item?.snoozed_until) return;
    this.age += 1;
    const back = { ...item, snoozed_until: null, is_read: false, delivered_at: this.time() };
    this.set(back);
    this.emit("notification", back, id);
    this.emit("counts", this.counts);
  }

  private time(): string {
    return new Date(Date.UTC(2026, 0, 1) + this.age * 1000).toISOString();
  }

  private set(item: InboxItem): void {
    this.changes += 1;
    this.items.set(item.id, item);
  }

  readAll(): void {
    for (const item of this.items.values()) this.set({ ...item, is_read: true });
    this.emit("counts", this.counts);
  }

  emit(name: string, data: unknown, id?: string): void {
    const text = `${id ? `id: ${id}\n` : ""}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
    for (const one of this.streams) one.enqueue(new TextEncoder().encode(text));
  }

  /** End all streams without a word. */
  drop(): void {
    for (const one of this.streams) one.error(new TypeError("network"));
    this.streams.clear();
  }

  private stream(init: RequestInit): Response {
    if (this.refusesStreams !== null) {
      const { status, retryAfter } = this.refusesStreams;
      const headers = retryAfter ? { "Retry-After": String(retryAfter) } : undefined;
      return new Response("{}", { status, ...(headers && { headers }) });
    }
    if (!this.isValid(init)) return new Response("{}", { status: 401 });
    let mine: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        mine = controller;
        this.streams.add(controller);
      },
      cancel: () => void this.streams.delete(mine),
    });
    init.signal?.addEventListener("abort", () => {
      if (this.streams.delete(mine)) mine.error(new DOMException("aborted", "AbortError"));
    });
    const text = `event: counts\ndata: ${JSON.stringify(this.counts)}\n\n`;
    mine!.enqueue(new TextEncoder().encode(text));
    return new Response(body, { status: 200 });
  }

  private isValid(init: RequestInit): boolean {
    return new Headers(init.headers).get("Authorization") === `Bearer ${this.validToken}`;
  }

  private respond(url: URL, init: RequestInit): Response {
    if (!this.isValid(init)) return Response.json({ detail: "expired" }, { status: 401 });
    const path = url.pathname.replace("/api/v1/inbox", "");
    if (path === "/counts") return Response.json(this.counts);
    if (path === "/read-all") {
      if (this.failsReadAll) return new Response("{}", { status: 503 });
      if (this.readAllParts > 0) {
        this.readAllParts -= 1;
        return Response.json({ updated: 0, is_complete: false });
      }
      this.readAll();
      return Response.json({ updated: 1 });
    }
    if (path === "") return Response.json(this.page(url.searchParams));
    const [, id = "", kind = ""] = path.split("/");
    const body = init.body ? (JSON.parse(String(init.body)) as { until: string }) : null;
    const item = this.mark(id, kind, body?.until);
    return item === null
      ? Response.json({ detail: "unknown" }, { status: 404 })
      : Response.json(item);
  }

  private page(query: URLSearchParams): unknown {
    const limit = Number(query.get("limit"));
    const cursor = query.get("cursor");
    const view = (["unread", "snoozed", "archived"] as const).find((one) => query.get(one) === "true") ?? "inbox";
    const rest = this.listOf(view).filter((one) => cursor === null || one.delivered_at < cursor);
    const results = rest.slice(0, limit);
    const marksSeen = view === "inbox" || view === "unread";
    if (marksSeen && cursor === null && results[0] && results[0].delivered_at > this.seenUntil) {
      this.seenUntil = results[0].delivered_at;
      this.changes += 1;
      this.emit("counts", this.counts);
    }
    return { results, next: rest.length > limit ? results.at(-1)!.delivered_at : null };
  }
}
