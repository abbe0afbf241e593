// A server that plays the exchange of a case in clients/conformance.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface Answer {
	status?: number;
	headers?: Record<string, string>;
	body?: unknown;
	text?: string;
	cut?: "before" | "within";
	hold?: "before" | "within";
}

export interface Step {
	request?: {
		method?: string;
		path?: string;
		query?: [string, string][];
		headers?: Record<string, string>;
		body?: unknown;
		items?: number;
	};
	answer: Answer;
	then?: "close";
}

export interface Received {
	method: string;
	url: URL;
	headers: IncomingMessage["headers"];
	body: string;
}

/** Serve an exchange while a function runs, and return the requests. */
export async function playing(
	exchange: readonly Step[],
	run: (url: string, isHolding: Promise<void>) => Promise<void>,
): Promise<Received[]> {
	const received: Received[] = [];
	const left = [...exchange];
	let hold = (): void => undefined;
	const isHolding = new Promise<void>((resolve) => (hold = resolve));

	async function play(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const body = (await buffer(request)).toString();
		const url = new URL(request.url!, "http://127.0.0.1");
		received.push({ method: request.method!, url, headers: request.headers, body });
		const { answer, then }: Step = left.shift() ?? { answer: { status: 418, text: "Nothing is left." } };
		if (answer.cut !== "before" && answer.hold !== "before") {
			const raw = Buffer.from(answer.text ?? JSON.stringify(answer.body));
			const length = answer.status === 204 ? {} : { "Content-Length": raw.length };
			response.writeHead(answer.status!, { "Content-Type": "application/json", ...answer.headers, ...length });
			if (answer.cut || answer.hold) await new Promise((resolve) => response.write(raw.subarray(0, raw.length / 2), resolve));
			else await new Promise<void>((resolve) => response.end(raw, resolve));
		}
		if (answer.hold) hold();
		if (answer.cut || then) request.socket.destroy();
	}

	const server = createServer((request, response) => void play(request, response));
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	try {
		await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, isHolding);
	} finally {
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	}
	return received;
}
