// An app's own code. The package that was built has to compile with it under the strictest options.
import {
	NotificationRejectedError,
	Notifier,
	ServiceUnavailableError,
	verifyCallback,
	type Listing,
	type NotificationView,
	type RetryPolicy,
} from "@notifyproject/client";

const retry: Partial<RetryPolicy> = { maxAttempts: 3 };
export const notifier = new Notifier("https://notify.example.com", { key: "ntf_a_b", retry });

export async function paid(userId: string, phone: string | undefined, signal: AbortSignal): Promise<string> {
	try {
		const sent = await notifier.notify(
			"payment_confirmed",
			{ user_id: userId, phone, channels: "all", scheduled_at: new Date(), data: { order_id: 1 } },
			{ signal, idempotencyKey: "order-1-paid" },
		);
		return sent.warnings[0]?.code ?? sent.id;
	} catch (error) {
		if (error instanceof NotificationRejectedError) return error.problem?.errors[0]?.pointer ?? "";
		if (error instanceof ServiceUnavailableError) return `${error.idempotencyKey} ${error.retryAfter}`;
		throw error;
	}
}

export const lists: Listing[] = [
	"listNotifications",
	"listRecipientNotifications",
	"listAttempts",
	"listBroadcasts",
	"listRecipients",
	"listDevices",
	"listTopics",
	"listTopicMembers",
	"listInbox",
	"listDigests",
	"listCallbackDeliveries",
	"listSuppressions",
	"listTypes",
	"listTemplateVersions",
	"listTypeFiles",
];

export async function failed(): Promise<NotificationView[]> {
	const found: NotificationView[] = [];
	for await (const one of notifier.iterate("listNotifications", { status: ["failed"] })) found.push(one);
	return found;
}

export async function others(headers: Headers, body: Uint8Array): Promise<void> {
	const many = await notifier.sendMany([{ type: "mfa_code", user_id: "ada" }]);
	const ids: (string | null)[] = many.results.map((one) => one.id);
	await notifier.broadcast("marketing", { topic: "news" }, { content: { subject: "Spring" } });
	const { token }: { token: string } = await notifier.inboxToken("ada");
	const { email } = await notifier.rest.getRecipient({ user_id: "ada" });
	await notifier.rest.putRecipient({ user_id: "ada", body: { email } });
	const nothing: void = await notifier.rest.deleteNotification({ notification_id: token });
	const event = await verifyCallback(headers, body, { secret: ["whsec_AA=="] });
	// @ts-expect-error An operation's arguments are checked.
	await notifier.rest.getRecipient({ user: "ada" });
	// @ts-expect-error Only lists are iterated.
	notifier.iterate("getRecipient", { user_id: "ada" });
	// @ts-expect-error An unknown field is refused.
	await notifier.notify("mfa_code", { user: "ada" });
	console.log(ids, nothing, event.type);
}
