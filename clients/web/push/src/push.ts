import { Api, tokenFrom, Tokens, type GetToken } from "@notifyproject/inbox-core";
import { BROWSER, CACHE, type KeptBrowser } from "./cache.ts";

/** Pushes reach web apps on an iPhone's Home Screen from this version on. */
const FIRST_IOS = 16.4;

/**
 * Whether this browser gets pushes, or what stands in the way:
 * `install`: an iPhone, whose user adds the page to the Home Screen first; `update`: one with an older system;
 * `blocked`: the user, or a private window, refuses; `unsupported`: a browser without push, or a page without
 * HTTPS; `unavailable`: the service has no keys for web push.
 */
export type PushState = "on" | "off" | "install" | "update" | "blocked" | "unsupported" | "unavailable";

export interface PushOptions {
  /** The app's URL that answers with `POST /inbox/tokens`, or a function that returns its response. */
  readonly tokens: string | GetToken;
  /** The service's origin; without it, that of the stream. */
  readonly service: string | null;
  /** The page's own file that loads the service worker. */
  readonly worker: string;
}

/** Return what stands in the way of push, or null. Asks for nothing. */
export function obstacle(window: Window & typeof globalThis): PushState | null {
  const { navigator } = window;
  const apple = appleVersion(navigator);
  const isApp = (navigator as { standalone?: boolean }).standalone === true;
  if (apple !== null && !isApp) return apple < FIRST_IOS ? "update" : "install";
  const isAble = window.isSecureContext && "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
  if (!isAble) return "unsupported";
  return window.Notification.permission === "denied" ? "blocked" : null;
}

/** Return the version of an iPhone's or iPad's system, null for other devices. An iPad says that it is a Mac. */
function appleVersion(navigator: Navigator): number | null {
  const { userAgent, maxTouchPoints } = navigator;
  const isPad = /Macintosh/.test(userAgent) && maxTouchPoints > 1;
  if (!isPad && !/iP(hone|ad|od)/.test(userAgent)) return null;
  const found = /(?:OS |Version\/)(\d+)[._](\d+)/.exec(userAgent);
  return found ? Number(`${found[1]}.${found[2]}`) : FIRST_IOS;
}

/** Return a browser's name for staff, such as `Firefox on Linux`. */
export function browserName(userAgent: string): string {
  const browsers = { Edge: /Edg/, Opera: /OPR/, Samsung: /SamsungBrowser/, Firefox: /Firefox|FxiOS/, Chrome: /Chrome|CriOS/, Safari: /Safari/ };
  const systems = { Android: /Android/, iPhone: /iPhone/, iPad: /iPad/, Windows: /Windows/, macOS: /Macintosh/, Linux: /Linux|X11/ };
  const first = (all: Record<string, RegExp>): string => Object.keys(all).find((one) => all[one]!.test(userAgent)) ?? "";
  return [first(browsers) || "Browser", first(systems)].filter(Boolean).join(" on ");
}

/** One browser's subscription to web push, for the person who is signed in. */
export class Push {
  private readonly api: Api;
  private readonly tokens: Tokens;

  constructor(private readonly options: PushOptions, private readonly fetcher: typeof fetch = fetch) {
    const { tokens, service } = options;
    this.tokens = new Tokens(typeof tokens === "string" ? tokenFrom(tokens, fetcher) : tokens);
    this.api = new Api(this.tokens, service, fetcher);
  }

  /**
   * Return the state, and register the browser again if it is on: its subscription may be new, or its user, or
   * the service's key. Never asks the person.
   */
  async resume(): Promise<PushState> {
    const found = obstacle(window);
    if (found !== null) return found;
    const subscription = await this.subscription();
    if (subscription === null || Notification.permission !== "granted") return "off";
    return this.subscribe(subscription);
  }

  /** Ask the person, and subscribe the browser. Call it from a click: iPhones ask for nothing otherwise. */
  async turnOn(): Promise<PushState> {
    const found = obstacle(window);
    if (found !== null) return found;
    // Before anything else is awaited, since a click counts for a moment only.
    if ((await Notification.requestPermission()) !== "granted") return obstacle(window) ?? "off";
    return this.subscribe(await this.subscription());
  }

  async turnOff(): Promise<PushState> {
    const subscription = await this.subscription();
    if (subscription === null) return "off";
    const id = await deviceId(subscription.endpoint);
    await subscription.unsubscribe();
    await (await caches.open(CACHE)).delete(BROWSER);
    await this.api.removeBrowser(id);
    return "off";
  }

  private async subscription(): Promise<PushSubscription | null> {
    const registration = await navigator.serviceWorker.getRegistration(this.options.worker);
    return (await registration?.pushManager.getSubscription()) ?? null;
  }

  private async subscribe(found: PushSubscription | null): Promise<PushState> {
    // Asked each time: a key that a page remembers is that of yesterday.
    const { application_server_key: key } = await this.api.push();
    if (!key) return "unavailable";
    const isCurrent = found !== null && isSameKey(found.options.applicationServerKey, key);
    const replaces = found === null || isCurrent ? undefined : await deviceId(found.endpoint);
    if (found !== null && !isCurrent) await found.unsubscribe();
    const registration = await ready(await navigator.serviceWorker.register(workerUrl(this.options.worker)));
    let subscription: PushSubscription;
    try {
      subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    } catch (error) {
      // As in a private window.
      if (error instanceof DOMException && error.name === "NotAllowedError") return "blocked";
      throw error;
    }
    const { locale, timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const browser = await this.api.registerBrowser({
      subscription: { ...subscription.toJSON(), application_server_key: key },
      ...(replaces === undefined ? {} : { replaces }),
      device_model: browserName(navigator.userAgent),
      language: locale,
      timezone: timeZone,
    });
    await this.keep(browser, key);
    return "on";
  }

  /** Keep what the service worker needs, should the browser replace the subscription. */
  private async keep(browser: Pick<KeptBrowser, "id" | "token">, key: string): Promise<void> {
    const service = this.options.service ?? new URL((await this.tokens.get()).stream_url).origin;
    const kept: KeptBrowser = { ...browser, service, key };
    await (await caches.open(CACHE)).put(BROWSER, new Response(JSON.stringify(kept)));
  }
}

interface Policy {
  createScriptURL(url: string): string;
}

let policy: Policy | null = null;

/** Return the URL of the page's worker as a page with trusted types takes it: only of its own origin. */
function workerUrl(url: string): string {
  const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }).trustedTypes;
  policy ??= factory?.createPolicy("notify-push", { createScriptURL: ownUrl }) ?? { createScriptURL: ownUrl };
  return policy.createScriptURL(url);
}

function ownUrl(url: string): string {
  const found = new URL(url, location.href);
  if (found.origin !== location.origin) throw new TypeError(`The worker ${url} is of another origin.`);
  return found.href;
}

/** Wait until a worker is active: a browser subscribes none that is still installing. */
async function ready(registration: ServiceWorkerRegistration): Promise<ServiceWorkerRegistration> {
  const worker = registration.installing ?? registration.waiting;
  if (registration.active !== null || worker === null) return registration;
  await new Promise<void>((resolve) => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated" || worker.state === "redundant") resolve();
    });
  });
  return registration;
}

async function deviceId(endpoint: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether a subscription's key is the one in base64url. */
export function isSameKey(own: ArrayBuffer | null, text: string): boolean {
  if (own === null) return false;
  const encoded = btoa(String.fromCharCode(...new Uint8Array(own)));
  return encoded.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "") === text.replace(/=+$/, "");
}
