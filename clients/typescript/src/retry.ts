/** How often and how long a request is attempted. */
export interface RetryPolicy {
	/** Default: 5. */
	maxAttempts: number;
	/** From the first attempt to the beginning of the last. Default: 60. */
	maxSeconds: number;
	/** Each attempt doubles it, and jitter adds up to half. Default: 0.5. */
	firstDelaySeconds: number;
	/** Unless `Retry-After` is longer. Default: 20. */
	maxDelaySeconds: number;
}

/** @internal */
export const RETRY: RetryPolicy = { maxAttempts: 5, maxSeconds: 60, firstDelaySeconds: 0.5, maxDelaySeconds: 20 };
/** @internal */
export const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
const LONGEST_TIMER = 2 ** 31 - 1;

/** Return the seconds until the next attempt. @internal */
export function delayAfter(policy: RetryPolicy, attempts: number, retryAfter: number | undefined): number {
	const own = Math.min(policy.firstDelaySeconds * 2 ** (attempts - 1), policy.maxDelaySeconds);
	return Math.max(own * (1 + Math.random() / 2), retryAfter ?? 0);
}

/** Return `Retry-After` (a number or a date) in seconds; undefined if missing or invalid. @internal */
export function parseRetryAfter(header: string | null): number | undefined {
	const text = header?.trim() ?? "";
	if (/^\d+$/.test(text)) return Number(text);
	// Date.parse also reads "-1" and "5.5", as months and years.
	const moment = /^[A-Za-z]{3,9},/.test(text) ? Date.parse(text) : NaN;
	return Number.isNaN(moment) ? undefined : Math.max((moment - Date.now()) / 1000, 0);
}

/** Call a function after some seconds. A longer time than a timer can have would end it at once. @internal */
export function after(seconds: number, call: () => void): ReturnType<typeof setTimeout> {
	return setTimeout(call, Math.min(seconds * 1000, LONGEST_TIMER));
}

/** Wait, unless the signal is aborted first: then its reason is thrown. @internal */
export function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal?.aborted) return reject(signal.reason);
		const stop = (): void => {
			clearTimeout(timer);
			reject(signal?.reason);
		};
		const timer = after(seconds, () => {
			signal?.removeEventListener("abort", stop);
			resolve();
		});
		signal?.addEventListener("abort", stop, { once: true });
	});
}
