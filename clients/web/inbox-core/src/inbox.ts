import { Api, ApiError, Tokens } from "./api.ts";
import { Ledger } from "./ledger.ts";
import { backOff, follow, pause, type StreamEvent } from "./stream.ts";
import { Tabs } from "./tabs.ts";
import type {
  ChosenPreferences, Connection, Counts, Filter, GetToken, InboxItem, Operation, Page, Preferences, Problem, Snapshot, View,
} from "./types.ts";

const PAGE = 30;
const LONGEST_PAGE = 100;
const POLL_SECONDS = 60;
const REFRESH_SECONDS = 0.2;
/** Without a message of the leading tab for this long, it is asleep: it sends one for each comment of the stream. */
const SILENCE_SECONDS = 60;
/** Without a message for this long, a page that is shown again has probably slept: the stream has a comment every 15 s. */
const SLEEP_SECONDS = 20;

export interface InboxOptions {
  readonly getToken: GetToken;
  /** The service's origin, if it isn't that of the token's `stream_url`. */
  readonly service?: string | null;
  /** What the list holds; otherwise everything. Counts are of the whole inbox. */
  readonly filter?: Filter;
  readonly fetch?: typeof fetch;
  /** A number from 0 to 1, for the jitter of back-offs. */
  readonly random?: () => number;
}

/** What tabs tell each other. */
type Message =
  | { readonly about: "event"; readonly event: StreamEvent }
  | { readonly about: "connection"; readonly connection: Connection }
  | { readonly about: "item"; readonly item: InboxItem }
  | { readonly about: "read-all" };

const EMPTY: Snapshot = Object.freeze({
  items: [], counts: null, hasMore: false, isLoading: false, isLoaded: false,
  connection: "connecting", problem: null,
});

