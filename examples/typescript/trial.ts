// The messages of a small app.
import type { AcceptedNotificationView, Notifier } from "@notifyproject/client";

const APP = "Sunrise";

/** Somebody who tries the app. */
export interface Customer {
	id: string;
	email: string;
	phone: string;
}

/** What the app tells its customers. */
export class Messages {
	readonly #notifier: Notifier;

	constructor(notifier: Notifier) {
		this.#notifier = notifier;
	}

	/** Begin the plan of three days, which the type has. Once for each customer. */
	welcome({ id, email, phone }: Customer): Promise<AcceptedNotificationView> {
		const fields = { user_id: id, email, phone, entity_id: `trial-${id}`, data: { app: APP } };
		return this.#notifier.notify("trial_started", fields, { idempotencyKey: `trial-${id}` });
	}

	/** Say that somebody commented. Several are sent as one. */
	async comment({ id, email }: Customer, document: string, author: string): Promise<void> {
		await this.#notifier.notify("document_commented", { user_id: id, email, data: { document, author } });
	}

	/** Send a receipt. */
	async receipt({ email }: Customer, amount: string): Promise<void> {
		await this.#notifier.notify("trial_receipt", { email, data: { amount } });
	}

	/** Say that a stream has begun, which is over after 45 minutes. */
	async live({ id, phone }: Customer, title: string): Promise<void> {
		await this.#notifier.notify("live_started", { user_id: id, phone, ttl: 45 * 60, data: { title } });
	}
}
