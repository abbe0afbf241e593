import type { CallbackEvent } from "./api.js";
import { InvalidCallbackError } from "./errors.js";

/** Seconds between the time of a callback and now, in either direction. */
const MAX_AGE = 300;

export interface CallbackOptions {
	/** The endpoint's `whsec_…`, or several of which any may have signed the callback. */
	secret: string | readonly string[];
	/** A Unix time in seconds, for tests. */
	now?: number;
}

/** Of a `Request`, or of Node's `IncomingMessage`. */
export type CallbackHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Return the event of a callback whose signature is genuine and whose time is recent.
 *
 * `body` is the raw body of the request, before any parser. An event may arrive twice: the header
 * `webhook-id` is then the same. Rejects with InvalidCallbackError; answer it with 400.
 */
export async function verifyCallback(
	headers: CallbackHeaders,
	body: string | Uint8Array | ArrayBuffer,
	{ secret, now = Date.now() / 1000 }: CallbackOptions,
): Promise<CallbackEvent> {
	const raw = bytesOf(body);
	const keys = await Promise.all((typeof secret === "string" ? [secret] : secret).map(keyOf));
	const found = new Headers(
		headers instanceof Headers ? headers : Object.entries(headers).flatMap(([name, value]) => (/^webhook-/i.test(name) ? [[name, String(value)]] : [])),
	);
	const [id, sentAt, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
		const value = found.get(name);
		if (value === null) throw new InvalidCallbackError(`The header '${name}' is missing.`);
		return value;
	}) as [string, string, string];
	if (!/^\d{1,15}$/.test(sentAt)) throw new InvalidCallbackError("The header 'webhook-timestamp' isn't a number.");
	if (Math.abs(now - Number(sentAt)) > MAX_AGE) throw new InvalidCallbackError("It is too old, or from the future.");
	const start = new TextEncoder().encode(`${id}.${sentAt}.`);
	const signed = new Uint8Array(start.length + raw.length);
	signed.set(start);
	signed.set(raw, start.length);
	for (const text of signatures.split(" ")) {
		const signature = text.startsWith("v1,") ? fromBase64(text.slice(3)) : undefined;
		for (const key of signature ? keys : []) {
			if (await crypto.subtle.verify("HMAC", key, signature!, signed)) {
				return JSON.parse(new TextDecoder().decode(raw)) as CallbackEvent;
			}
		}
	}
	throw new InvalidCallbackError("No signature matches.");
}

function bytesOf(body: unknown): Uint8Array {
	if (typeof body === "string") return new TextEncoder().encode(body);
	if (body instanceof ArrayBuffer) return new Uint8Array(body);
	if (body instanceof Uint8Array) return body;
	throw new TypeError("The body was parsed: pass the raw bytes, from which the signature is made.");
}

async function keyOf(secret: string) {
	const key = fromBase64(secret.replace(/^whsec_/, ""));
	// An empty key would verify what anybody signs.
	if (!key?.length) throw new TypeError("The secret isn't one of the service.");
	return crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
	try {
		return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
	} catch {
		return undefined;
	}
}
