// The testing helpers: the service in memory answers as the API does, and the outbox is a test's own.
import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import { Notifier } from "../src/index.js";
import { MemoryService, testService } from "../testing/src/index.js";
import { KEY_IN_MEMORY, URL_IN_MEMORY } from "../testing/src/memory.js";

interface Step {
	method?: string;
	path?: string;
	body?: unknown;
	raw?: string;
	key?: string;
	authorization?: string;
	status: number;
	code?: string;
	errors?: Record<string, string>;
	replayed?: boolean;
	results?: (string | null)[];
}

interface Case {
	name: string;
	types?: boolean;
	steps: Step[];
}

interface Answer {
	id?: string;
	code?: string;
	errors?: { pointer: string; code: string }[];
	results?: { error?: { code: string } }[];
}

const file = new URL("../../conformance/testing/requests.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { cases: Case[] };
const withoutTypes = cases.filter((one) => !one.types);

/** Return a value with its times: `$+60` is in 60 seconds. */
function atTheirTime(value: unknown): unknown {
	return JSON.parse(JSON.stringify(value), (_, one: unknown) =>
		typeof one === "string" && /^\$[+-]\d+$/.test(one) ? new Date(Date.now() + Number(one.slice(1)) * 1000).toISOString() : one,
	);
}

describe("the service in memory passes each case", () => {
	test.each(withoutTypes.map((one) => [one.name, one] as const))("%s", async (_, { steps }) => {
		const memory = new MemoryService();
		let lastId = "";
		for (const step of steps) {
			const path = (step.path ?? "/notifications").replace("{id}", lastId);
			const headers = new Headers({ Authorization: step.authorization ?? `Bearer ${KEY_IN_MEMORY}`, "Content-Type": "application/json" });
			if (step.key) headers.set("Idempotency-Key", step.key);
			const content = step.raw ?? (step.body === undefined ? "" : JSON.stringify(atTheirTime(step.body)));
			const method = step.method ?? "POST";
			const response = await memory.fetch(`${URL_IN_MEMORY}/api/v1${path}`, { method, headers, ...(content && { body: content }) });
			const answer = response.status === 204 ? {} : ((await response.json()) as Answer);
			const code = step.code ?? (step.errors && "validation_failed");
			expect([response.status, answer.code, answer.errors]).toEqual([step.status, code, code ? expect.anything() : undefined]);
			const errors = Object.fromEntries((answer.errors ?? []).map((one) => [one.pointer, one.code]));
			expect(errors).toMatchObject(step.errors ?? {});
			expect(response.headers.has("Idempotent-Replayed")).toBe(step.replayed ?? false);
			if (step.results) expect(answer.results?.map((one) => one.error?.code ?? null)).toEqual(step.results);
			if (response.ok && answer.id) lastId = answer.id;
		}
	});
});

describe("in memory", () => {
	const service = testService();
	const data = { order_id: 1 };

	beforeEach(() => service.begin());

	test("what was sent is in the outbox", async () => {
		const app = new Notifier(service.url, { key: service.key, fetch: service.fetch });
		await app.notify("payment_confirmed", { user_id: "test-ada", channels: "in_app", data, content: { body: "Paid" } });
		const message = await service.outbox.last({ user_id: "test-ada", channel: "in_app" });
		expect(message.text).toBe("Paid");
		expect((await service.outbox.notificationOf(message)).data).toEqual(data);
		expect(await service.outbox.messages({ user_id: "test-bob" })).toEqual([]);
	});

	test("each test begins with an empty outbox, and what waits isn't there", async () => {
		expect(await service.outbox.messages()).toEqual([]);
		const tomorrow = new Date(Date.now() + 86_400_000);
		await service.notifier.notify("visit", { email: "ada@example.com", scheduled_at: tomorrow });
		await expect(service.outbox.waitFor()).rejects.toThrow(/Expected 1 .*found 0\.\n.*not sent: visit/);
	});

	test("what it has not gets an answer that no service gives", async () => {
		const { notifier } = service;
		await expect(notifier.rest.listDevices({ user_id: "ada" })).rejects.toThrow(/501 not_in_memory: .* has no listDevices/);
		await expect(notifier.notify("visit", { email: "ada@example.com", event_at: "2099-01-01T09:00:00Z" })).rejects.toThrow(/501 .* reminders/);
	});

	test("a registered recipient has an address", async () => {
		await expect(service.notifier.notify("visit", { user_id: "ada", channels: "email" })).rejects.toThrow(/No email address/);
		service.memory?.recipients.set("ada", { email: "ada@example.com" });
		const sent = await service.notifier.notify("visit", { user_id: "ada", channels: "email" });
		expect(sent.recipient.email).toBe("ada@example.com");
	});
});

describe("keys that tests must not use are refused", () => {
	const url = "http://127.0.0.1:9";

	test.each([
		["a live key", { url, key: "ntf_abcdefghij_secret" }, /is a live key/],
		["no key", { url, key: "" }, /NOTIFY_URL needs NOTIFY_KEY/],
	])("%s", (_, options, reason) => {
		expect(() => testService(options)).toThrow(reason);
	});

	test("a worker without a key of its own", () => {
		const worker = process.env.VITEST_POOL_ID;
		process.env.VITEST_POOL_ID = "2";
		expect(() => testService({ url, key: "ntf_test_a" })).toThrow(/has 1 keys, and this is worker 2/);
		if (worker) process.env.VITEST_POOL_ID = worker;
	});
});
