import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { backOff, EventParser } from "../src/stream.ts";
import { Inbox } from "../src/index.ts";
import { Service } from "./service.ts";

let service: Service;
const opened: Inbox[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  service = new Service();
  service.isDirect = true;
});
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const settle = (seconds = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

async function start(): Promise<Inbox> {
  const inbox = new Inbox({ fetch: service.fetch, getToken: service.getToken, random: () => 0 });
  opened.push(inbox);
  void inbox.start();
  await settle();
  return inbox;
}

const streamRequests = (): number => service.requests.filter((one) => one.endsWith("/stream")).length;

test("the module loads without a window", () => {
  expect(globalThis.window).toBeUndefined();
});

test("a page that doesn't show the list marks nothing as seen", async () => {
  service.deliver();
  const inbox = await start();
  await settle(5);
  expect(inbox.snapshot.counts).toMatchObject({ unread: 1, unseen: 1 });
  expect(service.requests).not.toContain("GET /api/v1/inbox?limit=30");
});

test("a notification arrives once, although the stream repeats it", async () => {
  const inbox = await start();
  const received: string[] = [];
  inbox.onReceived((one) => received.push(one.id));
  const item = service.deliver();
  service.emit("notification", item, item.id);
  await settle();
  expect(received).toEqual([item.id]);
});

test.each([["first", true], ["last", false]])(
  "more stays loaded although the list is read again, which begins %s", async (_, isFirst) => {
    for (let n = 0; n < 70; n += 1) service.deliver();
    const inbox = await start();
    await inbox.open();
    const both = isFirst ? [inbox.refresh(), inbox.loadMore()] : [inbox.loadMore(), inbox.refresh()];
    await Promise.all(both);
    expect(inbox.snapshot.items.length).toBe(60);
    await inbox.loadMore();
    expect(inbox.snapshot).toMatchObject({ hasMore: false, isLoading: false });
  },
);

test("a token that expires between two pages isn't seen", async () => {
  for (let n = 0; n < 70; n += 1) service.deliver();
  const inbox = await start();
  await inbox.open();
  service.validToken = "revoked";
  await inbox.loadMore();
  expect(inbox.snapshot).toMatchObject({ problem: null, hasMore: true });
  expect(inbox.snapshot.items).toHaveLength(60);
  expect(service.tokensIssued).toBe(2);
});

test("requests that a token fails at the same time ask for one token", async () => {
  for (let n = 0; n < 3; n += 1) service.deliver();
  const inbox = await start();
  await inbox.open();
  service.validToken = "revoked";
  inbox.mark({ kind: "read-all" });
  await Promise.all([inbox.refresh(), settle()]);
  expect(service.tokensIssued).toBe(2);
  expect(inbox.snapshot.counts?.unread).toBe(0);
});

test("an operation that the service refuses is undone", async () => {
  const item = service.deliver();
  const inbox = await start();
  await inbox.open();
  service.items.delete(item.id);
  const problems: number[] = [];
  inbox.onProblem((one) => problems.push(one.status));
  inbox.mark({ kind: "archive", id: item.id });
  expect(inbox.snapshot.items).toEqual([]);
  service.items.set("other", { ...item, id: "other" });
  await settle(1);
  expect(problems).toEqual([404]);
  expect(inbox.snapshot.counts?.unread).toBe(1);
});

test("the 11th stream waits as long as the service says, and counts are polled", async () => {
  service.refusesStreams = { status: 429, retryAfter: 30 };
  const inbox = await start();
  expect(inbox.snapshot).toMatchObject({ connection: "polling", problem: null });
  await settle(29);
  expect(streamRequests()).toBe(1);
  service.deliver();
  await settle(32);
  expect(streamRequests()).toBeGreaterThan(1);
  expect(inbox.snapshot.counts?.unread).toBe(1);
});

test("the back-off grows to ten minutes, with jitter", () => {
  expect([0, 1, 5, 50].map((n) => backOff(n, 1))).toEqual([1, 2, 32, 600]);
  expect(backOff(50, 0)).toBe(300);
});

test("only a stream that lived 30 seconds starts the back-off again", async () => {
  await start();
  for (let n = 0; n < 6; n += 1) {
    service.drop();
    await settle(2 ** n + 1);
  }
  service.drop();
  const before = streamRequests();
  await settle(60);
  expect(streamRequests()).toBe(before);
  await settle(10);
  expect(streamRequests()).toBe(before + 1);
  await settle(31);
  service.drop();
  await settle(1);
  expect(streamRequests()).toBe(before + 2);
});

test("the browser's `online` event reconnects at once", async () => {
  const page = new EventTarget();
  vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
  vi.stubGlobal("removeEventListener", page.removeEventListener.bind(page));
  service.refusesStreams = { status: 503, retryAfter: 300 };
  await start();
  page.dispatchEvent(new Event("online"));
  await settle();
  expect(streamRequests()).toBe(2);
});

test("events are parsed across chunks, and what isn't JSON is skipped", () => {
  const parser = new EventParser();
  const text = ': hi\n\nid: 1\nevent: counts\ndata: {"unread":1}\n\nevent: x\ndata: {\n\n';
  const events = [...text].flatMap((one) => parser.push(one));
  expect(events).toEqual([{ name: "counts", data: { unread: 1 }, id: "1" }]);
});

test("a list that the service read before an operation doesn't undo it", async () => {
  const item = service.deliver();
  const inbox = await start();
  await inbox.open();
  service.isDirect = false;
  void inbox.refresh();
  await settle();
  service.unserved.shift()!.serve();
  inbox.mark({ kind: "read", id: item.id });
  await settle();
  service.unserved.shift()!.serve();
  service.unanswered.pop()!();
  await settle();
  service.unanswered.shift()!();
  await settle();
  expect(inbox.snapshot.items[0]?.is_read).toBe(true);
});
