import { ApiError, type Api } from "./api.ts";

/** An event of `GET /inbox/stream`. */
export interface StreamEvent {
  readonly name: string;
  readonly data: unknown;
  readonly id: string | null;
}

/** Delays in seconds. */
export const DELAYS = {
  first: 1,
  longest: 600,
  /** A stream that lived this long starts the back-off from the beginning. */
  stable: 30,
  /** The service sends a comment every 15 seconds. */
  silence: 45,
} as const;

/** Return the seconds before the attempt after `failures` failures: at random in the upper half. */
export function backOff(failures: number, random: number): number {
  const whole = Math.min(DELAYS.longest, DELAYS.first * 2 ** Math.min(failures, 20));
  return whole / 2 + (whole / 2) * random;
}

/**
 * Splits the text of server-sent events into events. Comments and `retry` are skipped. A proxy may end lines
 * by CR, LF, or both, in any mixture, and chunks end anywhere.
 */
export class EventParser {
  private rest = "";

  push(text: string): StreamEvent[] {
    const whole = this.rest + text;
    // The line feed of a last carriage return may be in the next chunk.
    const end = whole.endsWith("\r") ? whole.length - 1 : whole.length;
    const blocks = whole.slice(0, end).replace(/\r\n?/g, "\n").split("\n\n");
    this.rest = (blocks.pop() ?? "") + whole.slice(end);
    return blocks.flatMap((block) => parse(block));
  }
}

function parse(block: string): StreamEvent[] {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const [, name, value] = /^([a-z]+):? ?(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    const before = name === "data" ? fields.get(name) : undefined;
    fields.set(name, before === undefined ? value : `${before}\n${value}`);
  }
  const name = fields.get("event");
  if (name === undefined) return [];
  try {
    const data: unknown = JSON.parse(fields.get("data") ?? "null");
    return [{ name, data, id: fields.get("id") ?? null }];
  } catch {
    return [];
  }
}

export interface StreamHandlers {
  lastEventId(): string | null;
  onLive(isLive: boolean): void;
  onEvent(event: StreamEvent): void;
}

/** Follows the stream until `signal` aborts: reconnects with back-off, and at once on `online`. */
export async function follow(
  api: Api,
  handlers: StreamHandlers,
  signal: AbortSignal,
  random: () => number,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let wait: number | null = null;
    const opened = performance.now();
    try {
      const reason = await read(api, handlers, signal);
      if (reason === "token_expired") wait = 0;
    } catch (error) {
      if (error instanceof ApiError) wait = error.retryAfter;
    }
    handlers.onLive(false);
    const life = (performance.now() - opened) / 1000;
    failures = life >= DELAYS.stable ? 0 : failures + 1;
    const planned = backOff(failures, random());
    await pause(wait === 0 && life > 1 ? 0 : Math.max(planned, wait ?? 0), signal);
  }
}

/** Read one stream to its end. Return the reason of its `end` event, if there was one. */
async function read(
  api: Api,
  handlers: StreamHandlers,
  signal: AbortSignal,
): Promise<string | null> {
  const attempt = new AbortController();
  const abort = (): void => attempt.abort();
  signal.addEventListener("abort", abort, { once: true });
  let watchdog = setTimeout(abort, DELAYS.silence * 1000);
  try {
    const answer = await api.stream(handlers.lastEventId(), attempt.signal);
    const reader = answer.body!.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return null;
      clearTimeout(watchdog);
      watchdog = setTimeout(abort, DELAYS.silence * 1000);
      handlers.onLive(true);
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (event.name === "end") return (event.data as { reason?: string } | null)?.reason ?? null;
        handlers.onEvent(event);
      }
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", abort);
    attempt.abort();
  }
}

/** Wait, but not after `signal` aborts or the browser is online again. */
export function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      globalThis.removeEventListener?.("online", done);
      resolve();
    };
    const timer = setTimeout(done, seconds * 1000);
    signal.addEventListener("abort", done, { once: true });
    globalThis.addEventListener?.("online", done, { once: true });
    if (signal.aborted) done();
  });
}
