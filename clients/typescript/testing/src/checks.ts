import { isObject, token, type FieldProblem, type Json } from "./structure.js";

/** A request needs what the service in memory doesn't have. */
export class NotInMemoryError extends Error {
	override readonly name = "NotInMemoryError";
}

/** A registered recipient, which a test key can't register. */
export interface Registered {
	email?: string;
	phone?: string;
	name?: string;
	locale?: string;
	timezone?: string;
}

/** What happens on one channel at first. */
export interface Delivery {
	channel: string;
	step: number | null;
	/** In seconds. */
	after: number;
	/** Why nothing is sent. */
	failure: string | null;
}

/** A valid notification. */
export interface Checked {
	recipient: Json & { device_ids: string[] };
	priority: string;
	deliveries: Delivery[];
	until: string | null;
	sendAt: Date;
	scheduledAt: Date | null;
	expiresAt: Date | null;
}

interface Step {
	channels: string[];
	after?: number;
}

interface Plan {
	until?: string;
	steps: Step[];
}

type Report = (pointer: string, code: string, detail: string) => void;

/** The channels, in the API's order: the field that each needs, and what is said without it. */
const CHANNELS: Record<string, [pointer: string, refusal: string]> = {
	email: ["/recipient/email", "No email address."],
	push: ["/user_id", "Push requires `user_id` or `recipient.device_ids`."],
	whatsapp: ["/recipient/phone", "No phone number."],
	sms: ["/recipient/phone", "No phone number."],
	room: ["/recipient/room", "No room: name one, or set the type's."],
	in_app: ["/user_id", "In-app requires `user_id`."],
};
const PRIORITIES = ["critical", "high", "normal", "low"];
const GOALS = ["delivered", "read", "acted"];
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const MAX_TTL = 2_592_000;
const MAX_BODY_BYTES = 100 * 1024;
const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/;
const CLOCK = "(?:[01]\\d|2[0-3]):[0-5]\\d";
const TIMESTAMP = new RegExp(`^\\d{4}-\\d{2}-\\d{2}[Tt]${CLOCK}:[0-5]\\d(?:\\.\\d{1,9})?(?:[Zz]|[+-]${CLOCK})$`);
const NAIVE = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/;
const LOCAL = new RegExp(`^\\d{4}-\\d{2}-\\d{2}T${CLOCK}(:[0-5]\\d)?$`);
const EMAIL = /^(?=.{1,64}@)[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([\p{L}\p{N}]([\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+\p{L}[\p{L}\p{N}-]*[\p{L}\p{N}]$/iu;
const SPECIAL_DOMAIN = /\.(invalid|local|localhost|arpa|onion)$/i;
const PHONE = /^\+[1-9]\d{6,14}$/;
const ROOM = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const FREE_FORM = ["attributes", "data", "payload", "example_data"];
const SCHEME = /^([a-z][a-z0-9+.-]{0,30}):/;
const FORBIDDEN_SCHEMES = /^(javascript|data|vbscript|file|ftp|about|blob|view-source|content|intent|chrome)$/;

/** Return where a value can't be stored: keys and texts. */
export function findUnstorable(value: unknown, pointer = "", inData = false): FieldProblem[] {
	if (typeof value === "string") return value.includes("\0") ? [{ pointer, code: "nul_character", detail: "A text holds the character NUL." }] : [];
	if (Array.isArray(value)) return value.flatMap((item, index) => findUnstorable(item, `${pointer}/${index}`, inData));
	if (!isObject(value)) return [];
	return Object.entries(value).flatMap(([key, item]) => {
		const place = `${pointer}/${token(key)}`;
		const isForbidden = inData && (key.startsWith("$") || key.includes(".") || key === "__proto__" || !key);
		const found = isForbidden ? [{ pointer: place, code: "forbidden_key", detail: "A key is empty, begins with $, holds a dot, or is __proto__." }] : [];
		if ([...key].length > 128) found.push({ pointer: place, code: "key_too_long", detail: "A key has over 128 characters." });
		return [...found, ...findUnstorable(item, place, inData || FREE_FORM.includes(key))];
	});
}

/** Return the channels of a request; report the names that aren't any. */
export function parseChannels(names: string[], report: Report, pointer = "/channels"): string[] {
	const found: string[] = [];
	names.forEach((given, index) => {
		const name = given === "in-app" ? "in_app" : given;
		if (!Object.hasOwn(CHANNELS, name)) report(`${pointer}/${index}`, "unknown_channel", `Expected one of ${Object.keys(CHANNELS).join(", ")}.`);
		else if (found.includes(name)) report(`${pointer}/${index}`, "duplicate_channel", "Duplicate channel.");
		else found.push(name);
	});
	if (!names.length) report(pointer, "no_channel", "Name at least one channel, or leave it out.");
	return found;
}

export function isAll(names: unknown): boolean {
	return names === "all" || (Array.isArray(names) && names.length === 1 && names[0] === "all");
}

/** Return an identifier's fault as its code, or undefined. */
export function identifierFault(text: string): string | undefined {
	if (text === "." || text === "..") return "dot_segment";
	if (text.includes("/")) return "slash";
	if (CONTROL.test(text)) return "control_characters";
	return text.trim() ? undefined : "blank";
}

/** Return a notification whose structure is right, or its problems. */
export function check(body: Json, registered: Registered, now: Date): Checked | FieldProblem[] {
	const problems: FieldProblem[] = [];
	const report: Report = (pointer, code, detail) => problems.push({ pointer, code, detail });
	const userId = body.user_id as string | null | undefined;
	const fault = userId == null ? undefined : identifierFault(userId);
	if (fault) report("/user_id", fault, "It can't be an identifier.");
	for (const name of ["entity_id", "external_id", "source"]) checkLine(body[name], `/${name}`, report);
	const recipient = checkRecipient((body.recipient ?? {}) as Json, registered, report);
	if (body.event_at != null) throw new NotInMemoryError("The service in memory has no reminders: only a type has their time.");
	const { sendAt, scheduledAt } = checkSendTime(body, recipient, now, report);
	const expiresAt = checkExpiry(body, sendAt, report);
	const priority = body.priority === "medium" ? "normal" : ((body.priority ?? "normal") as string);
	if (!PRIORITIES.includes(priority)) report("/priority", "unknown_priority", `Expected one of ${PRIORITIES.join(", ")}.`);
	const { deliveries, until } = checkChannels(body, recipient, report, problems);
	if (until !== null && body.plan != null && expiresAt && !problems.length) {
		(body.plan as Plan).steps.forEach(({ after = 0 }, index) => {
			const isLate = after * 1000 >= expiresAt.getTime() - sendAt.getTime();
			if (isLate) report(`/plan/steps/${index}/after`, "after_expiry", "The notification has expired by then.");
		});
	}
	checkContent((body.content ?? {}) as Json, report);
	return problems.length ? problems : { recipient, priority, deliveries, until, sendAt, scheduledAt, expiresAt };
}

function checkLine(text: unknown, pointer: string, report: Report): void {
	if (typeof text === "string" && CONTROL.test(text)) report(pointer, "control_characters", "Must be one line without control characters.");
}

function checkRecipient(given: Json, registered: Registered, report: Report): Checked["recipient"] {
	const checks: Record<string, (text: string) => boolean> = {
		email: isEmail,
		phone: (text) => PHONE.test(text.trim()),
		room: (text) => ROOM.test(text.trim()),
		locale: isLanguage,
		timezone: isZone,
	};
	const codes: Record<string, string> = { locale: "invalid_language", timezone: "unknown_timezone" };
	for (const [name, isRight] of Object.entries(checks)) {
		const text = given[name] as string | null | undefined;
		if (text != null && !isRight(text)) report(`/recipient/${name}`, codes[name] ?? `invalid_${name}`, "It isn't one.");
	}
	checkLine(given.name, "/recipient/name", report);
	const devices = (given.device_ids ?? []) as string[];
	devices.forEach((_, index) => report(`/recipient/device_ids/${index}`, "unknown_device", "Unknown device."));
	const names = ["email", "phone", "room", "name", "locale", "timezone"];
	const values = names.map((name) => [name, given[name] ?? registered[name as keyof Registered] ?? null]);
	return { device_ids: devices, ...Object.fromEntries(values) };
}

function isEmail(text: string): boolean {
	const address = text.trim();
	return EMAIL.test(address) && !SPECIAL_DOMAIN.test(address);
}

function isLanguage(tag: string): boolean {
	try {
		return Intl.getCanonicalLocales(tag.replaceAll("_", "-")).length === 1;
	} catch {
		return false;
	}
}

function isZone(name: string): boolean {
	try {
		return Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
	} catch {
		return false;
	}
}

function checkSendTime(body: Json, recipient: Json, now: Date, report: Report): { sendAt: Date; scheduledAt: Date | null } {
	const at = body.scheduled_at as string | null | undefined;
	const local = body.scheduled_local as { at: string; timezone?: string | null } | null | undefined;
	let requested: Date | null = null;
	let pointer = "/scheduled_at";
	if (at != null && local != null) {
		report("/scheduled_local", "conflict", "`scheduled_at` and `scheduled_local` are mutually exclusive.");
	} else if (at != null) {
		requested = timestamp(at, pointer, report);
	} else if (local != null) {
		pointer = "/scheduled_local/at";
		requested = localTime(local.at, local.timezone ?? (recipient.timezone as string | null), pointer, report);
	}
	if (!requested) return { sendAt: now, scheduledAt: null };
	const ahead = requested.getTime() - now.getTime();
	if (ahead < -5 * MINUTE) report(pointer, "in_the_past", "The time lies more than 5 minutes in the past.");
	if (ahead > 365 * DAY) report(pointer, "too_far_ahead", "The time lies more than 365 days ahead.");
	const sendAt = ahead > 0 ? requested : now;
	return { sendAt, scheduledAt: sendAt };
}

function timestamp(text: string, pointer: string, report: Report): Date | null {
	const found = TIMESTAMP.test(text) ? new Date(text.toUpperCase()) : null;
	if (found && !Number.isNaN(found.getTime())) return found;
	report(pointer, NAIVE.test(text) ? "naive_datetime" : "invalid_datetime", "Expected a time such as 2026-12-01T09:00:00Z.");
	return null;
}

function localTime(text: string, zone: string | null, pointer: string, report: Report): Date | null {
	const naive = LOCAL.test(text) ? new Date(`${text}Z`) : null;
	if (!naive || Number.isNaN(naive.getTime())) {
		report(pointer, "invalid_datetime", "Expected a local time such as 2026-12-01T09:00.");
		return null;
	}
	if (zone === null || !isZone(zone)) {
		const code = zone === null ? "required" : "unknown_timezone";
		report("/scheduled_local/timezone", code, "Expected an IANA zone such as Europe/Lisbon.");
		return null;
	}
	const offset = (instant: Date): number => {
		const parts = new Intl.DateTimeFormat("sv", { timeZone: zone, dateStyle: "short", timeStyle: "medium" }).format(instant);
		return new Date(`${parts.replace(" ", "T")}Z`).getTime() - Math.floor(instant.getTime() / 1000) * 1000;
	};
	const guess = new Date(naive.getTime() - offset(naive));
	return new Date(naive.getTime() - offset(guess));
}

function checkExpiry(body: Json, sendAt: Date, report: Report): Date | null {
	const ttl = body.ttl as number | null | undefined;
	const at = body.expires_at as string | null | undefined;
	if (ttl != null && at != null) {
		report("/ttl", "conflict", "`ttl` and `expires_at` are mutually exclusive.");
		return null;
	}
	if (ttl != null) {
		if (ttl < 1 || ttl > MAX_TTL) report("/ttl", "invalid_ttl", "ttl is in seconds: from 1 to 2592000 (30 days).");
		return new Date(sendAt.getTime() + ttl * 1000);
	}
	const expiresAt = at == null ? null : timestamp(at, "/expires_at", report);
	if (expiresAt && expiresAt <= sendAt) report("/expires_at", "expires_before_sending", "Expires before the send time.");
	return expiresAt;
}

function checkChannels(body: Json, recipient: Checked["recipient"], report: Report, problems: FieldProblem[]): Pick<Checked, "deliveries" | "until"> {
	const { channels: names, plan } = body as { channels?: string[] | "all" | null; plan?: Plan | null };
	const reaches = (channel: string): boolean => {
		if (channel === "in_app") return body.user_id != null;
		if (channel === "push") return body.user_id != null || recipient.device_ids.length > 0;
		return Boolean(recipient[CHANNELS[channel]![0].slice("/recipient/".length)]);
	};
	const delivery = (channel: string): Delivery => {
		const failure = reaches(channel) ? null : `Skipped: ${CHANNELS[channel]![1]}`;
		return { channel, step: null, after: 0, failure };
	};
	const every = Object.keys(CHANNELS).filter((one) => one !== "room" || recipient.room);
	if (plan != null) {
		if (names != null) report("/plan", "conflict", "Use either `channels` or `plan`.");
		checkPlan(plan, report);
	} else if (names != null && !isAll(names)) {
		const channels = parseChannels(names as string[], report);
		for (const [pointer, refusal] of channels.filter((one) => !reaches(one)).map((one) => CHANNELS[one]!)) {
			if (!problems.some((one) => one.pointer === pointer)) report(pointer, "no_address", refusal);
		}
		return { deliveries: channels.map(delivery), until: null };
	}
	const reached = every.filter(reaches);
	const planned = plan?.steps.flatMap((step) => parseChannels(step.channels, () => {})) ?? [];
	const wanted = plan != null ? planned : names == null && reached.length ? reached : every;
	const deliveries = wanted.map(delivery);
	if (deliveries.length && deliveries.every((one) => one.failure) && !problems.length) {
		report("/recipient", "no_address", "No channel can reach this recipient.");
	}
	return plan == null ? { deliveries, until: null } : inSteps(deliveries, plan);
}

function checkPlan({ until = "delivered", steps }: Plan, report: Report): void {
	if (!GOALS.includes(until)) report("/plan/until", "unknown_value", `Expected one of ${GOALS.join(", ")}.`);
	const used = new Set<string>();
	steps.forEach((step, index) => {
		const at = `/plan/steps/${index}`;
		const channels = parseChannels(step.channels, report, `${at}/channels`);
		if (channels.some((one) => used.has(one))) report(`${at}/channels`, "repeated_channel", "In an earlier step.");
		channels.forEach((one) => used.add(one));
		const { after = 0 } = step;
		if (!index && after) report(`${at}/after`, "out_of_range", "The first step begins at the send time.");
		if (index && after <= (steps[index - 1]!.after ?? 0)) report(`${at}/after`, "out_of_range", "Must be later than the step before.");
		const isInboxAlone = channels.length === 1 && channels[0] === "in_app";
		if (index < steps.length - 1 && until === "delivered" && isInboxAlone) {
			report(`${at}/channels`, "no_other_channel", "In-app always delivers: add a channel, or wait `until` it is read.");
		}
	});
}

/** Return deliveries with their steps: what nothing before it can reach is sent at once. */
function inSteps(deliveries: Delivery[], { until = "delivered", steps }: Plan): Pick<Checked, "deliveries" | "until"> {
	const stepOf = (one: Delivery): number => steps.findIndex((step) => step.channels.some((name) => name.replace("-", "_") === one.channel)) + 1;
	const mayReach = (one: Delivery): boolean => !one.failure && one.channel !== "room" && (until !== "delivered" || one.channel !== "in_app");
	const reaching = deliveries.filter(mayReach).map(stepOf);
	const first = reaching.length ? Math.min(...reaching) : Math.max(1, ...deliveries.map(stepOf));
	if (!deliveries.some((one) => !one.failure && stepOf(one) > first)) return { deliveries, until: null };
	const planned = deliveries.map((one) => {
		const number = stepOf(one);
		return { ...one, step: number, after: number > first ? (steps[number - 1]!.after ?? 0) : 0 };
	});
	return { deliveries: planned, until };
}

function checkContent(content: Json, report: Report): void {
	const { body, subject, image_url: image, deep_link: link, reply_to: replyTo } = content as Record<string, string | null | undefined>;
	if (body != null) {
		checkLine(content.template_id, "/content/template_id", report);
		if (!body.trim()) report("/content/body", "blank", "Must not be blank.");
		else if (new TextEncoder().encode(body).length > MAX_BODY_BYTES) report("/content/body", "too_long", "The body exceeds 100 KB.");
	}
	if (subject != null) {
		checkLine(subject, "/content/subject", report);
		if (!CONTROL.test(subject) && !subject.trim()) report("/content/subject", "blank", "Must not be blank.");
	}
	if (image != null && !isPublic(image)) report("/content/image_url", "invalid_url", "Expected a URL that begins with https://.");
	if (link != null && !isDeepLink(link)) report("/content/deep_link", "invalid_url", "Links of this scheme are not allowed.");
	if (replyTo != null && !isEmail(replyTo)) report("/content/reply_to", "invalid_email", "Expected one address such as ada@example.com.");
}

function isDeepLink(link: string): boolean {
	const scheme = SCHEME.exec(link.toLowerCase())?.[1];
	if (!scheme || /[\s\\]/.test(link)) return false;
	return scheme.startsWith("http") ? isPublic(link) : !FORBIDDEN_SCHEMES.test(scheme);
}

function isPublic(text: string): boolean {
	if (/[\s\\]/.test(text) || !URL.canParse(text)) return false;
	const { protocol, hostname, username } = new URL(text);
	const [last, ...others] = hostname.replace(/\.$/, "").split(".").reverse();
	const isName = others.length > 0 && !/^(\d+|localhost|local|internal|lan|home|corp|intranet|private)$/.test(last!);
	return protocol === "https:" && !username && isName;
}
