/** The service worker of web push. A page's own file loads it: `importScripts("…/static/push/0.1.0.js")`. */
/// <reference lib="webworker" />
import { BROWSER, CACHE, type KeptBrowser } from "./cache.ts";

/** Safari ends a subscription whose pushes show nothing, or take longer. */
const REPORT_SECONDS = 4;

/** A push as the service sends it: declarative web push, which this worker shows where the browser can't. */
export interface Shown {
  readonly title: string;
  readonly body?: string;
  readonly navigate?: string;
  readonly tag?: string;
  readonly lang?: string;
  readonly image?: string;
  readonly silent?: boolean;
  readonly app_badge?: string;
  readonly data?: PushData;
}

interface PushData {
  readonly notification_id?: string;
  readonly receipts?: string;
  readonly receipt_token?: string;
  readonly navigate?: string;
}

const worker = globalThis as unknown as ServiceWorkerGlobalScope;

/** Return what a push shows. One that can't be read still shows something. */
export function readPush(text: string | null): Shown {
  try {
    const push = JSON.parse(text ?? "") as { notification?: Shown };
    if (typeof push.notification?.title === "string" && push.notification.title !== "") return push.notification;
  } catch {
    // Shown below.
  }
  return { title: /^pt\b/i.test(navigator.language) ? "Nova notificação" : "New notification" };
}

worker.addEventListener("install", (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("push", (event) => {
  const shown = readPush(event.data?.text() ?? null);
  event.waitUntil(show(shown));
});

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const data = (event.notification.data ?? {}) as PushData;
  event.waitUntil(Promise.all([open(data.navigate), report(data, "opened")]));
});

worker.addEventListener("pushsubscriptionchange", (event) => {
  const change = event as ExtendableEvent & { newSubscription?: PushSubscription; oldSubscription?: PushSubscription };
  change.waitUntil(renew(change.newSubscription ?? null, change.oldSubscription ?? null));
});

async function show({ title, navigate, app_badge: badge, data, ...options }: Shown): Promise<void> {
  const kept = { ...data, ...(navigate === undefined ? {} : { navigate }) };
  // Safari shows no notification without a page to open.
  const all = { ...options, ...(navigate === undefined ? {} : { navigate }), data: kept };
  await worker.registration.showNotification(title, all);
  await Promise.all([setBadge(badge), report(kept, "delivered")]);
}

async function setBadge(badge: string | undefined): Promise<void> {
  if (badge !== undefined) await navigator.setAppBadge?.(Number(badge)).catch(() => undefined);
}

async function open(link: string | undefined): Promise<void> {
  const url = link ?? worker.registration.scope;
  const windows = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const shown = windows.find((one) => one.url === url);
  if (shown) await shown.focus();
  else await worker.clients.openWindow(url);
}

/** Tell the service what became of a push. A receipt that is lost is lost. */
async function report(data: PushData, event: "delivered" | "opened"): Promise<void> {
  if (!data.receipts || !data.receipt_token) return;
  const body = { notification_id: data.notification_id, event };
  await send("POST", data.receipts, data.receipt_token, body).catch(() => undefined);
}

async function renew(found: PushSubscription | null, before: PushSubscription | null): Promise<void> {
  const stored = await (await caches.open(CACHE)).match(BROWSER);
  if (stored === undefined) return;
  const browser = (await stored.json()) as KeptBrowser;
  const subscription = found ?? await worker.registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: before?.options.applicationServerKey ?? browser.key,
  });
  const url = `${browser.service}/api/v1/devices/${browser.id}/subscription`;
  const body = { ...subscription.toJSON(), application_server_key: browser.key };
  const answer = await send("PUT", url, browser.token, body);
  if (!answer.ok) return;
  const renewed = { ...browser, ...((await answer.json()) as { id: string; token: string }) };
  await (await caches.open(CACHE)).put(BROWSER, new Response(JSON.stringify(renewed)));
}

function send(method: string, url: string, token: string, body: unknown): Promise<Response> {
  return fetch(url, {
    method,
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    credentials: "omit",
    keepalive: true,
    signal: AbortSignal.timeout(REPORT_SECONDS * 1000),
  });
}
