import type { Action, Inbox, InboxItem } from "@notifyproject/inbox-core";
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { InboxElement } from "./element.ts";
import * as icons from "./icons.ts";
import { safeLink } from "./shared.ts";
import * as styles from "./styles.ts";
import { fill } from "./words.ts";

/** The list of notifications: `<notify-inbox token-url="/me/notify-token" mode="page">`. */
export class NotifyInbox extends InboxElement {
  static override properties = {
    ...InboxElement.properties,
    mode: { reflect: true },
    news: { state: true },
    choosing: { state: true },
    snoozed: { state: true },
  };
  static override styles = [styles.base, styles.inbox];

  /** `popover`, `panel` (fills its container), or `page`. */
  declare mode: string;
  declare news: string;
  /** The item whose menu of snooze times is open. */
  declare choosing: string | null;
  /** The item that was snoozed last, and until when. */
  declare snoozed: { id: string; until: Date } | null;
  private isViewing = false;

  constructor() {
    super();
    this.mode = "page";
    this.news = "";
    this.choosing = null;
    this.snoozed = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("visibilitychange", this.onVisibility);
  }

  override disconnectedCallback(): void {
    document.removeEventListener("visibilitychange", this.onVisibility);
    super.disconnectedCallback();
  }

  protected override attached(inbox: Inbox): void {
    this.view(inbox);
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
    if (this.current !== null) this.view(this.current);
  };

  private view(inbox: Inbox): void {
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
      ${snapshot?.connection === "offline" && snapshot.isLoaded
        ? html`<p class="strip" part="offline" role="status">${text.offline}</p>`
        : nothing}
      <div class="scroll" part="list">${this.renderContent()}</div>
      <div role="status">${this.renderSnoozed()}</div>
      <div class="only-spoken" role="status">${this.news}</div>
    </div>`;
  }

  private renderContent(): TemplateResult {
    const { text, snapshot } = this;
    const items = snapshot?.items ?? [];
    if (items.length > 0 && snapshot?.isLoaded) {
      return html`<ul role="list">${repeat(items, (one) => one.id, (one) => this.renderItem(one))}</ul>
        ${snapshot.hasMore
          ? html`<button class="quiet more" part="more" @click=${this.loadMore}>${text.loadMore}</button>`
          : nothing}`;
    }
    if (snapshot?.isLoaded) {
      return html`<div class="state" part="empty">${icons.largeBell}<strong>${text.empty}</strong>${text.emptyHint}</div>`;
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
    const toggle = item.is_read ? text.markUnread : text.markRead;
    const content = html`<span class="dot"></span>
      ${image ? html`<img src=${image} alt="" loading="lazy" @error=${hide} />` : nothing}
      <span class="words">
        <span class="line">
          <span class="subject" part="subject" dir="auto">${subject}</span>
          <time part="time" datetime=${item.delivered_at}>${this.time(item)}</time>
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
      <span class="actions">
        <button aria-label=${fill(toggle, { subject })} title=${fill(toggle, { subject: "" }).replace(/: $/, "")}
          @click=${() => this.current?.mark({ kind: item.is_read ? "unread" : "read", id: item.id })}>
          ${item.is_read ? icons.dot : icons.check}</button>
        ${this.renderSnooze(item, subject)}
        <button aria-label=${fill(text.archive, { subject })} title=${fill(text.archive, { subject: "" }).replace(/: $/, "")}
          @click=${(event: Event) => this.leave(event, () => this.current?.mark({ kind: "archive", id: item.id }))}>
          ${icons.box}</button>
      </span>
    </li>`;
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

  private renderSnooze(item: InboxItem, subject: string): TemplateResult {
    const { text } = this;
    const isOpen = this.choosing === item.id;
    const toggle = (): void => void (this.choosing = isOpen ? null : item.id);
    return html`<button aria-label=${fill(text.snooze, { subject })} aria-expanded=${isOpen}
        title=${fill(text.snooze, { subject: "" }).replace(/: $/, "")} @click=${toggle}>${icons.clock}</button>
      ${isOpen
        ? html`<span class="times" part="times" @keydown=${(event: KeyboardEvent) => this.closeTimes(event)}>
            ${this.times().map(([name, until]) =>
              html`<button @click=${(event: Event) => this.snooze(event, item, until)}>
                <span>${name}</span><time datetime=${until.toISOString()}>${this.clock(until, {})}</time></button>`)}
          </span>`
        : nothing}`;
  }

  private renderSnoozed(): TemplateResult | typeof nothing {
    if (this.snoozed === null) return nothing;
    const { id, until } = this.snoozed;
    const undo = (): void => {
      this.current?.mark({ kind: "unsnooze", id });
      this.snoozed = null;
    };
    return html`<p class="strip" part="snoozed">${fill(this.text.snoozed, { time: this.clock(until) })}
      <button class="quiet" @click=${undo}>${this.text.undo}</button></p>`;
  }

  // By the service's clock: the browser's may be wrong.
  private times(): [string, Date][] {
    const now = this.current?.serverTime;
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
    this.snoozed = { id: item.id, until };
    this.leave(event, () => this.current?.mark({ kind: "snooze", id: item.id, until: until.toISOString() }));
  }

  private closeTimes(event: KeyboardEvent): void {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    const row = (event.currentTarget as HTMLElement).closest("li");
    this.choosing = null;
    row?.querySelector<HTMLElement>("[aria-expanded]")?.focus();
  }

  private clock(at: Date, date: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" }): string {
    const format = { weekday: "short", hour: "2-digit", minute: "2-digit", ...date } as const;
    return new Intl.DateTimeFormat(this.language, format).format(at);
  }

  private subject(item: InboxItem): string {
    return item.subject || item.body || this.text.untitled;
  }

  // The time itself, not how long ago: the browser's clock may be wrong.
  private time(item: InboxItem): string {
    const format = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } as const;
    return new Intl.DateTimeFormat(this.language, format).format(new Date(item.delivered_at));
  }

  private open(event: Event, item: InboxItem, link: string | null): void {
    if (!item.is_read) this.current?.mark({ kind: "read", id: item.id });
    if (!this.announce("notify-open", item, true) || link === null) event.preventDefault();
  }

  /** Do what takes an item out of the list, and put the focus on the one after it. */
  private leave(event: Event, change: () => void): void {
    const row = (event.currentTarget as HTMLElement).closest("li");
    const next = row?.nextElementSibling ?? row?.previousElementSibling;
    const neighbour = next?.querySelector<HTMLElement>(".open");
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

function hide(event: Event): void {
  (event.target as HTMLElement).hidden = true;
}
