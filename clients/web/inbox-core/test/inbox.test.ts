import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { backOff, EventParser } from "../src/stream.ts";
import { Inbox, normalizedLocale, type View } from "../src/index.ts";
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

const readAllRequests = (): number => service.requests.filter((one) => one.endsWith("/read-all")).length;

test("reading all goes on by itself until it is complete, also after a part that marks nothing", async () => {
  service.deliver();
  const inbox = await start();
  await inbox.open();
  service.readAllParts = 3;
  inbox.mark({ kind: "read-all" });
  expect(inbox.snapshot.counts?.unread).toBe(0);
  await settle(1);
  expect(readAllRequests()).toBe(4);
  expect([service.counts.unread, inbox.snapshot.counts?.unread]).toEqual([0, 0]);
});

test("reading all waits longer after each failure", async () => {
  service.deliver();
  const inbox = await start();
  await inbox.open();
  service.failsReadAll = true;
  inbox.mark({ kind: "read-all" });
  await settle(60);
  // After 1, 2, 4, 8, 16, and 32 seconds.
  expect(readAllRequests()).toBe(6);
  service.failsReadAll = false;
  await settle(60);
  expect([service.counts.unread, inbox.snapshot.counts?.unread]).toEqual([0, 0]);
});

test.each(["close", "other person"])("reading all in parts ends with %s", async (how) => {
  service.deliver();
  const inbox = await start();
  await inbox.open();
  service.isDirect = false;
  service.readAllParts = 3;
  inbox.mark({ kind: "read-all" });
  await settle();
  expect(readAllRequests()).toBe(1);
  service.unserved.shift()?.serve();
  if (how === "close") inbox.close();
  else service.person = "bob";
  if (how === "other person") service.validToken = "revoked";
  service.isDirect = true;
  for (const answer of service.unanswered.splice(0)) answer();
  await settle(2);
  expect(service.readAllParts).toBe(2);
  expect(service.counts.unread).toBe(1);
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

// https://github.com/EventSource/eventsource/issues/326, https://github.com/sergiodxa/remix-utils/pull/343
test.each(["\n", "\r\n", "\r"])("events are parsed with any line end, in chunks of any size: %j", (end) => {
  const lines = ["event: counts", 'data: {"unread":', "data: 1}", "", "event: counts", 'data: {"unread":2}', "", ""];
  const text = lines.join(end).replace(end, "\n");
  for (let size = 1; size <= text.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)));
    events.push(...parser.push(": comment\n"));
    expect(events.map((one) => one.data)).toEqual([{ unread: 1 }, { unread: 2 }]);
  }
});

// https://github.com/FreeFeed/freefeed-react-client/issues/1293
test("a page that slept shows what was read elsewhere as soon as it is shown again", async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  vi.stubGlobal("document", page);
  const item = service.deliver();
  const inbox = await start();
  await inbox.open();
  service.streams.clear();
  await settle(30);
  service.mark(item.id, "read");
  expect(inbox.snapshot.counts?.unread).toBe(1);
  page.dispatchEvent(new Event("visibilitychange"));
  await settle(0.3);
  expect(inbox.snapshot.counts?.unread).toBe(0);
  expect(inbox.snapshot.items[0]?.is_read).toBe(true);
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

test.each<[View, string]>([["unread", "unread=true"], ["snoozed", "snoozed=true"], ["archived", "archived=true"]])(
  "the view of what is %s asks for it, and gets its own list", async (view, query) => {
    const [read, unread, snoozed, archived] = [1, 2, 3, 4].map(() => service.deliver());
    service.mark(read!.id, "read");
    service.mark(snoozed!.id, "snooze");
    service.mark(archived!.id, "archive");
    const inbox = await start();
    const shown = inbox.inView(view);
    await shown.open();
    expect(service.requests).toContain(`GET /api/v1/inbox?limit=30&${query}`);
    expect(shown.snapshot.items.map((one) => one.id)).toEqual([{ unread, snoozed, archived }[view as "unread"]!.id]);
  },
);

test("an archived item is put back from the view of archived ones, and the list has it", async () => {
  const item = service.deliver();
  service.mark(item.id, "archive");
  const inbox = await start();
  const archived = inbox.inView("archived");
  await Promise.all([inbox.open(), archived.open()]);
  archived.mark({ kind: "unarchive", id: item.id });
  await settle(1);
  expect(archived.snapshot.items).toEqual([]);
  expect(inbox.snapshot.items.map((one) => one.id)).toEqual([item.id]);
  expect(streamRequests()).toBe(1);
});

// https://github.com/bwsw/cloudstack-ui/issues/1464, https://github.com/Gisto/Gisto/issues/65
test("nothing of one person is shown or sent after another has signed in on the same page", async () => {
  const item = service.deliver();
  const inbox = await start();
  await Promise.all([inbox.open(), inbox.inView("archived").open()]);
  service.items.clear();
  service.person = "bob";
  const bobs = service.deliver();
  service.validToken = "revoked";
  inbox.mark({ kind: "read-all" });
  inbox.mark({ kind: "archive", id: item.id });
  await settle(2);
  expect(inbox.snapshot.items).toEqual([bobs]);
  expect(inbox.inView("archived").snapshot.items).toEqual([]);
  expect(inbox.snapshot.counts?.unread).toBe(1);
});

// https://github.com/chatwoot/chatwoot/issues/12951, https://github.com/binwiederhier/ntfy/pull/922
test.each([
  ["pt_BR", "pt-BR"], ["pt_BR.UTF-8", "pt-BR"], ["PT", "pt"], ["zh_Hant_TW", "zh-Hant-TW"], ["sr@latin", "sr"],
  ["", "fr"], ["C", "fr"], ["not a language", "fr"],
])("the page's language %s is taken as %s", (written, taken) => {
  expect(normalizedLocale(written, "fr")).toBe(taken);
});
