import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Inbox, type Token } from "../src/index.ts";
import { Service, STREAM_URL } from "./service.ts";

/** Web Locks of one name: a queue whose first request holds the lock. */
class Locks {
  private queue: Promise<unknown> = Promise.resolve();

  request(_name: string, { signal }: { signal: AbortSignal }, hold: () => Promise<void>): Promise<void> {
    const turn = this.queue.then(() => (signal.aborted ? undefined : hold()));
    this.queue = turn.catch(() => undefined);
    return turn;
  }
}

class Channel extends EventTarget {
  static open = new Set<Channel>();
  constructor(readonly name: string) {
    super();
    Channel.open.add(this);
  }
  postMessage(data: unknown): void {
    for (const one of Channel.open) {
      if (one === this || one.name !== this.name) continue;
      queueMicrotask(() => one.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }
  }
  close(): void {
    Channel.open.delete(this);
  }
}

let service: Service;
const opened: Inbox[] = [];
const settle = (seconds = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("BroadcastChannel", Channel);
  vi.stubGlobal("navigator", { locks: new Locks() });
  service = new Service();
  service.isDirect = true;
});
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function tab(): Promise<Inbox> {
  if (service.tokensIssued === 0) await service.getToken();
  const getToken = async (): Promise<Token> => ({
    token: service.validToken, user_id: "ada", stream_url: STREAM_URL,
  });
  const inbox = new Inbox({ fetch: service.fetch, getToken, random: () => 0 });
  opened.push(inbox);
  void inbox.start();
  await settle();
  return inbox;
}

test("one stream serves all tabs, and they agree", async () => {
  const [first, second] = [await tab(), await tab()];
  await Promise.all([first.open(), second.open()]);
  const item = service.deliver();
  service.deliver();
  await settle(1);
  expect(service.streams.size).toBe(1);
  second.mark({ kind: "read", id: item.id });
  await settle(1);
  expect(first.snapshot.items).toEqual(second.snapshot.items);
  expect(first.snapshot.counts).toMatchObject({ unread: 1, unseen: 0 });
  expect(second.snapshot.counts).toEqual(first.snapshot.counts);
});

test("another tab leads when the leader closes", async () => {
  const [first, second] = [await tab(), await tab()];
  first.close();
  await settle(1);
  expect(service.streams.size).toBe(1);
  service.deliver();
  await settle(1);
  expect(second.snapshot.counts?.unread).toBe(1);
});

test("a leader that is hidden hands over, and its page stays current", async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  vi.stubGlobal("document", page);
  const [first, second] = [await tab(), await tab()];
  const streams = service.requests.filter((one) => one.endsWith("/stream")).length;
  page.visibilityState = "hidden";
  page.dispatchEvent(new Event("visibilitychange"));
  await settle(6);
  expect(service.requests.filter((one) => one.endsWith("/stream")).length).toBeGreaterThan(streams);
  service.deliver();
  await settle(1);
  expect([first, second].map((one) => one.snapshot.counts?.unread)).toEqual([1, 1]);
});
