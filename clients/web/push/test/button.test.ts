import { expect, test, vi } from "vitest";

const made = vi.hoisted((): unknown[] => []);
vi.mock("../src/push.ts", () => ({
  Push: class {
    constructor(options: unknown) {
      made.push(options);
    }
    resume = () => Promise.resolve("off");
  },
}));

/** As much of an element as the button needs, where there is no browser. */
class Element {
  isConnected = true;
  readonly attributes = new Map<string, string>();
  readonly part = { add: () => undefined };
  attachShadow = () => ({ append: () => undefined });
  addEventListener = () => undefined;
  dispatchEvent = () => true;
  getAttribute = (name: string) => this.attributes.get(name) ?? null;
  setAttribute = (name: string, value: string) => void this.attributes.set(name, value);
}

vi.stubGlobal("HTMLElement", Element);
vi.stubGlobal("CSSStyleSheet", class { replaceSync = () => undefined; });
vi.stubGlobal("customElements", { get: () => undefined, define: () => undefined });
vi.stubGlobal("document", { createElement: () => new Element(), documentElement: { lang: "en" } });
vi.stubGlobal("navigator", { language: "en" });
const { NotifyPushButton } = await import("../src/button.ts");

/** Set attributes as a page's HTML does, and as a script does later. */
function set(button: InstanceType<typeof NotifyPushButton>, attributes: Record<string, string>): void {
  for (const [name, value] of Object.entries(attributes)) {
    button.setAttribute(name, value);
    button.attributeChangedCallback(name);
  }
}

test("a page's attributes register the browser once", async () => {
  const button = new NotifyPushButton();
  set(button, { "token-url": "/tokens", service: "https://notify.example.com", worker: "/push.js", locale: "pt" });
  button.connectedCallback();
  await Promise.resolve();
  expect(made).toEqual([{ tokens: "/tokens", service: "https://notify.example.com", worker: "/push.js" }]);
  set(button, { locale: "en" });
  await Promise.resolve();
  expect(made).toHaveLength(1);
  set(button, { worker: "/other.js" });
  await Promise.resolve();
  expect(made).toHaveLength(2);
});
