import { check, findUnstorable, identifierFault, isAll, NotInMemoryError, parseChannels, type Checked, type Delivery, type Registered } from "./checks.js";
import { operations, problems, type Operation } from "./document.js";
import { findProblems, isObject, type FieldProblem, type Json } from "./structure.js";

/** No host has this name: a request that isn't answered in memory fails. */
export const URL_IN_MEMORY = "http://notify.invalid";
export const KEY_IN_MEMORY = `ntf_test_memory0000_${"m".repeat(43)}`;
export const NOT_RENDERED = "(The service in memory renders no template.)";

const MAX_BYTES = 256 * 1024;
const MAX_BYTES_BULK = 4 * 1024 * 1024;
const MAX_DEPTH = 20;
const KEY = /^[!-~]{1,255}$/;
const FILTERS = ["user_id", "type", "entity_id", "external_id", "phase", "limit"];
const OUTBOX_FILTERS = ["user_id", "type", "channel", "limit"];
const SHOWN = ["subject", "image_url", "deep_link", "payload", "reply_to"];

interface Kept {
	view: Json & { id: string; delivery: Json[]; is_active: boolean };
	body: string;
	key: string | null;
}

interface Asked {
	operation: Operation;
	path: string;
	named: Record<string, string>;
	query: URLSearchParams;
	key: string | null;
	body: Json;
}

type Result = [status: number, view?: unknown, headers?: Record<string, string>];

/** A problem that is the answer to a request. */
class Refusal extends Error {
	constructor(
		readonly code: string,
		readonly status: number,
		readonly errors: FieldProblem[] = [],
		readonly notificationId?: string,
		readonly detail?: string,
	) {
		super(code);
	}
}

function refusal(code: string, notificationId?: string): Refusal {
	return new Refusal(code, problems[code]!.status, [], notificationId);
}

function invalid(errors: FieldProblem[]): Refusal {
	return new Refusal("validation_failed", problems.validation_failed!.status, errors);
}

/**
 * The service in memory: it refuses what the API refuses, keeps what it accepts, and sends nothing.
 *
 * Structures and problems come from the OpenAPI document. What it doesn't have gets 501
 * `not_in_memory`, which no service answers.
 */
export class MemoryService {
	/** Registered recipients by user ID, which a test key can't register. */
	readonly recipients = new Map<string, Registered>();
	readonly #kept = new Map<string, Kept>();
	readonly #keys = new Map<string, [content: string, view: unknown]>();
	readonly #now: () => Date;
	#outbox: Json[] = [];
	#lastId = 0;

	constructor(now: () => Date = () => new Date()) {
		this.#now = now;
	}

	/** Forget all notifications, keys, messages, and recipients. */
	reset(): void {
		this.#kept.clear();
		this.#keys.clear();
		this.recipients.clear();
		this.#outbox = [];
	}

