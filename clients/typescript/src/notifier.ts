import {
	PATHS,
	type AcceptedNotificationView,
	type BroadcastRequest,
	type BroadcastView,
	type BulkResultView,
	type BulkView,
	type Channel,
	type InboxTokenView,
	type NotificationRequest,
	type Operations,
	type ProblemView,
} from "./api.js";
import { NotificationRejectedError, ServiceUnavailableError, type NotificationError } from "./errors.js";
import { after, delayAfter, parseRetryAfter, RETRY, RETRYABLE_STATUSES, sleep, type RetryPolicy } from "./retry.js";

/** Notifications in one request of a bulk create. */
const BULK_SIZE = 1_000;
/** What the service leaves out of a result that hasn't it. */
const NULLS: Partial<BulkResultView> = { id: null, error: null };
const PREFIX = "/api/v1";

export interface NotifierOptions {
	/** The client's API key. */
	key: string;
	/** Of one attempt, with its response. The service takes at most 12. Default: 15. */
	timeoutSeconds?: number;
	retry?: Partial<RetryPolicy>;
	/** Default: the global one. */
	fetch?: typeof fetch;
	/** For tests. */
	sleep?: (seconds: number, signal: AbortSignal | undefined) => Promise<void>;
	/** For tests, in seconds. */
	clock?: () => number;
}

export interface CallOptions {
	/** Ends the call, also while it waits for a retry; it rejects with the signal's reason. */
	signal?: AbortSignal | undefined;
	timeoutSeconds?: number | undefined;
	/** Calls with the same key have one effect at most. Default: a new one. */
	idempotencyKey?: string | undefined;
}

type OrLeftOut<T> = { [K in keyof T]?: T[K] | null | undefined };
/** The fields of a request beside its type; `email` and `phone` are short for `recipient`. One that is null is left out. */
export type NotificationFields = Omit<OrLeftOut<NotificationRequest>, "type" | "channels"> & {
	email?: string | null | undefined;
	phone?: string | null | undefined;
	channels?: NotificationRequest["channels"] | Channel | undefined;
};
export type BroadcastFields = Omit<OrLeftOut<BroadcastRequest>, "type" | "audience">;

type Name = keyof Operations;
type Arguments<K extends Name> = Parameters<Operations[K]>[0];
type Result<K extends Name> = ReturnType<Operations[K]>;
/** A method for each operation of the API. It takes the parameters and the `body` as one object. */
export type Rest = {
	[K in Name]: {} extends Arguments<K>
		? (args?: Arguments<K>, options?: CallOptions) => Promise<Result<K>>
		: (args: Arguments<K>, options?: CallOptions) => Promise<Result<K>>;
};

type Item<K extends Name> = Result<K> extends { results: (infer T)[]; next: string | null } ? T : never;
/** The operations that return a list in pages. */
export type Listing = { [K in Name]: Item<K> extends never ? never : K }[Name];

const PLACES = new Map(
	PATHS.split("\n").flatMap((line) => {
		const [path, ...words] = line.split(" ") as [string, ...string[]];
		return words.flatMap((word, at): [Name, [string, string]][] => (at % 2 ? [[word as Name, [words[at - 1]!.toUpperCase(), path]]] : []));
	}),
);

interface Call {
	method: string;
	path: string;
	body?: unknown;
	isRepeated: boolean;
}

interface Answer {
	response: Response;
	text: string;
}

/**
 * Sends notifications with a client's API key, with retries that have no second effect.
 */
export class Notifier {
	readonly rest: Rest;
	readonly #url: string;
	readonly #key: string;
	readonly #timeoutSeconds: number;
	readonly #retry: RetryPolicy;
	readonly #fetch: typeof fetch;
	readonly #sleep: NonNullable<NotifierOptions["sleep"]>;
	readonly #clock: () => number;

	constructor(url: string, options: NotifierOptions) {
		if (!/^https?:$/.test(new URL(url).protocol)) throw new TypeError("The service's URL begins with https:// or http://.");
		// fetch would name the key in its error, or send the word undefined.
		if (typeof options.key !== "string" || !/^[!-~]+$/.test(options.key)) throw new TypeError("The key isn't one of the service.");
		this.#url = url.replace(/\/+$/, "");
		this.#key = options.key;
		this.#timeoutSeconds = options.timeoutSeconds ?? 15;
		this.#retry = { ...RETRY, ...options.retry };
		this.#fetch = options.fetch ?? ((...given) => fetch(...given));
		this.#sleep = options.sleep ?? sleep;
		this.#clock = options.clock ?? (() => performance.now() / 1000);
		const methods = [...PLACES.keys()].map((name) => [
			name,
			(args?: object, given?: CallOptions) => this.#operate(name, args, given, false),
		]);
		this.rest = Object.fromEntries(methods) as Rest;
	}

