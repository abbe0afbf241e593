import type { ProblemView } from "./api.js";

interface Details {
	idempotencyKey?: string | undefined;
	status?: number | undefined;
	problem?: ProblemView | undefined;
	retryAfter?: number | undefined;
	cause?: unknown;
}

/**
 * The service rejected a request, or its effect is unknown. The text names the invalid fields.
 * No error contains the API key or the content of a notification.
 */
export class NotificationError extends Error {
	override readonly name: string = "NotificationError";
	/** Calls with the same key have one effect at most. */
	readonly idempotencyKey: string | undefined;
	/** This and what follows are those of the last response, if there is one. */
	readonly status: number | undefined;
	readonly problem: ProblemView | undefined;
	/** In seconds. */
	readonly retryAfter: number | undefined;

	constructor(message: string, details: Details = {}) {
		const fields = (details.problem?.errors ?? []).map((one) => `${one.pointer || "body"}: ${one.detail}`);
		super([message, ...fields].join(" "), "cause" in details ? { cause: details.cause } : undefined);
		this.idempotencyKey = details.idempotencyKey;
		this.status = details.status;
		this.problem = details.problem;
		this.retryAfter = details.retryAfter;
	}

	/** The problem's code, such as `validation_failed`. */
	get code(): string | undefined {
		return this.problem?.code;
	}
}

/** The service rejected the request, and would reject a retry. */
export class NotificationRejectedError extends NotificationError {
	override readonly name = "NotificationRejectedError";
}

/** No attempt got a clear response, so one may have had its effect. Retry with the same key. */
export class ServiceUnavailableError extends NotificationError {
	override readonly name = "ServiceUnavailableError";
}

/** A callback isn't from the service: its signature or its time is wrong. */
export class InvalidCallbackError extends Error {
	override readonly name = "InvalidCallbackError";
}