	/** What takes the place of the global fetch in a notifier. */
	readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
		const request = new Request(input, init);
		const { pathname } = new URL(request.url);
		const content = await request.text();
		try {
			const [status, view, headers = {}] = this.#answer(request, content);
			return view === undefined ? new Response(null, { status, headers }) : Response.json(view, { status, headers });
		} catch (error) {
			// A notifier would take an error of fetch for a lost connection, and try again.
			const found = error instanceof NotInMemoryError ? new Refusal("not_in_memory", 501, [], undefined, error.message) : error;
			if (!(found instanceof Refusal)) throw found;
			const headers = { "Content-Type": "application/problem+json" };
			return Response.json(problemOf(found, pathname), { status: found.status, headers });
		}
	};

	#answer(request: Request, content: string): Result {
		const { pathname, searchParams: query } = new URL(request.url);
		const found = operations.map((one) => [one, named(one, pathname)] as const).filter(([, parts]) => parts);
		// A path without parameters is the one meant where another would match, too.
		found.sort(([, one], [, other]) => Object.keys(one!).length - Object.keys(other!).length);
		if (!found.length) throw refusal("not_found");
		const [operation, parts] = found.find(([one]) => one.method === request.method) ?? [];
		if (!operation) throw new Refusal("method_not_allowed", 405);
		if (!/^bearer ntf_test_/i.test(request.headers.get("Authorization") ?? "")) throw refusal("unauthenticated");
		if (operation.refusesTestKeys) throw refusal("test_key");
		if ([...query.keys()].some((name) => !operation.query.includes(name))) throw refusal("unknown_parameter");
		const key = request.headers.get("Idempotency-Key");
		if (key !== null && !KEY.test(key)) throw refusal("invalid_idempotency_key");
		if (operation.needsKey && key === null) throw refusal("missing_idempotency_key");
		const body = readBody(request, content, operation);
		const handler = HANDLERS[operation.name];
		if (!handler) throw new NotInMemoryError(`The service in memory has no ${operation.name}: use a service, with NOTIFY_URL.`);
		return handler(this, { operation, path: pathname, named: parts!, query, key, body });
	}

	create(asked: Asked): Result {
		return accepted(asked, ...this.#accept(asked.body, asked.key));
	}

	put(asked: Asked): Result {
		const key = asked.named.key!;
		const fault = identifierFault(key) ?? (KEY.test(key) ? undefined : "invalid_key");
		if (fault) throw invalid([{ pointer: "", code: fault, detail: "It isn't a key." }]);
		const current = this.#newest().find((one) => one.key === key);
		const content = canonical(asked.body);
		if (!current || current.body === content) return accepted(asked, ...this.#accept(asked.body, key));
		const { view } = current;
		const statuses = view.delivery.map((one) => one.status);
		if (statuses.includes("sent") || statuses.includes("delivered")) {
			throw refusal(statuses.includes("pending") ? "already_sending" : "already_sent", view.id);
		}
		if (statuses.includes("cancelled") || !view.is_active) throw refusal("already_cancelled", view.id);
		const replaced = this.#keep(asked.body, this.#checked(asked.body, view.id), key, view.id);
		Object.assign(replaced, { created_at: view.created_at, replaced_at: replaced.created_at });
		this.#keys.set(key, [content, replaced]);
		return accepted(asked, replaced, false);
	}

	createMany(asked: Asked): Result {
		const items = asked.body.notifications as Json[];
		const content = canonical(asked.body);
		const known = this.#keys.get(asked.key!);
		if (known && known[0] !== content) throw refusal("idempotency_key_reused");
		if (known) return [200, known[1], { "Idempotent-Replayed": "true" }];
		const seen = new Set<string>();
		const results = items.map((item, index) => {
			try {
				const own = canonical(item);
				if (seen.has(own)) throw new Refusal("duplicate_item", 409);
				seen.add(own);
				const unstorable = findUnstorable(item);
				const found = unstorable.length ? unstorable : findProblems(item, { $ref: "#/NotificationRequest" });
				if (found.length) throw invalid(found);
				return { index, id: this.#keep(item, this.#checked(item), asked.key).id };
			} catch (error) {
				if (!(error instanceof Refusal)) throw error;
				return { index, error: problemOf(error, asked.path) };
			}
		});
		const count = results.filter((one) => "id" in one).length;
		const view = { accepted: count, rejected: results.length - count, results };
		this.#keys.set(asked.key!, [content, view]);
		return [200, view];
	}

	get(asked: Asked): Result {
		if (asked.query.size) throw new NotInMemoryError("The service in memory has no `fields` and `expand`.");
		return [200, withoutWarnings(this.#find(asked).view)];
	}

	list(asked: Asked): Result {
		const views = this.#newest().map((one) => one.view).filter((one) => one.is_active);
		return [200, { results: page(views, asked, FILTERS).map(withoutWarnings), next: null, previous: null }];
	}

	cancel(asked: Asked): Result {
		const names = asked.body.channels as string[] | "all" | null | undefined;
		const kept = this.#find(asked);
		const found: FieldProblem[] = [];
		const report = (pointer: string, code: string, detail: string): void => void found.push({ pointer, code, detail });
		const channels = names == null || isAll(names) ? undefined : parseChannels(names as string[], report);
		if (found.length) throw invalid(found);
		if (!this.#cancelPending(kept, channels)) throw refusal("invalid_state");
		return this.get(asked);
	}

	cancelEntity({ body }: Asked): Result {
		const wanted = Object.entries(body).filter(([, value]) => value !== null);
		const same = this.#newest().filter(({ view }) => wanted.every(([name, value]) => view[name] === value));
		return [200, { cancelled: same.filter((one) => this.#cancelPending(one)).length }];
	}

	delete(asked: Asked): Result {
		const kept = this.#find(asked);
		this.#cancelPending(kept);
		Object.assign(kept.view, { is_active: false, deleted_at: this.#now().toISOString() });
		return [204];
	}

	listOutbox(asked: Asked): Result {
		const found: FieldProblem[] = [];
		const report = (_: string, code: string, detail: string): void => void found.push({ pointer: "/channel", code, detail });
		if (asked.query.has("channel")) parseChannels([asked.query.get("channel")!], report);
		if (found.length) throw invalid(found);
		return [200, { results: page([...this.#outbox].reverse(), asked, OUTBOX_FILTERS), next: null, previous: null }];
	}

	clearOutbox(): Result {
		this.#outbox = [];
		return [204];
	}

	#accept(body: Json, key: string | null): [view: Kept["view"], isReplayed: boolean] {
		const content = canonical(body);
		const known = key === null ? undefined : this.#keys.get(key);
		if (known && known[0] !== content) throw refusal("idempotency_key_reused");
		if (known) return [known[1] as Kept["view"], true];
		const view = this.#keep(body, this.#checked(body), key);
		if (key !== null) this.#keys.set(key, [content, view]);
		return [view, false];
	}

	#checked(body: Json, replaced?: string): Checked {
		const checked = check(body, this.recipients.get((body.user_id ?? "") as string) ?? {}, this.#now());
		if (Array.isArray(checked)) throw invalid(checked);
		const identity = ["type", "entity_id", "user_id"];
		if (identity.every((name) => body[name] != null)) {
			const same = this.#newest().find(({ view }) => view.id !== replaced && identity.every((name) => view[name] === body[name]));
			if (same) throw refusal("already_notified", same.view.id);
		}
		return checked;
	}

	#keep(body: Json, checked: Checked, key: string | null, id = this.#newId()): Kept["view"] {
		const now = this.#now().toISOString();
		const content = (body.content ?? {}) as Json;
		const text = content.body as string | null | undefined;
		const retries = (body.max_retries ?? 3) as number;
		const lines = (text ?? "").split("\n").map((line) => line.trim());
		const view: Kept["view"] = {
			id,
			type: body.type,
			category: "transactional",
			priority: checked.priority,
			user_id: null,
			entity_id: null,
			external_id: null,
			source: null,
			recipient: checked.recipient,
			channels: checked.deliveries.map((one) => one.channel),
			content: {
				...content,
				subject: content.subject ?? lines.find(Boolean) ?? null,
				template_id: text == null ? (content.template_id ?? body.type) : null,
			},
			data: body.data ?? {},
			delivery: checked.deliveries.map((one) => this.#delivery(one, checked, retries)),
			plan_until: checked.until,
			scheduled_at: checked.scheduledAt?.toISOString() ?? null,
			expires_at: checked.expiresAt?.toISOString() ?? null,
			retry_count: 0,
			max_retries: retries,
			is_read: false,
			is_active: true,
			created_at: now,
			updated_at: now,
			is_test: true,
			can_retry: false,
			is_failed: false,
			failed_channels: [],
			warnings: [],
		};
		for (const name of ["user_id", "entity_id", "external_id", "source"]) view[name] = body[name] ?? null;
		Object.assign(view, statusOf(view.delivery));
		this.#kept.delete(id);
		this.#kept.set(id, { view, body: canonical(body), key });
		for (const one of view.delivery) if (one.status === "sent" || one.status === "delivered") this.#outbox.push(this.#message(view, one));
		return view;
	}

	#delivery({ channel, step, after, failure }: Delivery, { sendAt }: Checked, retries: number): Json {
		const found = { channel, step, attempt_count: 0, max_attempts: 1 + retries };
		if (failure) return { ...found, status: "suppressed", failure_code: "no_address", failure_reason: failure };
		const now = this.#now();
		const at = new Date(sendAt.getTime() + after * 1000);
		if (at > now) return { ...found, status: "pending", next_attempt_at: at.toISOString() };
		if (channel === "in_app") return { ...found, status: "delivered", delivered_at: now.toISOString() };
		return { ...found, status: "sent", attempt_count: 1, sent_at: now.toISOString(), provider: "memory" };
	}

	#message(view: Kept["view"], { channel }: Json): Json {
		const content = view.content as Json;
		const field = { email: "email", sms: "phone", whatsapp: "phone", room: "room" }[channel as string];
		return {
			id: this.#newId(),
			notification_id: view.id,
			type: view.type,
			channel,
			user_id: view.user_id,
			address: field ? (view.recipient as Json)[field] : view.user_id,
			sent_at: this.#now().toISOString(),
			text: content.body ?? NOT_RENDERED,
			...Object.fromEntries(SHOWN.map((name) => [name, content[name] ?? null])),
			html: null,
			attachments: [],
			links: [],
		};
	}

	#cancelPending({ view }: Kept, channels?: string[]): boolean {
		const pending = view.delivery.filter((one) => one.status === "pending" && (channels?.includes(one.channel as string) ?? true));
		for (const one of pending) Object.assign(one, { status: "cancelled", next_attempt_at: null });
		Object.assign(view, { updated_at: this.#now().toISOString() }, statusOf(view.delivery));
		return pending.length > 0;
	}

	#find({ named: parts }: Asked): Kept {
		const found = this.#kept.get(parts.notification_id!.toLowerCase());
		if (!found) throw refusal("not_found");
		return found;
	}

	#newest(): Kept[] {
		return [...this.#kept.values()].reverse();
	}

	#newId(): string {
		const seconds = Math.floor(this.#now().getTime() / 1000);
		return seconds.toString(16).padStart(8, "0") + (++this.#lastId).toString(16).padStart(16, "0");
	}
}

const HANDLERS: Record<string, (memory: MemoryService, asked: Asked) => Result> = {
	createNotification: (memory, asked) => memory.create(asked),
	createNotifications: (memory, asked) => memory.createMany(asked),
	putNotification: (memory, asked) => memory.put(asked),
	getNotification: (memory, asked) => memory.get(asked),
	listNotifications: (memory, asked) => memory.list(asked),
	deleteNotification: (memory, asked) => memory.delete(asked),
	cancelNotification: (memory, asked) => memory.cancel(asked),
	cancelNotifications: (memory, asked) => memory.cancelEntity(asked),
	listTestOutbox: (memory, asked) => memory.listOutbox(asked),
	clearTestOutbox: (memory) => memory.clearOutbox(),
};

/** Return the parts that an operation's path names, or undefined for another path. */
function named(operation: Operation, path: string): Record<string, string> | undefined {
	const parts = operation.path.split("/");
	const given = path.split("/");
	if (parts.length !== given.length) return undefined;
	const found: Record<string, string> = {};
	for (const [index, part] of parts.entries()) {
		const name = /^\{(\w+)\}$/.exec(part)?.[1];
		if (name && given[index]) found[name] = decodeURIComponent(given[index]);
		else if (part !== given[index]) return undefined;
	}
	return found;
}

function readBody(request: Request, content: string, operation: Operation): Json {
	if (!operation.body) return {};
	if (!content.trim()) {
		if (operation.isBodyRequired) throw refusal("empty_body");
		return {};
	}
	if (request.headers.get("Content-Type")?.split(";")[0]?.trim() !== "application/json") throw refusal("unsupported_media_type");
	const isBulk = operation.name === "createNotifications";
	if (new TextEncoder().encode(content).length > (isBulk ? MAX_BYTES_BULK : MAX_BYTES)) throw refusal("too_large");
	let body: unknown;
	try {
		body = JSON.parse(content);
	} catch {
		throw refusal("malformed_json");
	}
	if (!isObject(body)) throw invalid([{ pointer: "", code: "wrong_type", detail: "Expected a JSON object." }]);
	if (isBulk) {
		// Each item is checked by itself.
		const items = Array.isArray(body.notifications) ? body.notifications.map(() => ({ type: "x" })) : body.notifications;
		const found = findProblems({ ...body, notifications: items }, operation.body);
		if (found.length) throw invalid(found);
		return body;
	}
	if (depth(body) > MAX_DEPTH) throw new Refusal("too_deep", 400);
	const unstorable = findUnstorable(body);
	const found = unstorable.length ? unstorable : findProblems(body, operation.body);
	if (found.length) throw invalid(found);
	return body;
}

function accepted(asked: Asked, view: Kept["view"], isReplayed: boolean): Result {
	const headers = { Location: `${asked.path.split("/by-key/")[0]}/${view.id}` };
	return [202, view, isReplayed ? { ...headers, "Idempotent-Replayed": "true" } : headers];
}

function page<T extends Json>(views: T[], { query }: Asked, known: string[]): T[] {
	const unknown = [...query.keys()].filter((name) => !known.includes(name));
	if (unknown.length) throw new NotInMemoryError(`The service in memory doesn't filter by ${unknown.join(", ")}.`);
	const names = [...new Set(query.keys())].filter((name) => name !== "limit");
	const found = views.filter((view) => names.every((name) => query.getAll(name).includes(view[name] as string)));
	if (found.length > Number(query.get("limit") ?? 50)) throw new NotInMemoryError("The service in memory has one page: ask for fewer, or more.");
	return found;
}

/** Return the fields of a notification that follow from its deliveries. */
function statusOf(deliveries: Json[]): Json {
	const statuses = deliveries.map((one) => one.status);
	const succeeded = deliveries.filter((one) => one.status === "sent" || one.status === "delivered").map((one) => one.channel);
	const isPending = statuses.includes("pending");
	const isCancelled = statuses.includes("cancelled");
	let status = isCancelled ? "cancelled" : "suppressed";
	if (isPending) status = succeeded.length ? "queued" : "created";
	else if (succeeded.length) status = isCancelled ? "partially_delivered" : statuses.includes("sent") ? "sent" : "delivered";
	return {
		status,
		phase: isPending ? "pending" : succeeded.length ? "sent" : "failed",
		is_pending: isPending,
		is_delivered: succeeded.length > 0 && !isPending,
		is_confirmed: status === "delivered",
		successful_channels: succeeded,
	};
}

function problemOf(error: Refusal, path: string): Json {
	const { title, detail } = problems[error.code] ?? { title: error.code, detail: error.code };
	return {
		type: `urn:notifications:problem:${error.code}`,
		title,
		status: error.status,
		detail: error.detail ?? detail,
		instance: path,
		code: error.code,
		request_id: crypto.randomUUID(),
		errors: error.errors,
		...(error.notificationId && { notification_id: error.notificationId }),
	};
}

function withoutWarnings({ warnings: _, ...view }: Json): Json {
	return view;
}

function canonical(value: unknown): string {
	return JSON.stringify(value, (_, inner: unknown) => (isObject(inner) ? Object.fromEntries(Object.entries(inner).sort()) : inner));
}

function depth(value: unknown): number {
	if (typeof value !== "object" || value === null) return 0;
	return 1 + Math.max(0, ...Object.values(value).map(depth));
}
