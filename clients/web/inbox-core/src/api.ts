import type {
  ChosenPreferences, Counts, Filter, GetToken, InboxItem, MarkKind, Page, Preferences, Problem, Token, View,
} from "./types.ts";

const REQUEST_SECONDS = 15;

/** An answer of the service that isn't a success, or no answer (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly retryAfter: number | null = null,
  ) {
    super(detail);
  }

  get problem(): Problem {
    return { status: this.status, detail: this.message };
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 401 || this.status === 429 || this.status >= 500;
  }
}

/** Holds one token, and asks for another when the service refuses it. */
export class Tokens {
  /** Called when the app gives a token of another person than before, who signed in on the same page. */
  onOtherPerson: () => void = () => undefined;
  private current: Promise<Token> | null = null;
  private person: string | null = null;

  constructor(private readonly getToken: GetToken) {}

  /** Return a token. Raises ApiError if the app gives none. */
  get(): Promise<Token> {
    if (this.current === null) {
      const asked = this.ask();
      this.current = asked;
      asked.catch(() => this.discard(asked));
    }
    return this.current;
  }

  /** Forget a token that the service refused; a newer one stays. */
  async refuse(token: Token): Promise<void> {
    const current = this.current;
    if (current !== null && (await current.catch(() => null)) === token) this.discard(current);
  }

  private async ask(): Promise<Token> {
    try {
      const token = await this.getToken();
      const isOther = this.person !== null && this.person !== token.user_id;
      this.person = token.user_id;
      if (isOther) this.onOtherPerson();
      return token;
    } catch (error) {
      throw error instanceof ApiError ? error : new ApiError(0, `No token: ${String(error)}`);
    }
  }

  private discard(asked: Promise<Token>): void {
    if (this.current === asked) this.current = null;
  }
}

/** Return a `GetToken` that reads the app's own URL, with the page's cookies. */
export function tokenFrom(url: string, fetcher: typeof fetch = fetch): GetToken {
  return async () => {
    const answer = await fetcher(url, {
      credentials: "same-origin",
      cache: "no-store",
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(REQUEST_SECONDS * 1000),
    });
    if (!answer.ok) throw new ApiError(answer.status, `${url} answered ${answer.status}`);
    return (await answer.json()) as Token;
  };
}

/** Pages without an item that are read for one. */
const MOST_EMPTY_PAGES = 50;

/** The inbox API. Each call raises ApiError. */
export class Api {
  constructor(
    private readonly tokens: Tokens,
    private readonly service: string | null,
    private readonly fetcher: typeof fetch,
  ) {}

  /** A page of a filter may be empty with more behind it, because the service reads a limited number of items for one. */
  async list(options: { limit: number; cursor?: string | null; filter: Filter; view: View }): Promise<Page> {
    const query = new URLSearchParams({ limit: String(options.limit), ...options.filter });
    if (options.view !== "inbox") query.set(options.view, "true");
    for (let cursor = options.cursor ?? null, read = 1; ; read += 1) {
      if (cursor !== null) query.set("cursor", cursor);
      const page = await this.json<Page>("GET", `?${query}`);
      if (page.results.length > 0 || page.next === null || read === MOST_EMPTY_PAGES) return page;
      cursor = page.next;
    }
  }

  counts(): Promise<Counts> {
    return this.json<Counts>("GET", "/counts");
  }

  mark(id: string, kind: MarkKind): Promise<InboxItem> {
    return this.json<InboxItem>("POST", `/${encodeURIComponent(id)}/${kind}`);
  }

  snooze(id: string, until: string): Promise<InboxItem> {
    return this.json<InboxItem>("POST", `/${encodeURIComponent(id)}/snooze`, { until });
  }

  act(id: string, action: string): Promise<InboxItem> {
    return this.json<InboxItem>("POST", `/${encodeURIComponent(id)}/actions/${encodeURIComponent(action)}`);
  }

  preferences(): Promise<Preferences> {
    return this.json<Preferences>("GET", "/preferences");
  }

  setPreferences(chosen: ChosenPreferences): Promise<Preferences> {
    return this.json<Preferences>("PUT", "/preferences", chosen);
  }

  push(): Promise<{ application_server_key: string | null }> {
    return this.json("GET", "/push");
  }

  registerBrowser(browser: unknown): Promise<{ id: string; token: string }> {
    return this.json("PUT", "/push", browser);
  }

  async removeBrowser(id: string): Promise<void> {
    await this.request("DELETE", `/push/${encodeURIComponent(id)}`);
  }

  /** Mark a part of all as read. Return whether that was everything. */
  async readPart(): Promise<boolean> {
    const answer = await this.json<{ is_complete?: boolean }>("POST", "/read-all");
    return answer.is_complete !== false;
  }

  /** Open the stream. The caller reads the answer's body. */
  stream(lastEventId: string | null, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (lastEventId !== null) headers["Last-Event-ID"] = lastEventId;
    return this.authorized((token) => token.stream_url, { headers, cache: "no-store", signal });
  }

  private async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.request(method, path, body);
    try {
      return (await answer.json()) as T;
    } catch (error) {
      throw new ApiError(0, String(error));
    }
  }

  private request(method: string, path: string, body?: unknown): Promise<Response> {
    const url = (token: Token): string =>
      `${this.service ?? new URL(token.stream_url).origin}/api/v1/inbox${path}`;
    const signal = AbortSignal.timeout(REQUEST_SECONDS * 1000);
    const sent = body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    return this.authorized(url, { method, cache: "no-store", signal, ...sent });
  }

  // A token that expires in the middle of anything is replaced once, unseen by the caller.
  private async authorized(url: (token: Token) => string, init: RequestInit): Promise<Response> {
    const token = await this.tokens.get();
    const answer = await this.send(url(token), init, token);
    if (answer.status !== 401) return check(answer);
    await this.tokens.refuse(token);
    const next = await this.tokens.get();
    // What one person asked for is not done in the name of the next.
    if (next.user_id !== token.user_id) throw new ApiError(403, "Another person has signed in.");
    return check(await this.send(url(next), init, next));
  }

  private async send(url: string, init: RequestInit, token: Token): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Bearer ${token.token}` };
    try {
      return await this.fetcher(url, { ...init, headers, credentials: "omit" });
    } catch (error) {
      throw new ApiError(0, String(error));
    }
  }
}

async function check(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  const seconds = Number(answer.headers.get("Retry-After"));
  const body = (await answer.json().catch(() => null)) as { detail?: string } | null;
  const detail = body?.detail ?? `The service answered ${answer.status}.`;
  throw new ApiError(answer.status, detail, seconds > 0 ? seconds : null);
}
