import { NotificationRejectedError, type Notifier, type NotificationView, type OutboxMessageView } from "@notifyproject/client";

const LOOK_AGAIN_MS = 50;
const SHOWN = 10;

/** Which messages are meant. */
export interface Filters {
	user_id?: string;
	type?: string;
	channel?: OutboxMessageView["channel"];
}

/** The messages of one test, in the order in which they were sent. */
export class Outbox {
	readonly #notifier: Notifier;
	readonly #seconds: number;
	#earlier = new Set<string>();

	/** `seconds` is how long `waitFor` waits: nothing if a service sends at once. */
	constructor(notifier: Notifier, seconds = 10) {
		this.#notifier = notifier;
		this.#seconds = seconds;
	}

	/** Empty the outbox, and cancel what earlier tests left to be sent. */
	async begin(): Promise<void> {
		// One that is being sent now can't be cancelled. Its messages aren't of this test.
		this.#earlier = new Set((await this.#open()).map((one) => one.id));
		for (const notification_id of this.#earlier) {
			try {
				await this.#notifier.rest.cancelNotification({ notification_id });
			} catch (error) {
				if (!(error instanceof NotificationRejectedError) || error.code !== "invalid_state") throw error;
			}
		}
		await this.clear();
	}

	/** Empty the outbox. */
	async clear(): Promise<void> {
		await this.#notifier.rest.clearTestOutbox();
	}

	/** Return the messages, the first first: all, or those of a user, type, and channel. */
	async messages(filters: Filters = {}): Promise<OutboxMessageView[]> {
		const found: OutboxMessageView[] = [];
		for await (const one of this.#notifier.iterate("listTestOutbox", filters)) found.unshift(one);
		return found.filter((one) => !this.#earlier.has(one.notification_id));
	}

	/** Return the newest message. Rejects if there is none. */
	async last(filters: Filters = {}): Promise<OutboxMessageView> {
		return (await this.waitFor(1, filters, 0)).at(-1)!;
	}

	/** Return the messages once there are `count`. Rejects after `seconds`. */
	async waitFor(count = 1, filters: Filters = {}, seconds = this.#seconds): Promise<OutboxMessageView[]> {
		const until = performance.now() + seconds * 1000;
		for (;;) {
			const found = await this.messages(filters);
			if (found.length >= count) return found;
			if (performance.now() >= until) throw new Error(await this.#explain(count, found.length, filters));
			await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
		}
	}

	/** Return the notification of a message, with its data. */
	notificationOf(message: OutboxMessageView): Promise<NotificationView> {
		return this.#notifier.rest.getNotification({ notification_id: message.notification_id });
	}

	async #open(): Promise<NotificationView[]> {
		const found: NotificationView[] = [];
		for await (const one of this.#notifier.iterate("listNotifications", { phase: ["pending", "retrying"] })) found.push(one);
		return found;
	}

	async #explain(count: number, found: number, filters: Filters): Promise<string> {
		const which = Object.entries(filters).map(([name, value]) => `, ${name} ${value}`);
		const lines = [`Expected ${count} in the outbox${which.join("")}, and found ${found}.`];
		for (const one of (await this.messages()).slice(0, SHOWN)) lines.push(`  sent: ${one.type} by ${one.channel} to ${one.user_id}`);
		const waiting = (await this.#open()).filter((one) => !this.#earlier.has(one.id));
		for (const one of waiting.slice(0, SHOWN)) {
			const states = one.delivery.map((delivery) => `${delivery.channel} ${delivery.wait_reason ?? delivery.status}`);
			lines.push(`  not sent: ${one.type} to ${one.user_id}: ${states.join(", ")}`);
		}
		return lines.join("\n");
	}
}
