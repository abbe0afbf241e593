// The client passes the cases that every client of the service has to pass.
import { readdirSync, readFileSync } from "node:fs";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
	InvalidCallbackError,
	Notifier,
	NotificationError,
	NotificationRejectedError,
	ServiceUnavailableError,
	verifyCallback,
	type CallOptions,
	type Listing,
	type NotifierOptions,
	type RetryPolicy,
} from "../src/index.js";
import { playing, type Answer, type Received, type Step } from "./scripted.js";

interface Call {
	method: string;
	type: string;
	key: string;
	fields: Record<string, never>;
	request: { type: string };
	requests: { item: { type: string }; times: number };
	audience: object;
	user_id: string;
	operation: Listing;
	arguments: object;
	body?: object;
	idempotency_key?: string;
}

interface Case {
	name: string;
	notifier?: { url?: string; path?: string; key?: string | null };
	retry?: Record<string, number>;
	timeout_seconds?: number;
	call?: Call;
	calls?: Call[];
	cancel?: "attempt" | "wait";
	exchange: (Omit<Step, "answer"> & { answer: string | (Answer & { as?: string }) })[];
	keys?: (string | null)[];
	waits?: (number | [number, number])[];
	result?: unknown;
	error?: { kind: string; pointers?: string[]; text?: string; [field: string]: unknown };
}

interface CallbackCase {
	name: string;
	headers: Record<string, string>;
	body: string;
	secrets: string[];
	now: number;
	event?: object;
	error?: "invalid" | "mistake";
}

interface File {
	about: string;
	answers?: Record<string, Answer & { as?: string }>;
	cases: Case[];
}

const KEY = "ntf_abc_secret";
/** What no error may contain. */
const SECRETS = [KEY, "123456", "ada@example.com"];
const KINDS: Record<string, typeof NotificationError> = {
	rejected: NotificationRejectedError,
	unavailable: ServiceUnavailableError,
};
const POLICY: Record<string, keyof RetryPolicy> = { max_attempts: "maxAttempts", max_seconds: "maxSeconds" };
const FIELDS: Record<string, keyof NotificationError> = {
	status: "status",
	code: "code",
	idempotency_key: "idempotencyKey",
	retry_after: "retryAfter",
};
const STOPPED = new Error("The caller has left.");