/** The inbox of one person: a snapshot that changes, and the person's operations. */
export class Inbox {
  private readonly api: Api;
  private readonly tokens: Tokens;
  private ledger: Ledger;
  private readonly random: () => number;
  private readonly filter: Filter;
  private readonly views = new Map<View, Inbox>();
  private heardAt = performance.now();
  private counted: { serverTime: number; at: number } | null = null;
  private readonly closed = new AbortController();
  private readonly subscribers = new Set<(snapshot: Snapshot) => void>();
  private readonly receivers = new Set<(item: InboxItem) => void>();
  private readonly problemReceivers = new Set<(problem: Problem) => void>();
  private tabs: Tabs<Message> | null = null;
  private state: Snapshot = EMPTY;
  private cursor: string | null = null;
  private viewers = 0;
  private isSending = false;
  private isCounting = false;
  private isCountStale = false;
  private refreshing: Promise<void> | null = null;
  private loadingMore: Promise<void> | null = null;
  private reading: Promise<void> = Promise.resolve();
  private isRefreshStale = false;
  private refreshTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly options: InboxOptions,
    private readonly view: View = "inbox",
    private readonly whole: Inbox | null = null,
  ) {
    this.tokens = whole?.tokens ?? new Tokens(options.getToken);
    if (whole === null) this.tokens.onOtherPerson = () => this.forget();
    const fetcher = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.api = whole?.api ?? new Api(this.tokens, options.service ?? null, fetcher);
    this.ledger = new Ledger(view);
    this.random = options.random ?? Math.random;
    this.filter = options.filter ?? {};
  }

  /** Return a view of this inbox, with a list of its own. It follows this inbox, and is closed with it. */
  inView(view: View): Inbox {
    if (this.whole !== null) return this.whole.inView(view);
    if (view === "inbox") return this;
    let found = this.views.get(view);
    if (found === undefined) {
      found = new Inbox(this.options, view, this);
      this.views.set(view, found);
      found.show({ connection: this.state.connection });
      found.count();
    }
    return found;
  }

  get snapshot(): Snapshot {
    return this.state;
  }

  /** The service's time in milliseconds since 1970, or null before the first counts. */
  get serverTime(): number | null {
    return this.counted && this.counted.serverTime + performance.now() - this.counted.at;
  }

  /** Call `subscriber` with each new snapshot. Return a function that ends this. */
  subscribe(subscriber: (snapshot: Snapshot) => void): () => void {
    this.subscribers.add(subscriber);
    return () => this.subscribers.delete(subscriber);
  }

  /** Call `receiver` with each notification that arrives while the page is open. */
  onReceived(receiver: (item: InboxItem) => void): () => void {
    this.receivers.add(receiver);
    return () => this.receivers.delete(receiver);
  }

  /** Call `receiver` with each problem, also those that a later answer ends. */
  onProblem(receiver: (problem: Problem) => void): () => void {
    this.problemReceivers.add(receiver);
    return () => this.problemReceivers.delete(receiver);
  }

  /** Count, and follow the stream, until `close()`. */
  async start(): Promise<void> {
    for (let failures = 0; !this.closed.signal.aborted; failures += 1) {
      try {
        await this.join();
        globalThis.document?.addEventListener("visibilitychange", this.onShown);
        globalThis.addEventListener?.("pageshow", this.onShown);
        this.count();
        void this.poll();
        return;
      } catch (error) {
        this.fail(error);
        await pause(backOff(failures, this.random()), this.closed.signal);
      }
    }
  }

  private async join(): Promise<void> {
    const token = await this.tokens.get();
    if (this.closed.signal.aborted) return;
    const name = `notifyproject inbox ${token.stream_url} ${token.user_id}`;
    this.tabs?.close();
    this.tabs = new Tabs<Message>(name, (signal) => this.lead(signal), (one) => this.hear(one));
  }

  // Nothing of the person who was signed in before is shown or sent any more.
  private forget(): void {
    for (const one of [this, ...this.views.values()]) {
      one.ledger = new Ledger(one.view);
      one.cursor = null;
      one.show({ isLoaded: false, problem: null });
      one.count();
      if (one.viewers > 0) void one.refresh();
    }
    void this.join().catch((error: unknown) => this.fail(error));
  }

  close(): void {
    globalThis.document?.removeEventListener("visibilitychange", this.onShown);
    globalThis.removeEventListener?.("pageshow", this.onShown);
    for (const one of this.views.values()) one.close();
    this.closed.abort();
    clearTimeout(this.refreshTimer);
    this.tabs?.close();
    this.subscribers.clear();
    this.receivers.clear();
    this.problemReceivers.clear();
  }

  /** The list is shown: load it and keep it current. The service then counts its items as seen. */
  open(): Promise<void> {
    this.viewers += 1;
    return this.refresh();
  }

  /** The list is hidden, once for each `open()`: only counts are kept current. */
  hide(): void {
    this.viewers -= 1;
  }

  /** Load the next page, if there is one. */
  loadMore(): Promise<void> {
    this.loadingMore ??= this.oneByOne(() => this.readMore()).finally(() => (this.loadingMore = null));
    return this.loadingMore;
  }

  private async readMore(): Promise<void> {
    const { cursor, ledger } = this;
    if (cursor === null) return;
    const since = ledger.tick();
    this.show({ isLoading: true });
    try {
      const page = await this.api.list({ limit: PAGE, cursor, filter: this.filter, view: this.view });
      if (ledger !== this.ledger) return;
      ledger.append(page, since);
      this.cursor = page.next;
      this.show({ isLoading: false, problem: null });
    } catch (error) {
      this.fail(error);
      this.show({ isLoading: false, problem: problemOf(error) });
    }
  }

  // A page that is read while the list is read again would end elsewhere, or be lost.
  private oneByOne(read: () => Promise<void>): Promise<void> {
    this.reading = this.reading.then(read);
    return this.reading;
  }

  /** Change an item at once here, and then at the service. */
  mark(operation: Operation): void {
    this.ledger.add(operation);
    this.show({});
    void this.send();
  }

  /** Read the person's preferences. Raises ApiError. */
  preferences(): Promise<Preferences> {
    return this.api.preferences();
  }

  /** Replace the person's preferences. Raises ApiError. */
  setPreferences(chosen: ChosenPreferences): Promise<Preferences> {
    return this.api.setPreferences(chosen);
  }

  /** Read the loaded part of the list again. */
  refresh(): Promise<void> {
    if (this.refreshing !== null) {
      this.isRefreshStale = true;
      return this.refreshing;
    }
    this.refreshing = this.oneByOne(() => this.readList()).finally(() => {
      this.refreshing = null;
      if (this.isRefreshStale && !this.closed.signal.aborted) void this.refresh();
    });
    return this.refreshing;
  }

  private async readList(): Promise<void> {
    this.isRefreshStale = false;
    const { ledger } = this;
    const since = ledger.tick();
    const wanted = Math.max(PAGE, ledger.size);
    const pages: Page[] = [];
    this.show({ isLoading: true });
    try {
      let cursor: string | null = null;
      for (let left = wanted; left > 0; left -= LONGEST_PAGE) {
        const limit = Math.min(left, LONGEST_PAGE);
        const page: Page = await this.api.list({ limit, cursor, filter: this.filter, view: this.view });
        pages.push(page);
        cursor = page.next;
        if (cursor === null) break;
      }
      if (ledger !== this.ledger) return;
      ledger.replace(pages, since);
      this.cursor = cursor;
      this.show({ isLoading: false, isLoaded: true, problem: null });
    } catch (error) {
      this.fail(error);
      this.show({ isLoading: false, problem: problemOf(error) });
    }
  }

  // Operations are sent one after another, so that the service applies them in the person's order.
  private async send(): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    for (let failures = 0; !this.closed.signal.aborted; ) {
      const { ledger } = this;
      const operation = ledger.operations[0];
      if (operation === undefined) break;
      try {
        if (operation.kind === "read-all") {
          const isComplete = await this.api.readPart();
          failures = 0;
          if (!isComplete) continue;
          ledger.answer(null);
          this.tell({ about: "read-all" });
        } else {
          const item = await this.perform(operation);
          ledger.answer(item);
          if (ledger === this.ledger) this.tell({ about: "item", item });
        }
        failures = 0;
      } catch (error) {
        this.fail(error);
        if (error instanceof ApiError && error.isTemporary) {
          failures += 1;
          const wait = Math.max(backOff(failures, this.random()), error.retryAfter ?? 0);
          await pause(wait, this.closed.signal);
          continue;
        }
        ledger.refuse();
      }
      this.show({});
    }
    this.isSending = false;
    this.count();
  }

  private perform(operation: Exclude<Operation, { kind: "read-all" }>): Promise<InboxItem> {
    switch (operation.kind) {
      case "snooze":
        return this.api.snooze(operation.id, operation.until);
      case "act":
        return this.api.act(operation.id, operation.action);
      default:
        return this.api.mark(operation.id, operation.kind);
    }
  }

  /** Read the counts. Another wish while they are read causes one more read. */
  private count(): void {
    this.isCountStale = true;
    if (!this.isCounting) void this.readCounts();
  }

  private async readCounts(): Promise<void> {
    this.isCounting = true;
    for (let failures = 0; this.isCountStale && !this.closed.signal.aborted; ) {
      this.isCountStale = false;
      const { ledger } = this;
      const since = ledger.tick();
      try {
        const counts = await this.api.counts();
        failures = 0;
        if (ledger !== this.ledger) continue;
        // Counts don't say whether they include an operation that ran meanwhile. The first ones are shown anyhow.
        if (this.state.counts !== null && this.isSending) break;
        this.isCountStale ||= this.ledger.wasAnsweredSince(since);
        if (this.state.counts === null || !this.isCountStale) this.takeCounts(counts, since);
      } catch (error) {
        if (ledger !== this.ledger) continue;
        this.fail(error);
        if (!(error instanceof ApiError) || !error.isTemporary) break;
        this.isCountStale = true;
        failures += 1;
        await pause(backOff(failures, this.random()), this.closed.signal);
      }
    }
    this.isCounting = false;
  }

  private takeCounts(counts: Counts, since: number): void {
    const before = this.state.counts;
    this.recordTime(counts);
    this.ledger.count(counts, since);
    const connection = this.state.connection === "offline" ? "polling" : this.state.connection;
    this.show({ connection });
    if (!this.state.isLoaded) this.refreshSoon();
    const now = this.state.counts;
    if (before?.unread !== now?.unread || before?.unseen !== now?.unseen) this.refreshSoon();
  }

  private recordTime(counts: Counts): void {
    const serverTime = Number(counts.as_of.split(".")[0]) * 1000;
    this.counted = { serverTime, at: performance.now() };
  }

  // Events come in groups. One read serves them all.
  private refreshSoon(): void {
    if (this.viewers === 0 || this.refreshTimer !== undefined) return;
    this.refreshTimer = setTimeout(() => {
      this.refreshTimer = undefined;
      void this.refresh();
    }, REFRESH_SECONDS * 1000);
  }

  // Without a live stream, the counts are read once a minute. A phone may freeze the tab that leads.
  private async poll(): Promise<void> {
    while (!this.closed.signal.aborted) {
      await pause(POLL_SECONDS, this.closed.signal);
      const isSilent = performance.now() - this.heardAt > SILENCE_SECONDS * 1000;
      if (isSilent && this.state.connection === "live") this.setConnection("polling");
      if (!this.closed.signal.aborted && this.state.connection !== "live") this.count();
    }
  }

  // A phone that slept, or a page of the back-forward cache, has missed events, and learns it from no timer at once.
  private readonly onShown = (): void => {
    if (globalThis.document?.visibilityState === "hidden") return;
    if (performance.now() - this.heardAt < SLEEP_SECONDS * 1000) return;
    this.heardAt = performance.now();
    for (const one of [this, ...this.views.values()]) {
      one.count();
      one.refreshSoon();
    }
  };

  private lead(signal: AbortSignal): Promise<void> {
    const pass = (message: Message): void => {
      this.tabs?.tell(message);
      this.hear(message);
    };
    const handlers = {
      lastEventId: () => this.ledger.newestId,
      onLive: (isLive: boolean) => pass({ about: "connection", connection: isLive ? "live" : "polling" }),
      onEvent: (event: StreamEvent) => pass({ about: "event", event }),
    };
    return follow(this.api, handlers, signal, this.random);
  }

  private setConnection(connection: Connection): void {
    for (const one of [this, ...this.views.values()]) {
      if (connection === one.state.connection) continue;
      one.show({ connection });
      // What the stream missed while it was away.
      if (connection === "live") one.refreshSoon();
    }
  }

  /** Tell other tabs, and the other views of this one. */
  private tell(message: Message): void {
    const whole = this.whole ?? this;
    whole.tabs?.tell(message);
    for (const one of [whole, ...whole.views.values()]) if (one !== this) one.take(message);
  }

  private hear(message: Message): void {
    this.heardAt = performance.now();
    for (const one of [this, ...this.views.values()]) one.take(message);
  }

  private take(message: Message): void {
    if (message.about === "event") this.takeEvent(message.event);
    else if (message.about === "connection") this.setConnection(message.connection);
    else {
      if (message.about === "read-all") this.ledger.confirmAllRead();
      else if (this.isListed(message.item)) this.ledger.confirm(message.item);
      this.show({});
      this.count();
    }
  }

  private takeEvent(event: StreamEvent): void {
    if (event.name === "notification") {
      const item = event.data as InboxItem;
      if (!this.isListed(item)) return;
      if (this.ledger.receive(item)) for (const one of this.receivers) one(item);
      this.show({});
      this.refreshSoon();
    } else if (event.name === "counts") {
      // Counts of the stream don't say which operations they include: with any pending, ask.
      if (this.ledger.hasPending || this.isCounting) this.count();
      else this.takeStreamCounts(event.data as Counts);
      this.show({});
      this.refreshSoon();
    } else if (event.name === "reload") {
      this.count();
      this.refreshSoon();
    }
  }

  private takeStreamCounts(counts: Counts): void {
    this.recordTime(counts);
    this.ledger.count(counts, this.ledger.tick());
  }

  private isListed(item: InboxItem): boolean {
    const { type, category } = this.filter;
    return (type ?? item.type) === item.type && (category ?? item.category) === item.category;
  }

  private fail(error: unknown): void {
    const problem = problemOf(error);
    for (const one of (this.whole ?? this).problemReceivers) one(problem);
    if (problem.status === 0) this.show({ connection: "offline" });
  }

  private show(changes: Partial<Snapshot>): void {
    if (this.closed.signal.aborted) return;
    this.state = Object.freeze({
      ...this.state,
      ...changes,
      items: this.ledger.shownItems(),
      counts: this.ledger.shownCounts(),
      hasMore: this.cursor !== null,
    });
    for (const one of [...this.subscribers]) one(this.state);
  }
}

function problemOf(error: unknown): Problem {
  return error instanceof ApiError ? error.problem : { status: 0, detail: String(error) };
}
