import { beforeEach, expect, test, vi } from "vitest";

type Handler = (event: unknown) => void;
const handlers = new Map<string, Handler>();
const showNotification = vi.fn(async () => undefined);
const subscribe = vi.fn();
const openWindow = vi.fn(async () => null);
const stored = new Map<string, string>();
let windows: { url: string; focus: () => Promise<void> }[] = [];
const requests: { url: string; method: string; token: string; body: unknown }[] = [];
let answer: () => Promise<Response> = async () => new Response(null, { status: 204 });

vi.stubGlobal("addEventListener", (name: string, handler: Handler) => handlers.set(name, handler));
vi.stubGlobal("registration", { showNotification, scope: "https://app.example.com/", pushManager: { subscribe } });
vi.stubGlobal("clients", { matchAll: async () => windows, openWindow, claim: async () => undefined });
vi.stubGlobal("navigator", { language: "en" });
vi.stubGlobal("skipWaiting", async () => undefined);
vi.stubGlobal("caches", {
  open: async () => ({
    match: async (key: string) => (stored.has(key) ? new Response(stored.get(key)) : undefined),
    put: async (key: string, value: Response) => void stored.set(key, await value.text()),
  }),
});
vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
  const token = (init.headers as Record<string, string>)["Authorization"]!;
  requests.push({ url, method: init.method!, token, body: JSON.parse(init.body as string) });
  return answer();
});
const { readPush } = await import("../src/worker.ts");

const DATA = { notification_id: "a1", receipts: "https://notify.example.com/receipts", receipt_token: "ntfb_1" };
const LINK = "https://app.example.com/orders/1";
const PUSH = { web_push: 8030, notification: { title: "Paid", body: "Now", navigate: LINK, tag: "t", silent: true, data: DATA } };

async function dispatch(name: string, event: Record<string, unknown>): Promise<void> {
  let work: Promise<unknown> = Promise.resolve();
  handlers.get(name)!({ ...event, waitUntil: (promise: Promise<unknown>) => (work = promise) });
  await work;
}

const push = (text: string | null): Promise<void> => dispatch("push", { data: text === null ? null : { text: () => text } });
const click = (data: unknown): Promise<void> => dispatch("notificationclick", { notification: { data, close: vi.fn() } });

beforeEach(() => {
  vi.clearAllMocks();
  stored.clear();
  requests.length = 0;
  windows = [];
  answer = async () => new Response(null, { status: 204 });
});

test("a push is shown and reported", async () => {
  await push(JSON.stringify(PUSH));
  const data = { ...DATA, navigate: LINK };
  expect(showNotification).toHaveBeenCalledWith("Paid", { body: "Now", tag: "t", silent: true, navigate: LINK, data });
  expect(requests).toEqual([
    { url: DATA.receipts, method: "POST", token: "Bearer ntfb_1", body: { notification_id: "a1", event: "delivered" } },
  ]);
});

test.each([null, "", "no JSON", "[]", "{}", '{"notification": {"title": ""}}', '{"notification": {"title": 1}}'])(
  "a push that can't be read (%s) shows something, or Safari ends the subscription",
  async (text) => {
    await push(text);
    expect(showNotification).toHaveBeenCalledWith("New notification", { data: {} });
    expect(requests).toEqual([]);
    expect(readPush(text).title).toBe("New notification");
  },
);

test("a push is shown even if the service can't be reached", async () => {
  answer = async () => Promise.reject(new TypeError("offline"));
  await push(JSON.stringify(PUSH));
  expect(showNotification).toHaveBeenCalledOnce();
});

test("a click opens the page and reports it", async () => {
  await click({ ...DATA, navigate: LINK });
  expect(openWindow).toHaveBeenCalledWith(LINK);
  expect(requests.map((one) => one.body)).toEqual([{ notification_id: "a1", event: "opened" }]);
});

test("a click shows the window that has the page already", async () => {
  const focus = vi.fn(async () => undefined);
  windows = [{ url: "https://app.example.com/", focus: vi.fn() }, { url: LINK, focus }];
  await click({ ...DATA, navigate: LINK });
  expect(focus).toHaveBeenCalledOnce();
  expect(openWindow).not.toHaveBeenCalled();
});

test("a subscription that the browser replaced is registered in its place", async () => {
  stored.set("/notify-push-browser", JSON.stringify({ service: "https://notify.example.com", id: "d1", token: "ntfb_d1", key: "BKey" }));
  answer = async () => new Response('{"id": "d2", "token": "ntfb_d2"}');
  subscribe.mockResolvedValue({ toJSON: () => ({ endpoint: "https://push.example/2", keys: {} }) });
  await dispatch("pushsubscriptionchange", { oldSubscription: null });
  expect(subscribe).toHaveBeenCalledWith({ userVisibleOnly: true, applicationServerKey: "BKey" });
  expect(requests).toEqual([{
    url: "https://notify.example.com/api/v1/devices/d1/subscription", method: "PUT", token: "Bearer ntfb_d1",
    body: { endpoint: "https://push.example/2", keys: {}, application_server_key: "BKey" },
  }]);
  expect(JSON.parse(stored.get("/notify-push-browser")!)).toMatchObject({ id: "d2", token: "ntfb_d2", key: "BKey" });
});

test("a browser that no page registered isn't subscribed", async () => {
  await dispatch("pushsubscriptionchange", {});
  expect(subscribe).not.toHaveBeenCalled();
});
