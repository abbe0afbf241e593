import { normalizedLocale, type GetToken } from "@notifyproject/inbox-core";
import { Push, type PushState } from "./push.ts";
import { wordsFor, type PushWords } from "./words.ts";

const STYLE = `
:host { display: block; font: var(--notify-font, 14px/1.45 system-ui, sans-serif);
  --_accent: var(--notify-accent, light-dark(#4f46e5, #8b8cf8)); --_muted: var(--notify-muted, light-dark(#63636e, #a1a1aa)); }
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
:host([hidden]), [hidden] { display: none; }
button { min-height: 40px; padding: 0 16px; border: 0; border-radius: var(--notify-radius, 10px); cursor: pointer; font: inherit;
  font-weight: 550; background: var(--_accent); color: var(--notify-on-accent, light-dark(#fff, #111113)); }
button[aria-pressed="true"] { background: none; color: inherit; box-shadow: inset 0 0 0 1px var(--notify-line, light-dark(#e8e8ec, #2c2c31)); }
button:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
button:disabled { opacity: 0.6; cursor: default; }
p { margin: 0; max-width: 60ch; color: var(--_muted); }
button:not([hidden]) + p:not(:empty) { margin-block-start: 6px; }
`;

/**
 * Turns push on for this browser, or says what stands in the way: `<notify-push-button token-url="…">`. It asks at a
 * click, and never again after a refusal. It is made without a library, so that it costs a page little.
 */
export class NotifyPushButton extends HTMLElement {
  static readonly observedAttributes = ["token-url", "service", "worker", "locale"];

  /** Texts in place of the built-in ones. */
  words: Partial<PushWords> | undefined;
  /** What the browser is, once it is known. */
  state: PushState | null = null;
  private tokens: GetToken | undefined;
  private push: Push | null = null;
  private isAttaching = false;
  private isBusy = false;
  private hasFailed = false;
  private readonly button = document.createElement("button");
  private readonly text = document.createElement("p");

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    this.button.type = "button";
    this.button.part.add("button");
    this.text.part.add("text");
    this.text.setAttribute("role", "status");
    this.button.addEventListener("click", () => this.toggle());
    root.append(this.button, this.text);
  }

  /** In place of `token-url`. */
  get getToken(): GetToken | undefined {
    return this.tokens;
  }

  set getToken(found: GetToken | undefined) {
    this.tokens = found;
    this.attach();
  }

  connectedCallback(): void {
    this.attach();
  }

  attributeChangedCallback(name: string): void {
    if (name === "locale") this.show();
    else this.attach();
  }

  /** Attach once for all that a page sets at a time: each attachment registers the browser. */
  private attach(): void {
    if (!this.isConnected || this.isAttaching) return;
    this.isAttaching = true;
    queueMicrotask(() => this.attachNow());
  }

  private attachNow(): void {
    this.isAttaching = false;
    if (!this.isConnected) return;
    const tokens = this.tokens ?? this.getAttribute("token-url");
    const [service, worker] = [this.getAttribute("service"), this.getAttribute("worker") ?? "/notify-push.js"];
    this.push = tokens ? new Push({ tokens, service, worker }) : null;
    this.show();
    if (this.push !== null) void this.follow(this.push, this.push.resume());
  }

  private toggle(): void {
    if (this.push !== null) void this.follow(this.push, this.state === "on" ? this.push.turnOff() : this.push.turnOn());
  }

  private async follow(push: Push, work: Promise<PushState>): Promise<void> {
    this.isBusy = true;
    this.hasFailed = false;
    this.show();
    const found = await work.catch(() => null);
    if (push !== this.push) return;
    this.isBusy = false;
    this.hasFailed = found === null;
    const isNew = found !== null && found !== this.state;
    if (found !== null) this.state = found;
    this.show();
    if (isNew) this.dispatchEvent(new CustomEvent("notify-push", { detail: found, bubbles: true, composed: true }));
  }

  private show(): void {
    const language = normalizedLocale(this.getAttribute("locale"), document.documentElement.lang, navigator.language);
    const words = wordsFor(language, this.words);
    const hint = this.state === null ? undefined : words.hints[this.state];
    const isOn = this.state === "on";
    this.button.hidden = this.push === null || hint !== undefined || this.state === "unavailable";
    this.button.disabled = this.isBusy;
    this.button.textContent = isOn ? words.turnOff : words.turnOn;
    this.button.setAttribute("aria-pressed", String(isOn));
    this.text.textContent = hint ?? (this.hasFailed ? words.failed : isOn ? words.isOn : "");
  }
}

if (!customElements.get("notify-push-button")) customElements.define("notify-push-button", NotifyPushButton);
