import type { Action, Inbox, InboxItem, Operation, View } from "@notifyproject/inbox-core";
import { html, nothing, type PropertyValues, type SVGTemplateResult, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { InboxElement, VIEWS } from "./element.ts";
import * as icons from "./icons.ts";
import { follow } from "./placing.ts";
import { safeLink } from "./shared.ts";
import * as styles from "./styles.ts";
import { age, dayName, inputValue, moment, soon } from "./times.ts";
import { fill } from "./words.ts";

const REDRAW_SECONDS = 30;

/** What a person can do with an item in the view that is shown. */
interface RowAction {
  readonly label: string;
  readonly icon: SVGTemplateResult;
  readonly run: (event: Event) => void;
}

/** The list of notifications: `<notify-inbox token-url="/me/notify-token" mode="page">`. */
export class NotifyInbox extends InboxElement {
  static override properties = {
    ...InboxElement.properties,
    mode: { reflect: true },
    news: { state: true },
    choosing: { state: true },
    undoable: { state: true },
  };
  static override styles = [styles.base, styles.inbox];

  /** `popover`, `panel` (fills its container), or `page`. */
  declare mode: string;
  declare news: string;
  /** The item whose menu is open: of snooze times, or of all actions where there is no room for a row of them. */
  declare choosing: { id: string; isWhole: boolean } | null;
  /** What was done last, and what undoes it. */
  declare undoable: { text: string; undo: Operation } | null;
  private isViewing = false;
  private redraw: ReturnType<typeof setInterval> | undefined;
  private stopFollowing: () => void = () => undefined;

  constructor() {
    super();
    this.mode = "page";
    this.news = "";
    this.choosing = null;
    this.undoable = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("visibilitychange", this.onVisibility);
    document.addEventListener("pointerdown", this.onPointer);
    // "2 min. ago" grows old.
    this.redraw = setInterval(() => this.isViewing && this.requestUpdate(), REDRAW_SECONDS * 1000);
  }

  override disconnectedCallback(): void {
    document.removeEventListener("visibilitychange", this.onVisibility);
    document.removeEventListener("pointerdown", this.onPointer);
    clearInterval(this.redraw);
    this.stopFollowing();
    this.choosing = null;
    super.disconnectedCallback();
  }

  protected override updated(changed: PropertyValues<this>): void {
    if (!changed.has("choosing")) return;
    this.stopFollowing();
    this.stopFollowing = () => undefined;
    const menu = this.renderRoot.querySelector<HTMLElement>(".menu");
    const opener = this.renderRoot.querySelector<HTMLElement>(".actions [aria-expanded=true]");
    if (menu === null || opener === null) return;
    this.stopFollowing = follow(menu, opener);
    menu.querySelector("button")?.focus();
  }

  protected override attached(inbox: Inbox): void {
    this.watch(inbox);
  }

  protected override detaching(inbox: Inbox): void {
    if (this.isViewing) inbox.hide();
    this.isViewing = false;
  }

  protected override received(item: InboxItem): void {
    this.news = fill(this.text.arrived, { subject: this.subject(item) });
  }

  // A list in a hidden tab isn't read: its notifications stay unseen.
  private readonly onVisibility = (): void => {
    if (this.current !== null) this.watch(this.current);
  };

  private readonly onPointer = (event: PointerEvent): void => {
    if (this.choosing === null) return;
    const isInside = event.composedPath().some((one) => one instanceof HTMLElement && one.matches(".menu, [aria-expanded]"));
    if (!isInside) this.choosing = null;
  };

  private watch(inbox: Inbox): void {
    const isVisible = document.visibilityState === "visible";
    if (isVisible === this.isViewing) return;
    this.isViewing = isVisible;
    if (isVisible) void inbox.open();
    else inbox.hide();
  }

  protected override render(): TemplateResult {
    const { text, snapshot } = this;
    const unread = snapshot?.counts?.unread ?? 0;
    return html`<div class="frame" part="frame" @keydown=${this.onKey}
      role=${this.mode === "popover" ? nothing : "region"} aria-label=${this.mode === "popover" ? nothing : text.title}>
      <header part="header">
        <h2>${text.title}</h2>
        ${unread > 0
          ? html`<span class="count" part="count">${unread}<span class="only-spoken"> ${text.unread}</span></span>
              <button class="quiet" part="read-all" @click=${this.readAll}>${text.readAll}</button>`
          : nothing}
      </header>
      <div class="views" part="views" role="group" aria-label=${text.title}>${VIEWS.map((one) => html`<button
        aria-pressed=${this.view === one} @click=${() => this.choose(one)}>${text.views[one] ?? one}</button>`)}</div>
      ${snapshot?.connection === "offline" && snapshot.isLoaded
        ? html`<p class="strip" part="offline" role="status">${text.offline}</p>`
        : nothing}
      <div class="scroll" part="list">${this.renderContent()}</div>
      <div role="status">${this.renderUndo()}</div>
      <div class="only-spoken" role="status">${this.news}</div>
    </div>`;
  }

  private renderContent(): TemplateResult {
    const { text, snapshot } = this;
    const items = snapshot?.items ?? [];
    if (items.length > 0 && snapshot?.isLoaded) {
      return html`${repeat(this.byDay(items), ([day]) => day, ([day, those]) => html`
        ${day ? html`<h3 part="day">${day}</h3>` : nothing}
        <ul role="list">${repeat(those, (one) => one.id, (one) => this.renderItem(one))}</ul>`)}
        ${snapshot.hasMore
          ? html`<button class="quiet more" part="more" @click=${this.loadMore}>${text.loadMore}</button>`
          : nothing}`;
    }
    if (snapshot?.isLoaded) {
      const other = this.view === "inbox" ? undefined : text.emptyViews[this.view];
      return html`<div class="state" part="empty">${icons.largeBell}<strong>${other ?? text.empty}</strong>${
        other === undefined ? text.emptyHint : nothing}</div>`;
    }
    if (snapshot?.problem) {
      return html`<div class="state" part="error" role="alert">
        <strong>${text.failed}</strong><button class="quiet" @click=${this.reload}>${text.retry}</button>
      </div>`;
    }
    return html`<div role="status"><span class="only-spoken">${text.loading}</span>
      ${[1, 2, 3, 4].map(() => html`<div class="bone"></div>`)}</div>`;
  }

  private renderItem(item: InboxItem): TemplateResult {
    const { text } = this;
    const subject = this.subject(item);
    const link = safeLink(item.deep_link);
    const image = safeLink(item.image_url);
    const content = html`<span class="dot"></span>
      ${image ? html`<img src=${image} alt="" loading="lazy" @error=${hide} />` : nothing}
      <span class="words">
        <span class="line">
          <span class="subject" part="subject" dir="auto">${subject}</span>
          ${this.renderTime(item)}
        </span>
        ${item.subject && item.body ? html`<span class="body" part="body" dir="auto">${item.body}</span>` : nothing}
        ${item.is_read ? nothing : html`<span class="only-spoken">, ${text.unread}</span>`}
      </span>`;
    const open = (event: Event): void => this.open(event, item, link);
    return html`<li part="item" data-id=${item.id} class=${item.is_read ? "read" : "unread"}>
      ${link
        ? html`<a class="open" href=${link} @click=${open}>${content}</a>`
        : html`<button class="open" @click=${open}>${content}</button>`}
      ${this.renderChoices(item, subject)}
      <span class="actions">${this.renderActions(item, subject)}</span>
    </li>`;
  }

  private renderTime(item: InboxItem): TemplateResult {
    const isSnoozed = this.view === "snoozed" && item.snoozed_until;
    const at = new Date(isSnoozed ? item.snoozed_until! : item.delivered_at);
    const shown = isSnoozed
      ? fill(this.text.until, { time: moment(at, this.language) })
      : age(at, this.now, this.language);
    return html`<time part="time" datetime=${at.toISOString()} title=${moment(at, this.language)}>${shown}</time>`;
  }

  private rowActions(item: InboxItem): RowAction[] {
    const { text } = this;
    const { id } = item;
    const operate = (kind: "read" | "unread") => (): void => this.current?.mark({ kind, id });
    const remove = (kind: "unarchive" | "unsnooze") => (event: Event): void =>
      this.leave(event, () => this.current?.mark({ kind, id }));
    const archive: RowAction = {
      label: text.archive,
      icon: icons.box,
      run: (event) => {
        this.undoable = { text: text.archived, undo: { kind: "unarchive", id } };
        this.leave(event, () => this.current?.mark({ kind: "archive", id }));
      },
    };
    if (this.view === "archived") return [{ label: text.unarchive, icon: icons.back, run: remove("unarchive") }];
    if (this.view === "snoozed") return [{ label: text.unsnooze, icon: icons.back, run: remove("unsnooze") }, archive];
    return [
      item.is_read
        ? { label: text.markUnread, icon: icons.dot, run: operate("unread") }
        : { label: text.markRead, icon: icons.check, run: operate("read") },
      archive,
    ];
  }

  private renderActions(item: InboxItem, subject: string): TemplateResult {
    const { text } = this;
    const [first, ...others] = this.rowActions(item);
    const canSnooze = this.view === "inbox" || this.view === "unread";
    const open = this.choosing?.id === item.id ? this.choosing : null;
    const toggle = (isWhole: boolean) => (): void => void (this.choosing = open ? null : { id: item.id, isWhole });
    const button = ({ label, icon, run }: RowAction): TemplateResult => html`<button class="wide"
      aria-label=${fill(label, { subject })} title=${bare(label)} @click=${run}>${icon}</button>`;
    return html`${first ? button(first) : nothing}
      ${canSnooze
        ? html`<button class="wide" aria-label=${fill(text.snooze, { subject })} title=${bare(text.snooze)}
            aria-expanded=${open !== null && !open.isWhole} @click=${toggle(false)}>${icons.clock}</button>`
        : nothing}
      ${others.map(button)}
      <button class="narrow" aria-label=${fill(text.more, { subject })} aria-expanded=${open?.isWhole ?? false}
        @click=${toggle(true)}>${icons.more}</button>
      ${open ? this.renderMenu(item, open.isWhole, canSnooze) : nothing}`;
  }

  private renderMenu(item: InboxItem, isWhole: boolean, canSnooze: boolean): TemplateResult {
    const { text, language } = this;
    const done = (run: (event: Event) => void) => (event: Event): void => {
      this.choosing = null;
      run(event);
    };
    return html`<span class="menu" part="menu" popover="manual" @keydown=${(event: KeyboardEvent) => this.closeMenu(event)}>
      ${isWhole
        ? this.rowActions(item).map(({ label, icon, run }) =>
            html`<button @click=${done(run)}>${icon}<span>${bare(label)}</span></button>`)
        : nothing}
      ${isWhole && canSnooze ? html`<span class="heading">${bare(text.snooze)}</span>` : nothing}
      ${canSnooze
        ? this.times().map(([name, until]) => html`<button @click=${(event: Event) => this.snooze(event, item, until)}>
            <span>${name}</span><time datetime=${until.toISOString()}>${soon(until, language)}</time></button>`)
        : nothing}
      ${canSnooze ? this.renderOwnTime(item) : nothing}
    </span>`;
  }

  private renderOwnTime(item: InboxItem): TemplateResult | typeof nothing {
    const now = this.whole?.serverTime;
    if (!now) return nothing;
    const submit = (event: Event): void => {
      event.preventDefault();
      const given = new Date(new FormData(event.currentTarget as HTMLFormElement).get("until") as string);
      if (!Number.isNaN(given.getTime())) this.snooze(event, item, given);
    };
    // The bounds of the service, with a minute to spare for the way there.
    const [first, last] = [now + 2 * 60_000, now + 90 * 86_400_000 - 60_000].map((at) => inputValue(new Date(at)));
    // The arrows change the time, and don't move through the list.
    const keep = (event: KeyboardEvent): void => void (event.key !== "Escape" && event.stopPropagation());
    return html`<form class="own" @submit=${submit} @keydown=${keep}>
      <label>${this.text.snoozeOwn} <input type="datetime-local" name="until" required min=${first!} max=${last!}></label>
      <button>${this.text.snoozeUntil}</button>
    </form>`;
  }

  private renderChoices(item: InboxItem, subject: string): TemplateResult | typeof nothing {
    const { actions = [], action } = item;
    if (actions.length === 0) return nothing;
    if (action) {
      const chosen = actions.find((one) => one.id === action)?.label ?? action;
      return html`<p class="choices chosen" part="chosen">${icons.check}${chosen}</p>`;
    }
    return html`<div class="choices" part="choices">${actions.map((one) => html`<button class=${one.style}
      aria-label=${`${one.label}: ${subject}`} @click=${() => this.act(item, one)}>${one.label}</button>`)}</div>`;
  }

  private act(item: InboxItem, action: Action): void {
    this.current?.mark({ kind: "act", id: item.id, action: action.id });
    const link = safeLink(action.link);
    if (this.announce("notify-act", { item, action: action.id }, true) && link !== null) location.assign(link);
  }

  private renderUndo(): TemplateResult | typeof nothing {
    if (this.undoable === null) return nothing;
    const { text, undo } = this.undoable;
    const run = (): void => {
      // The list of the inbox has the item, whatever view is shown now.
      this.whole?.mark(undo);
      this.undoable = null;
    };
    return html`<p class="strip" part="undo">${text}<button class="quiet" @click=${run}>${this.text.undo}</button></p>`;
  }

  private choose(view: View): void {
    this.view = view;
    this.choosing = this.undoable = null;
  }

  private get now(): number {
    return this.whole?.serverTime ?? Date.now();
  }

  /** Return the items by day, with its name; those of the snoozed view, in the order in which they come back. */
  private byDay(items: readonly InboxItem[]): [string, InboxItem[]][] {
    if (this.view === "snoozed") return [["", [...items]]];
    const days = new Map<string, InboxItem[]>();
    for (const one of items) {
      const day = dayName(new Date(one.delivered_at), this.now, this.language);
      days.set(day, [...(days.get(day) ?? []), one]);
    }
    return [...days];
  }

  // By the service's clock: the browser's may be wrong.
  private times(): [string, Date][] {
    const now = this.whole?.serverTime;
    if (!now) return [];
    const morning = (days: number): Date => {
      const day = new Date(now);
      day.setDate(day.getDate() + days);
      day.setHours(9, 0, 0, 0);
      return day;
    };
    const { text } = this;
    const untilMonday = (8 - new Date(now).getDay()) % 7 || 7;
    return [
      [text.snoozeHours, new Date(now + 3 * 3_600_000)],
      [text.snoozeTomorrow, morning(1)],
      [text.snoozeWeek, morning(untilMonday)],
    ];
  }

  private snooze(event: Event, item: InboxItem, until: Date): void {
    this.choosing = null;
    const text = fill(this.text.snoozed, { time: moment(until, this.language) });
    this.undoable = { text, undo: { kind: "unsnooze", id: item.id } };
    this.leave(event, () => this.current?.mark({ kind: "snooze", id: item.id, until: until.toISOString() }));
  }

  private closeMenu(event: KeyboardEvent): void {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    const row = (event.currentTarget as HTMLElement).closest("li");
    row?.querySelector<HTMLElement>("[aria-expanded=true]")?.focus();
    this.choosing = null;
  }

  private subject(item: InboxItem): string {
    return item.subject || item.body || this.text.untitled;
  }

  private open(event: Event, item: InboxItem, link: string | null): void {
    if (!item.is_read) this.current?.mark({ kind: "read", id: item.id });
    if (!this.announce("notify-open", item, true) || link === null) event.preventDefault();
  }

  /** Do what takes an item out of the list, and put the focus on the one after it. */
  private leave(event: Event, change: () => void): void {
    const rows = [...this.renderRoot.querySelectorAll("li")];
    const at = rows.indexOf((event.currentTarget as HTMLElement).closest("li")!);
    const neighbour = (rows[at + 1] ?? rows[at - 1])?.querySelector<HTMLElement>(".open");
    change();
    void this.updateComplete.then(() => neighbour?.focus());
  }

  private readonly readAll = (): void => this.current?.mark({ kind: "read-all" });
  private readonly loadMore = (): void => void this.current?.loadMore();
  private readonly reload = (): void => void this.current?.refresh();

  private onKey(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    const rows = [...this.renderRoot.querySelectorAll<HTMLElement>(".open")];
    const focused = (event.target as HTMLElement).closest("li")?.querySelector<HTMLElement>(".open");
    const at = focused ? rows.indexOf(focused) : -1;
    rows[Math.min(rows.length - 1, Math.max(0, at + step))]?.focus();
    event.preventDefault();
  }
}

/** Return an action's label without the subject: `Archive: {subject}` becomes `Archive`. */
function bare(label: string): string {
  return fill(label, { subject: "" }).replace(/: ?$/, "");
}

function hide(event: Event): void {
  (event.target as HTMLElement).hidden = true;
}
