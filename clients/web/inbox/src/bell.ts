import { html, nothing, type TemplateResult } from "lit";
import { InboxElement } from "./element.ts";
import * as icons from "./icons.ts";
import * as styles from "./styles.ts";
import { follow } from "./placing.ts";
import { fill } from "./words.ts";

/** A bell with the number of unseen notifications: `<notify-bell token-url="/me/notify-token">`. */
export class NotifyBell extends InboxElement {
  static override properties = { ...InboxElement.properties, isOpen: { state: true } };
  static override styles = [styles.base, styles.bell];

  declare isOpen: boolean;
  private stopFollowing: () => void = () => undefined;

  constructor() {
    super();
    this.isOpen = false;
  }

  override disconnectedCallback(): void {
    this.toggle(false);
    super.disconnectedCallback();
  }

  protected override render(): TemplateResult {
    const { text } = this;
    const unseen = this.snapshot?.counts?.unseen ?? 0;
    const label = unseen > 0 ? fill(text.bellWithCount, { n: String(unseen) }) : text.bell;
    return html`<button class="bell" part="bell" aria-label=${label} aria-haspopup="dialog"
        aria-expanded=${this.isOpen} @click=${() => this.toggle(!this.isOpen)}>
        ${icons.bell}
        ${unseen > 0 ? html`<span class="badge" part="badge">${unseen > 99 ? "99+" : unseen}</span>` : nothing}
      </button>
      ${this.isOpen && this.current !== null
        ? html`<notify-inbox mode="popover" popover="manual" role="dialog" aria-label=${text.title} tabindex="-1" part="popover"
            exportparts="frame, header, views, list, day, item, subject, body, time, count, read-all, more"
            .inbox=${this.whole} .words=${this.words} .locale=${this.language}
            .theme=${this.theme}></notify-inbox>`
        : nothing}`;
  }

  private toggle(isOpen: boolean): void {
    if (isOpen === this.isOpen) return;
    this.isOpen = isOpen;
    const change = isOpen ? "addEventListener" : "removeEventListener";
    document[change]("pointerdown", this.onPointer as EventListener);
    document[change]("keydown", this.onKey as EventListener);
    this.stopFollowing();
    this.stopFollowing = () => undefined;
    if (isOpen) void this.updateComplete.then(() => this.show());
  }

  private show(): void {
    const panel = this.renderRoot.querySelector<HTMLElement>("notify-inbox");
    const button = this.renderRoot.querySelector<HTMLElement>(".bell");
    if (panel === null || button === null) return;
    this.stopFollowing = follow(panel, button);
    panel.focus();
  }

  private readonly onPointer = (event: PointerEvent): void => {
    if (!event.composedPath().includes(this)) this.toggle(false);
  };

  private readonly onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    this.toggle(false);
    this.renderRoot.querySelector<HTMLElement>(".bell")?.focus();
  };
}
