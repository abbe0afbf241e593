const HANDOVER_SECONDS = 5;

/** The tabs of one browser with the same inbox: one leads, and all hear each other. */
export class Tabs<Message> {
  private readonly channel: BroadcastChannel | null;
  private readonly stop = new AbortController();
  private turn = new AbortController();

  /** `lead` runs while this tab leads, until its signal aborts. */
  constructor(
    private readonly name: string,
    private readonly lead: (signal: AbortSignal) => Promise<void>,
    hear: (message: Message) => void,
  ) {
    this.channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(name);
    this.channel?.addEventListener("message", (event: MessageEvent<Message | "visible">) => {
      if (event.data !== "visible") hear(event.data);
      else if (isHidden()) this.turn.abort();
    });
    globalThis.document?.addEventListener("visibilitychange", this.onVisibility);
    void this.run();
  }

  tell(message: Message): void {
    if (!this.stop.signal.aborted) this.channel?.postMessage(message);
  }

  close(): void {
    globalThis.document?.removeEventListener("visibilitychange", this.onVisibility);
    this.stop.abort();
    this.turn.abort();
    this.channel?.close();
  }

  private readonly onVisibility = (): void => {
    // A hidden tab gives its turn up, and takes it again only if no visible tab wants it.
    if (isHidden()) this.turn.abort();
    else this.channel?.postMessage("visible");
  };

  private async run(): Promise<void> {
    const locks = globalThis.navigator?.locks;
    // Without locks (no HTTPS), each tab follows for itself.
    if (locks === undefined) return this.lead(this.stop.signal);
    while (!this.stop.signal.aborted) {
      this.turn = new AbortController();
      const { signal } = this.turn;
      await locks.request(this.name, { signal }, () => this.lead(signal)).catch(() => undefined);
      if (!this.stop.signal.aborted && isHidden()) {
        await new Promise((resolve) => setTimeout(resolve, HANDOVER_SECONDS * 1000));
      }
    }
  }
}

function isHidden(): boolean {
  return globalThis.document?.visibilityState === "hidden";
}
