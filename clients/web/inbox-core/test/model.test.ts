import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Inbox, type MarkKind, type Operation, type View } from "../src/index.ts";
import { Service } from "./service.ts";

type Kind = MarkKind | "snooze" | "act";
const KINDS: Kind[] = ["read", "unread", "archive", "unarchive", "snooze", "unsnooze", "act"];
const UNTIL = "2026-02-01T00:00:00Z";
const VIEWS: View[] = ["inbox", "unread", "snoozed", "archived"];
const position = fc.nat(9);

type Step =
  | { do: "deliver" | "other-reads-all" | "read-all" | "drop" | "expire" }
  | { do: "mark" | "other"; at: number; kind: Kind }
  | { do: "resurface"; at: number }
  | { do: "serve" | "answer" | "lose"; at: number }
  | { do: "wait"; seconds: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom("deliver" as const, "other-reads-all" as const, "read-all" as const, "drop" as const,
      "expire" as const),
  }),
  fc.record({
    do: fc.constantFrom("mark" as const, "other" as const), at: position, kind: fc.constantFrom(...KINDS),
  }),
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("serve" as const, "answer" as const), at: position }) },
  fc.record({ do: fc.constantFrom("lose" as const, "resurface" as const), at: position }),
  fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(0, 0.3, 5, 70) }),
);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const settle = (seconds = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

function take<T>(list: T[], at: number): T | undefined {
  return list.splice(at % Math.max(1, list.length), 1)[0];
}

/** Whether items are read, by the last operation of this page on them, as long as no other follows. */
type Mine = Map<string, boolean>;

function remember(mine: Mine, service: Service, inbox: Inbox, one: Step, id: string | undefined): void {
  const ids = [...service.items.keys()];
  if (one.do === "other-reads-all") mine.clear();
  else if (one.do === "other" || one.do === "resurface") mine.delete(ids[one.at % ids.length] ?? "");
  else if (one.do === "read-all") for (const item of inbox.snapshot.items) mine.set(item.id, true);
  else if (one.do === "mark" && id !== undefined && /read|act/.test(one.kind)) mine.set(id, one.kind !== "unread");
  // It may come back as unread at any time.
  else if (one.do === "mark" && id !== undefined && one.kind === "snooze") mine.delete(id);
}

function operation(kind: Kind, id: string): Operation {
  if (kind === "snooze") return { kind, id, until: UNTIL };
  return kind === "act" ? { kind, id, action: "approve" } : { kind, id };
}

/** The view to which an operation moves an item, out of every other. */
const MOVED_TO: { [kind in Kind]?: View } = { archive: "archived", snooze: "snoozed" };

async function run(service: Service, inbox: Inbox, view: View, mine: Mine, one: Step): Promise<void> {
  const ids = [...service.items.keys()];
  const shownItems = inbox.snapshot.items;
  const target = one.do === "mark" ? shownItems[one.at % Math.max(1, shownItems.length)] : undefined;
  remember(mine, service, inbox, one, target?.id);
  switch (one.do) {
    case "deliver": service.deliver(); break;
    case "other-reads-all": service.readAll(); break;
    case "read-all": inbox.mark({ kind: "read-all" }); break;
    case "drop": service.drop(); break;
    case "expire": service.validToken = "none"; break;
    case "other": service.mark(ids[one.at % ids.length] ?? "", one.kind === "act" ? "actions" : one.kind); break;
    case "resurface": service.resurface(ids[one.at % ids.length] ?? ""); break;
    case "serve": take(service.unserved, one.at)?.serve(); break;
    case "answer": take(service.unanswered, one.at)?.(); break;
    case "lose": take(service.unserved, one.at)?.lose(); break;
    case "wait": await settle(one.seconds); break;
    case "mark": {
      if (target === undefined) break;
      inbox.mark(operation(one.kind, target.id));
      const movedTo = MOVED_TO[one.kind];
      if (movedTo) expect(inbox.snapshot.items.some((shown) => shown.id === target.id)).toBe(movedTo === view);
    }
  }
  await settle();
  // What the person did never flickers back, however late or lost its answer is.
  for (const item of inbox.snapshot.items) expect(item.is_read).toBe(mine.get(item.id) ?? item.is_read);
}

let people = 0;

test("after any order of answers, events, losses, and reconnects the page shows what the service has", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(3), fc.constantFrom(...VIEWS), async (steps, before, view) => {
      const service = new Service();
      // What the tabs of an earlier run said may arrive late: it isn't for the tabs of another person.
      service.person = `ada-${(people += 1)}`;
      for (let n = 0; n < before; n += 1) service.deliver();
      const whole = new Inbox({ fetch: service.fetch, getToken: service.getToken, random: () => 0.5 });
      void whole.start();
      await settle();
      const inbox = whole.inView(view);
      void whole.open();
      if (view !== "inbox") void inbox.open();
      const mine: Mine = new Map();
      for (const one of steps) await run(service, inbox, view, mine, one);
      service.isDirect = true;
      while (service.unserved.length > 0) service.unserved.shift()!.serve();
      while (service.unanswered.length > 0) service.unanswered.shift()!();
      await settle(700);
      const [shown, all] = [inbox.snapshot, whole.snapshot];
      whole.close();
      expect(shown.items).toEqual(service.listOf(view));
      expect(shown.counts).toEqual(service.counts);
      expect(all.items).toEqual(service.list);
      expect(all.counts).toEqual(service.counts);
    }),
    { numRuns: 120 },
  );
}, 60_000);