	/**
	 * Send a notification of a registered type; return the accepted notification.
	 *
	 * For a registered recipient, `user_id` is enough. `warnings` of the result name channels that are
	 * about to fail, or that reach nobody. Rejects as `send` does.
	 */
	notify(type: string, fields: NotificationFields = {}, options?: CallOptions): Promise<AcceptedNotificationView> {
		const { email, phone, channels, recipient, ...others } = fields;
		const short = present({ email, phone });
		return this.send(
			present({
				type,
				...others,
				recipient: recipient ?? (Object.keys(short).length ? short : undefined),
				channels: typeof channels === "string" ? [channels] : channels,
			}) as unknown as NotificationRequest,
			options,
		);
	}

	/**
	 * Send a notification, given as the request's JSON object; return the accepted notification.
	 *
	 * All attempts have the same idempotency key, so that they create at most one notification. Store a
	 * key of your own and pass it if this must hold even when your program restarts.
	 *
	 * Rejects with NotificationRejectedError if the request is invalid or not allowed, and with
	 * ServiceUnavailableError if no attempt got a clear response in time.
	 */
	send(request: NotificationRequest, options?: CallOptions): Promise<AcceptedNotificationView> {
		return this.#post("/notifications", request, 202, "delivery", withKey(options));
	}

	/**
	 * Replace the notification with this idempotency key, or create it. It keeps its `id`.
	 *
	 * Repeating a call has no second effect. Rejects as `send` does, with the code `already_sending`,
	 * `already_sent`, or `already_cancelled` if it is too late.
	 */
	async replace(key: string, request: NotificationRequest, options?: Omit<CallOptions, "idempotencyKey">): Promise<AcceptedNotificationView> {
		return this.#post(`/notifications/by-key/${segment("key", key)}`, request, 202, "delivery", options, "PUT");
	}

	/**
	 * Send any number of notifications, a thousand in each request. Return all results.
	 *
	 * A result has the `index` of its request and the notification's `id`, or an `error`: an invalid
	 * request doesn't stop the others. If the call rejects, earlier requests may have been accepted:
	 * repeat it with the same key and the same notifications.
	 */
	async sendMany(requests: readonly NotificationRequest[], options?: CallOptions): Promise<BulkView> {
		const all: BulkView = { accepted: 0, rejected: 0, results: [] };
		const { idempotencyKey: key, ...others } = withKey(options);
		for (let start = 0; start < requests.length; start += BULK_SIZE) {
			const part: BulkView = await this.#post(
				"/notifications/bulk",
				{ notifications: requests.slice(start, start + BULK_SIZE) },
				200,
				"results",
				{ ...others, idempotencyKey: start ? `${key}-${start}` : key },
			);
			all.accepted += part.accepted;
			all.rejected += part.rejected;
			for (const result of part.results) all.results.push({ ...NULLS, ...result, index: result.index + start });
		}
		return all;
	}

	/** Send one message to many recipients, such as `{ topic: "news" }`; return its progress. Rejects as `send` does. */
	broadcast(
		type: string,
		audience: BroadcastRequest["audience"],
		fields: BroadcastFields = {},
		options?: CallOptions,
	): Promise<BroadcastView> {
		return this.#post("/broadcasts", { type, audience, ...present(fields) }, 202, "audience", withKey(options));
	}

	/** Issue a token for the inbox of one recipient, for their browser. Rejects as `send` does. */
	inboxToken(userId: string, options?: Omit<CallOptions, "idempotencyKey">): Promise<InboxTokenView> {
		return this.#post("/inbox/tokens", { user_id: userId }, 201, "token", options);
	}

	/** Yield the items of a list, page after page, such as those of `"listNotifications"`. Each page is retried. */
	async *iterate<K extends Listing>(
		operation: K,
		args?: Arguments<K>,
		options?: CallOptions,
	): AsyncGenerator<Item<K>, void, undefined> {
		let page: { results: Item<K>[]; next: string | null } | undefined;
		do {
			page = (await this.#operate(operation, page ? { ...args, cursor: page.next } : args, options, true)) as NonNullable<typeof page>;
			yield* page.results;
		} while (page.next);
	}

	async #post<T>(path: string, body: object, accepted: number, field: string, options: CallOptions = {}, method = "POST"): Promise<T> {
		const answer = await this.#send({ method, path, body, isRepeated: true }, options);
		if (answer.response.status !== accepted) throw errorOf(answer, options);
		const view = parsed(answer.text) as Record<string, unknown> | undefined;
		if (!view || !Object.hasOwn(view, field)) throw unreadable(answer, options);
		return view as T;
	}

	async #operate(name: Name, args: object = {}, options: CallOptions = {}, isRepeated: boolean): Promise<unknown> {
		const [method, template] = PLACES.get(name)!;
		const { body, ...given } = args as Record<string, unknown>;
		const path = template.replace(/\{(\w+)\}/g, (_, parameter: string) => {
			const value = given[parameter];
			delete given[parameter];
			return segment(parameter, value);
		});
		const query = new URLSearchParams();
		for (const [parameter, value] of Object.entries(present(given))) {
			for (const one of Array.isArray(value) ? value : [value]) {
				query.append(parameter, one instanceof Date ? one.toISOString() : String(one));
			}
		}
		const call = { method, path: query.size ? `${path}?${query}` : path, body, isRepeated };
		const answer = await this.#send(call, options);
		if (!answer.response.ok) throw errorOf(answer, options);
		if (isStream(answer.response)) return answer.response;
		if (!answer.text) return undefined;
		const view = parsed(answer.text);
		if (view === undefined) throw unreadable(answer, options);
		return view;
	}

	/** Return the last answer, of whatever status. */
	async #send(call: Call, options: CallOptions): Promise<Answer> {
		const headers = new Headers({ Authorization: `Bearer ${this.#key}` });
		if (options.idempotencyKey) headers.set("Idempotency-Key", options.idempotencyKey);
		if (call.body !== undefined) headers.set("Content-Type", "application/json");
		const request = {
			method: call.method,
			headers,
			redirect: "manual" as const,
			// Frameworks that replace fetch would keep answers.
			cache: "no-store",
			...(call.body !== undefined && { body: JSON.stringify(call.body) }),
		};
		const started = this.#clock();
		for (let attempts = 1; ; attempts++) {
			options.signal?.throwIfAborted();
			const answer = await this.#attempt(call.path, request, options);
			const isAnswer = !(answer instanceof Error);
			if (isAnswer && !RETRYABLE_STATUSES.has(answer.response.status)) return answer;
			const error = isAnswer ? errorOf(answer, options) : answer;
			const delay = delayAfter(this.#retry, attempts, error.retryAfter);
			const left = this.#retry.maxSeconds - (this.#clock() - started);
			if (!call.isRepeated || attempts >= this.#retry.maxAttempts || delay > left) throw error;
			await this.#sleep(delay, options.signal);
		}
	}

	async #attempt(path: string, request: RequestInit, options: CallOptions): Promise<Answer | ServiceUnavailableError> {
		const { signal, timeoutSeconds = this.#timeoutSeconds } = options;
		// AbortSignal.any() would keep each attempt alive for as long as a signal of the whole program.
		const attempt = new AbortController();
		const abort = (): void => attempt.abort(signal?.reason);
		signal?.addEventListener("abort", abort, { once: true });
		const timer = after(timeoutSeconds, () => attempt.abort(new DOMException("Time is up.", "TimeoutError")));
		let isOpen = false;
		try {
			const response = await this.#fetch(`${this.#url}${PREFIX}${path}`, { ...request, signal: attempt.signal });
			isOpen = response.ok && isStream(response);
			return { response, text: isOpen ? "" : await response.text() };
		} catch (error) {
			signal?.throwIfAborted();
			const { name, cause } = error as Error & { cause?: { code?: string } };
			return new ServiceUnavailableError(`Couldn't reach the service: ${cause?.code ?? name}.`, {
				idempotencyKey: options.idempotencyKey,
				cause: error,
			});
		} finally {
			clearTimeout(timer);
			if (!isOpen) signal?.removeEventListener("abort", abort);
		}
	}
}

