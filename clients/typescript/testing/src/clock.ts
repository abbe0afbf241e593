import { NotificationRejectedError, type ClockEventView, type Notifier, type TestClockRequest, type TestClockView } from "@notifyproject/client";

/** The service answers within 12 seconds, and 15 more for a silent provider. */
const SECONDS = 60;
/** How often a move waits for another one of the same clock. */
const MAX_WAITS = 30;

/** The clock of a test client: time goes by at once, and what is due happens. */
export class Clock {
	readonly #notifier: Notifier;

	constructor(notifier: Notifier) {
		this.#notifier = notifier;
	}

	/** Return the client's time. */
	async now(): Promise<Date> {
		return new Date((await this.#notifier.rest.getTestClock()).now);
	}

	/** Move the clock by a duration, such as `2h`. Return what happened, in order. */
	advance(by: string): Promise<ClockEventView[]> {
		return this.#move({ advance: by });
	}

	/** Move the clock to a time, which isn't before it. Return what happened, in order. */
	to(instant: string | Date): Promise<ClockEventView[]> {
		return this.#move({ to: typeof instant === "string" ? instant : instant.toISOString() });
	}

	/** Let everything happen that is due by now, without waiting for a worker. */
	async settle(): Promise<ClockEventView[]> {
		return this.to(await this.now());
	}

	/** Make the clock show real time again. */
	async reset(): Promise<void> {
		await this.#notifier.rest.resetTestClock();
	}

	async #move(request: TestClockRequest): Promise<ClockEventView[]> {
		let moved = await this.#ask(request);
		const found = [...moved.happened];
		while (!moved.is_complete) {
			moved = await this.#ask({ to: moved.target! });
			found.push(...moved.happened);
		}
		return found;
	}

	async #ask(body: TestClockRequest): Promise<TestClockView> {
		for (let waits = 0; waits < MAX_WAITS; waits++) {
			try {
				return await this.#notifier.rest.moveTestClock({ body }, { timeoutSeconds: SECONDS });
			} catch (error) {
				if (!(error instanceof NotificationRejectedError) || error.code !== "clock_moving") throw error;
				await new Promise((resolve) => setTimeout(resolve, (error.retryAfter ?? 1) * 1000));
			}
		}
		throw new Error("Others move this clock all the time: give each suite a test client.");
	}
}
