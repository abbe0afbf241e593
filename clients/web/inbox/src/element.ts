import { normalizedLocale, type GetToken, type Inbox, type InboxItem, type Snapshot, type View } from "@notifyproject/inbox-core";
import { LitElement, type PropertyValues } from "lit";
import { acquire, release } from "./shared.ts";
import { wordsFor, type Words } from "./words.ts";

export const VIEWS: readonly View[] = ["inbox", "unread", "snoozed", "archived"];

/** What both elements have: an inbox, its snapshot, words, and the events of the page. */
export class InboxElement extends LitElement {
  static override properties = {
    tokenUrl: { attribute: "token-url" },
    service: {},
    filter: {},
    locale: {},
    theme: { reflect: true },
    getToken: { attribute: false },
    words: { attribute: false },
    inbox: { attribute: false },
    view: { reflect: true },
    snapshot: { state: true },
  };

  /** The app's URL that answers with `POST /inbox/tokens` for the signed-in person. */
  declare tokenUrl: string | undefined;
  /** The service's origin, if the stream has another. */
  declare service: string | undefined;
  /** What the list holds: `type:order_shipped category:alert`. */
  declare filter: string | undefined;
  declare locale: string | undefined;
  /** `light` or `dark`; otherwise as the system. */
  declare theme: string | undefined;
  /** In place of `token-url`. */
  declare getToken: GetToken | undefined;
  /** Texts in place of the built-in ones. */
  declare words: Partial<Words> | undefined;
  /** An inbox that another element follows. */
  declare inbox: Inbox | undefined;
  /** Which notifications the list holds: `inbox`, `unread`, `snoozed`, or `archived`. */
  declare view: View;
  declare snapshot: Snapshot | undefined;

  /** The view that is shown, and the inbox that it is a view of. */
  protected current: Inbox | null = null;
  protected whole: Inbox | null = null;
  private source: string | GetToken | null = null;
  private acquiredFilter = "";
  private ends: (() => void)[] = [];

  constructor() {
    super();
    this.view = "inbox";
  }

  protected get language(): string {
    return normalizedLocale(this.locale, document.documentElement.lang, navigator.language);
  }

  protected get text(): Words {
    return wordsFor(this.language, this.words);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    if (this.hasUpdated) this.attach();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.detach();
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const names = ["tokenUrl", "getToken", "service", "inbox", "filter", "view"] as const;
    if (!this.hasUpdated || names.some((name) => changed.has(name))) {
      this.detach();
      this.attach();
    }
  }

  /** A subclass adds what it does with a new inbox. */
  protected attached(_inbox: Inbox): void {}

  protected detaching(_inbox: Inbox): void {}

  protected received(_item: InboxItem): void {}

  protected announce(name: string, detail: unknown, cancelable = false): boolean {
    const event = new CustomEvent(name, { detail, cancelable, bubbles: true, composed: true });
    return this.dispatchEvent(event);
  }

  private attach(): void {
    const source = this.getToken ?? this.tokenUrl;
    if (this.current !== null || (this.inbox === undefined && source === undefined)) return;
    this.acquiredFilter = this.filter ?? "";
    const inbox = this.inbox ?? acquire(source!, this.service ?? null, this.acquiredFilter);
    this.source = this.inbox === undefined ? source! : null;
    this.whole = inbox;
    this.current = inbox.inView(VIEWS.includes(this.view) ? this.view : "inbox");
    this.snapshot = this.current.snapshot;
    this.ends = [
      this.current.subscribe((snapshot) => this.follow(snapshot)),
      inbox.onReceived((item) => {
        this.received(item);
        if (this.source !== null) this.announce("notify-received", item);
      }),
      inbox.onProblem((problem) => {
        if (this.source !== null) this.announce("notify-problem", problem);
      }),
    ];
    this.attached(this.current);
  }

  private detach(): void {
    if (this.current === null) return;
    for (const end of this.ends.splice(0)) end();
    this.detaching(this.current);
    this.current = this.whole = null;
    if (this.source !== null) release(this.source, this.acquiredFilter);
  }

  private follow(snapshot: Snapshot): void {
    const [before, now] = [this.snapshot?.counts, snapshot.counts];
    this.snapshot = snapshot;
    const isChanged = before?.unread !== now?.unread || before?.unseen !== now?.unseen;
    if (now && isChanged && this.source !== null) this.announce("notify-counts", now);
  }
}