function withKey(options: CallOptions = {}): CallOptions {
	return { ...options, idempotencyKey: options.idempotencyKey || crypto.randomUUID() };
}

/** Return the fields that aren't null or undefined. */
function present(fields: object): Record<string, unknown> {
	return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}

/** Return a value as one segment of a path, which it doesn't leave. */
function segment(name: string, value: unknown): string {
	const text = String(value ?? "");
	if (text === "" || text === "." || text === "..") throw new TypeError(`${name} can't be a part of a path.`);
	return encodeURIComponent(text);
}

function isStream(response: Response): boolean {
	return response.headers.get("Content-Type")?.startsWith("text/event-stream") ?? false;
}

function parsed(text: string): object | undefined {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null ? value : undefined;
	} catch {
		return undefined;
	}
}

function unreadable({ response }: Answer, { idempotencyKey }: CallOptions): ServiceUnavailableError {
	return new ServiceUnavailableError("The response is from another program, or from a later version of the service.", {
		idempotencyKey,
		status: response.status,
	});
}

function errorOf({ response, text }: Answer, { idempotencyKey }: CallOptions): NotificationError {
	const found = parsed(text) as Partial<ProblemView> | undefined;
	const isProblem = typeof found?.code === "string" && typeof found.detail === "string" && Array.isArray(found.errors);
	const problem = isProblem ? (found as ProblemView) : undefined;
	const ErrorClass = RETRYABLE_STATUSES.has(response.status) ? ServiceUnavailableError : NotificationRejectedError;
	return new ErrorClass(`${response.status} ${problem ? `${problem.code}: ${problem.detail}` : "no problem document"}`, {
		idempotencyKey,
		status: response.status,
		problem,
		retryAfter: parseRetryAfter(response.headers.get("Retry-After")),
	});
}
