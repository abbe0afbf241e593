// The messages of the app, through days that take a second.
import { testService } from "@notifyproject/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { Messages, type Customer } from "./trial.js";

const service = testService();
const { clock, notifier, outbox } = service;
const messages = new Messages(notifier);
let ada: Customer;

beforeEach(async () => {
	// A customer whom no earlier run has written to.
	ada = { id: `test-${crypto.randomUUID()}`, email: "ada@example.com", phone: "+351912345678" };
	await service.begin();
});

async function channels(): Promise<string[]> {
	return (await outbox.messages()).map((one) => one.channel);
}

describe.runIf(!service.memory)("in time", () => {
	test("a plan of three days", async () => {
		await messages.welcome(ada);
		await clock.settle();
		expect(await channels()).toEqual(["in_app"]);
		await clock.advance("1d");
		expect((await outbox.last()).channel).toBe("email");
		await clock.advance("2d");
		expect(await channels()).toEqual(["in_app", "email", "sms"]);
		expect((await outbox.last()).text).toBe("Your trial of Sunrise has started.");
	});

	test("the plan ends once it is read", async () => {
		const { id } = await messages.welcome(ada);
		await clock.advance("1d");
		await notifier.rest.readNotification({ notification_id: id });
		await clock.advance("7d");
		expect(await channels()).toEqual(["in_app", "email"]);
	});

	test("three comments are one email", async () => {
		await messages.comment(ada, "Plan", "Grace");
		await clock.advance("10m");
		await messages.comment(ada, "Plan", "Alan");
		await messages.comment(ada, "Plan", "Edsger");
		await clock.advance("15m");
		expect(await outbox.messages()).toEqual([]);
		await clock.advance("10m");
		expect((await outbox.messages()).map((one) => one.text)).toEqual(["3 comments on Plan."]);
	});

	test("a receipt arrives although the mail server fails twice", async () => {
		await messages.receipt({ ...ada, email: `flaky+${ada.id}@example.com` }, "49.90");
		await clock.settle();
		expect(await outbox.messages()).toEqual([]);
		const happened = await clock.advance("20m");
		expect(happened.map((one) => one.event).filter((one) => one === "waits" || one === "sent").at(-1)).toBe("sent");
		expect((await outbox.last()).text).toBe("We received 49.90.");
	});

	test("nobody is told of a stream that is over", async () => {
		await messages.live(ada, "Sunrise");
		const happened = await clock.advance("2h");
		expect(happened.at(-1)).toMatchObject({ channel: "sms", event: "expired" });
		await clock.advance("1d");
		expect(await channels()).toEqual(["in_app"]);
	});
});

test("a wrong address is refused", async () => {
	await expect(messages.receipt({ ...ada, email: "ada@example" }, "49.90")).rejects.toThrow("/recipient/email");
});

test("a customer is welcomed once", async () => {
	expect((await messages.welcome(ada)).id).toBe((await messages.welcome(ada)).id);
});
