import { Notifier } from "@notifyproject/client";
import { Clock } from "./clock.js";
import { KEY_IN_MEMORY, MemoryService, URL_IN_MEMORY } from "./memory.js";
import { Outbox } from "./outbox.js";

const TEST_KEY = "ntf_test_";

export interface ServiceOptions {
	/** A service that runs. Default: `NOTIFY_URL`; without one, the service is in memory. */
	url?: string | undefined;
	/** Its test keys, separated by blanks, one for each worker of vitest or jest. Default: `NOTIFY_KEY`. */
	key?: string | undefined;
}

/** Where tests send: a service with a test key, or the one in memory. */
export interface TestService {
	readonly url: string;
	readonly key: string;
	/** The service in memory; undefined if `url` is one that runs. */
	readonly memory: MemoryService | undefined;
	/** For the app's own notifier: `new Notifier(url, { key, fetch })`. */
	readonly fetch: typeof fetch;
	readonly notifier: Notifier;
	readonly outbox: Outbox;
	/** In memory, there is no time: each move gets 501 `not_in_memory`. */
	readonly clock: Clock;
	/** Begin a test: in real time, and without what earlier tests sent or left to be sent. */
	begin(): Promise<void>;
}

/** Return the service that the environment or the options name, or one in memory. Throws TypeError for a live key. */
export function testService(options: ServiceOptions = {}): TestService {
	const url = options.url ?? process.env.NOTIFY_URL;
	const keys = (options.key ?? process.env.NOTIFY_KEY ?? "").split(/[\s,]+/).filter(Boolean);
	if (keys.some((one) => !one.startsWith(TEST_KEY))) {
		throw new TypeError(`NOTIFY_KEY is a live key: tests would send to people. Expected a key that begins with ${TEST_KEY}.`);
	}
	return url ? at(url, keyOfWorker(keys)) : inMemory();
}

function at(url: string, key: string): TestService {
	const notifier = new Notifier(url, { key });
	const outbox = new Outbox(notifier);
	const clock = new Clock(notifier);
	const begin = async (): Promise<void> => {
		await outbox.begin();
		await clock.reset();
	};
	return { url, key, memory: undefined, fetch: (...given) => fetch(...given), notifier, outbox, clock, begin };
}

function inMemory(): TestService {
	const memory = new MemoryService();
	const { fetch } = memory;
	const notifier = new Notifier(URL_IN_MEMORY, { key: KEY_IN_MEMORY, fetch });
	const outbox = new Outbox(notifier, 0);
	const begin = (): Promise<void> => {
		memory.reset();
		return outbox.begin();
	};
	return { url: URL_IN_MEMORY, key: KEY_IN_MEMORY, memory, fetch, notifier, outbox, clock: new Clock(notifier), begin };
}

function keyOfWorker(keys: string[]): string {
	const worker = Number(process.env.VITEST_POOL_ID ?? process.env.JEST_WORKER_ID ?? 1);
	const key = keys[worker - 1];
	if (key) return key;
	if (!keys.length) throw new TypeError("NOTIFY_URL needs NOTIFY_KEY, a test key of this service.");
	throw new TypeError(
		`NOTIFY_KEY has ${keys.length} keys, and this is worker ${worker}. Tests that run at once need a test client each: ` +
			"outbox and clock are the client's. Give more keys, or run with one worker.",
	);
}