const folder = new URL("../../conformance/", import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
const read = (name: string): File => JSON.parse(readFileSync(new URL(name, folder), "utf8")) as File;

const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === "object" && value !== null && !Array.isArray(value);

function merged(below: unknown, above: unknown): unknown {
	if (!isObject(below) || !isObject(above)) return above;
	return { ...below, ...Object.fromEntries(Object.entries(above).map(([key, value]) => [key, merged(below[key], value)])) };
}

/** Return an answer, given by its name, or as what differs from a named one. */
function answerOf(file: File, given: string | (Answer & { as?: string })): Answer {
	if (typeof given === "string") return answerOf(file, file.answers![given]!);
	const { as, ...own } = given;
	return as ? (merged(answerOf(file, as), own) as Answer) : own;
}

/** Return the result of a call. */
async function make(notifier: Notifier, call: Call, signal: AbortSignal): Promise<unknown> {
	const options: CallOptions = { signal, idempotencyKey: call.idempotency_key };
	switch (call.method) {
		case "notify":
			return notifier.notify(call.type, call.fields, options);
		case "send":
			return notifier.send(call.request, options);
		case "replace":
			return notifier.replace(call.key, call.request, { signal });
		case "send_many":
			return notifier.sendMany(Array<Call["request"]>(call.requests.times).fill(call.requests.item), options);
		case "broadcast":
			return notifier.broadcast(call.type, call.audience, call.fields, options);
		case "inbox_token":
			return notifier.inboxToken(call.user_id, { signal });
		case "iterate": {
			const items: unknown[] = [];
			for await (const item of notifier.iterate(call.operation, call.arguments, options)) items.push(item);
			return items;
		}
		default: {
			const operation = notifier.rest[call.operation] as (args: object, options: CallOptions) => Promise<unknown>;
			return operation(call.body ? { ...call.arguments, body: call.body } : call.arguments, options);
		}
	}
}

function checkRequest({ method, url, headers, body }: Received, wanted: NonNullable<Step["request"]>): void {
	if (wanted.method) expect(method).toBe(wanted.method);
	if (wanted.path) expect(url.pathname).toBe(wanted.path);
	if (wanted.query) expect([...url.searchParams]).toEqual(expect.arrayContaining(wanted.query));
	for (const [name, value] of Object.entries(wanted.headers ?? {})) expect(headers[name.toLowerCase()]).toBe(value);
	if ("body" in wanted) expect(body ? JSON.parse(body) : null).toEqual(wanted.body);
	if (wanted.items) expect((JSON.parse(body) as { notifications: [] }).notifications).toHaveLength(wanted.items);
}

function checkKeys(labels: (string | null)[], keys: unknown[]): void {
	const same = new Map(labels.map((label, index) => [label, keys[index]]));
	expect(labels.map((label) => same.get(label))).toEqual(keys);
	expect(new Set(keys).size).toBe(same.size);
	expect(same.get(null)).toBeUndefined();
}

function checkWaits(wanted: NonNullable<Case["waits"]>, waited: number[]): void {
	expect(waited).toHaveLength(wanted.length);
	wanted.forEach((one, index) => {
		const [shortest, longest] = Array.isArray(one) ? one : [one, one];
		expect(waited[index]).toBeGreaterThanOrEqual(shortest);
		expect(waited[index]).toBeLessThanOrEqual(longest);
	});
}

function checkError(wanted: NonNullable<Case["error"]>, error: unknown, key: string): void {
	const text = inspect(error, { depth: Infinity }).replaceAll(/^ +at .*$/gm, "");
	for (const secret of [...SECRETS, ...(key ? [key, key.trim()] : [])]) expect(text).not.toContain(secret);
	if (wanted.kind === "cancelled") return expect(error).toBe(STOPPED);
	if (wanted.kind === "mistake") return expect(error).toBeInstanceOf(TypeError);
	expect(error).toBeInstanceOf(KINDS[wanted.kind]);
	const found = error as NotificationError;
	for (const [name, field] of Object.entries(FIELDS)) {
		if (name in wanted) expect(found[field] ?? null).toBe(wanted[name]);
	}
	if (wanted.pointers) expect(found.problem?.errors.map((one) => one.pointer)).toEqual(wanted.pointers);
	if (wanted.text) expect(found.message).toBe(wanted.text);
}

async function check(file: File, one: Case): Promise<void> {
	const exchange: Step[] = one.exchange.map((step) => ({ ...step, answer: answerOf(file, step.answer) }));
	const given = { path: "", key: KEY, ...one.notifier };
	const stop = new AbortController();
	const waits: number[] = [];
	const received = await playing(exchange, async (url, isHolding) => {
		const options: NotifierOptions = {
			key: given.key!,
			retry: Object.fromEntries(Object.entries(one.retry ?? {}).map(([name, value]) => [POLICY[name]!, value])),
			...(one.timeout_seconds && { timeoutSeconds: one.timeout_seconds }),
			clock: () => waits.reduce((sum, seconds) => sum + seconds, 0),
			sleep: async (seconds, signal) => {
				waits.push(seconds);
				if (one.cancel === "wait") stop.abort(STOPPED);
				signal?.throwIfAborted();
			},
		};
		if (one.cancel === "attempt") void isHolding.then(() => stop.abort(STOPPED));
		let result: unknown;
		try {
			const notifier = new Notifier(given.url ?? url + given.path, options);
			for (const call of one.calls ?? [one.call!]) result = await make(notifier, call, stop.signal);
		} catch (error) {
			if (!one.error) throw error;
			return checkError(one.error, error, given.key ?? "");
		}
		expect(one.error).toBeUndefined();
		if (one.result === null) expect(result).toBeUndefined();
		else expect(result).toMatchObject(one.result as object);
	});
	expect(received).toHaveLength(exchange.length);
	received.forEach((request, index) => checkRequest(request, exchange[index]!.request ?? {}));
	if (one.keys) checkKeys(one.keys, received.map(({ headers }) => headers["idempotency-key"]));
	if (one.waits) checkWaits(one.waits, waits);
}

for (const name of names.filter((one) => one !== "callbacks.json")) {
	const file = read(name);
	describe(file.about, () => {
		test.each(file.cases)("$name", (one) => check(file, one));
	});
}

describe("callbacks", () => {
	const { cases } = read("callbacks.json") as unknown as { cases: CallbackCase[] };

	test.each(cases)("$name", async ({ headers, body, secrets, now, event, error }) => {
		const verified = verifyCallback(headers, body, { secret: secrets, now });
		if (error === "mistake") await expect(verified).rejects.toThrow(new TypeError("The secret isn't one of the service."));
		else if (error) await expect(verified).rejects.toBeInstanceOf(InvalidCallbackError);
		else expect(await verified).toEqual(event);
	});
});
