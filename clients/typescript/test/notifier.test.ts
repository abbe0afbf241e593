// What is peculiar to JavaScript. conformance.test.ts has what every client does.
import { getEventListeners } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { Notifier, verifyCallback, type NotifierOptions } from "../src/index.js";
import { sleep } from "../src/retry.js";

const KEY = "ntf_abc_secret";
const EVENT = { id: "1", delivery: [] };

/** Return a notifier whose requests are answered by the next response, and its requests. */
function notifier(answers: Response[], options: Partial<NotifierOptions> = {}) {
	const requests: Request[] = [];
	const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
		requests.push(new Request(url, init));
		return answers.shift() ?? Response.json(EVENT, { status: 202 });
	};
	return { requests, client: new Notifier("https://notify.example.com", { key: KEY, fetch, ...options }) };
}

describe("operations", () => {
	const document = parse(readFileSync(new URL("../../python/openapi.yaml", import.meta.url), "utf8")) as {
		paths: Record<string, Record<string, { operationId: string }>>;
	};
	const operations = Object.entries(document.paths).flatMap(([path, item]) =>
		Object.entries(item).map(([method, { operationId }]) => ({ operationId, method: method.toUpperCase(), path })),
	);

	test("each of the OpenAPI document has a method, which requests its path", async () => {
		for (const { operationId, method, path } of operations) {
			const { client, requests } = notifier([Response.json({})]);
			const values = Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, "x"]));
			await (client.rest as unknown as Record<string, (args: object) => Promise<unknown>>)[operationId]!(values);
			expect([requests[0]!.method, requests[0]!.url]).toEqual([
				method,
				`https://notify.example.com${path.replaceAll(/\{\w+\}/g, "x")}`,
			]);
		}
		expect(operations.length).toBeGreaterThan(90);
	});

	test("a value that would leave its place in the path is refused", async () => {
		const { client, requests } = notifier([]);
		for (const user_id of ["", ".", ".."]) {
			await expect(client.rest.getRecipient({ user_id })).rejects.toThrow(new TypeError("user_id can't be a part of a path."));
		}
		expect(requests).toHaveLength(0);
	});

	test("dates are sent as texts, and what is undefined isn't sent", async () => {
		const at = new Date("2026-12-01T09:00:00Z");
		const { client, requests } = notifier([Response.json({ results: [], next: null })]);
		await client.rest.listNotifications({ created_after: at, limit: 2 });
		await client.notify("mfa_code", { user_id: "ada", scheduled_at: at, ttl: undefined });
		expect(new URL(requests[0]!.url).search).toBe("?created_after=2026-12-01T09%3A00%3A00.000Z&limit=2");
		expect(await requests[1]!.json()).toEqual({ type: "mfa_code", user_id: "ada", scheduled_at: at.toISOString() });
	});

	test("a stream is returned unread", async () => {
		const headers = { "Content-Type": "text/event-stream; charset=utf-8" };
		const { client } = notifier([new Response("event: ping\n\n", { headers })]);
		expect(await (await client.rest.streamInbox()).text()).toBe("event: ping\n\n");
	});

	test("no framework keeps an answer", async () => {
		const { client, requests } = notifier([]);
		await client.rest.listRooms();
		expect(requests[0]!.cache).toBe("no-store");
	});
});

describe("signals", () => {
	test("a call with an aborted signal sends nothing", async () => {
		const { client, requests } = notifier([]);
		const reason = new Error("gone");
		await expect(client.notify("mfa_code", {}, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
		expect(requests).toHaveLength(0);
	});

	test("a signal of the whole program keeps nothing of a finished call", async () => {
		const { signal } = new AbortController();
		const { client } = notifier([new Response(null, { status: 503 })], { retry: { firstDelaySeconds: 0 } });
		await client.notify("mfa_code", {}, { signal });
		expect(getEventListeners(signal, "abort")).toEqual([]);
	});

	test("an abort ends the delay before a retry", async () => {
		const stop = new AbortController();
		const waiting = sleep(3600, stop.signal);
		stop.abort(new Error("gone"));
		await expect(waiting).rejects.toThrow("gone");
		await expect(sleep(3600, stop.signal)).rejects.toThrow("gone");
		expect(getEventListeners(stop.signal, "abort")).toEqual([]);
	});

	test("no time limit is none, and not the shortest", async () => {
		const { client } = notifier([], {
			fetch: async (_url, init) => {
				await new Promise((resolve) => setTimeout(resolve, 20));
				init?.signal?.throwIfAborted();
				return Response.json(EVENT, { status: 202 });
			},
			timeoutSeconds: Infinity,
		});
		expect(await client.notify("mfa_code")).toEqual(EVENT);
	});
});

describe("callbacks", () => {
	const { cases } = JSON.parse(readFileSync(new URL("../../conformance/callbacks.json", import.meta.url), "utf8")) as {
		cases: { headers: Record<string, string>; body: string; secrets: string[]; now: number; event: object }[];
	};
	const { headers, body, secrets, now, event } = cases[1]!;
	const options = { secret: secrets, now };

	test("take what the servers of Node.js, Deno, and Bun have", async () => {
		const node = { host: "shop.example", cookie: ["a", "b"], "x-odd": undefined, ...headers };
		const bytes = new TextEncoder().encode(body);
		for (const given of [headers, new Headers(headers), node]) expect(await verifyCallback(given, body, options)).toEqual(event);
		for (const raw of [body, bytes, Buffer.from(body), bytes.buffer]) expect(await verifyCallback(headers, raw, options)).toEqual(event);
	});

	test("say of a parsed body what is wrong, which is no fault of the sender", async () => {
		for (const parsed of [JSON.parse(body), undefined]) {
			await expect(verifyCallback(headers, parsed as string, options)).rejects.toThrow("pass the raw bytes");
		}
	});

	test("say of a missing secret that it is missing", async () => {
		await expect(verifyCallback(headers, body, { secret: undefined as unknown as string })).rejects.toThrow(TypeError);
	});
});
