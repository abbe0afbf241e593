/** A notification as `GET /inbox` returns it. Texts are plain text. */
export interface InboxItem {
  readonly id: string;
  readonly type: string;
  readonly category: string;
  readonly subject?: string | null;
  readonly body?: string | null;
  readonly image_url?: string | null;
  readonly deep_link?: string | null;
  readonly payload?: Readonly<Record<string, unknown>> | null;
  readonly delivered_at: string;
  readonly is_read: boolean;
  readonly is_archived: boolean;
  readonly snoozed_until?: string | null;
  readonly actions?: readonly Action[];
  /** The action that the person chose. The first choice stays. */
  readonly action?: string | null;
}

/** A button of a notification. With a link, it is followed. */
export interface Action {
  readonly id: string;
  readonly label: string;
  readonly style: "primary" | "default" | "danger";
  readonly link?: string | null;
}

export interface Counts {
  readonly unread: number;
  readonly unseen: number;
  /** When they were counted, by the database's clock. A greater text is newer. */
  readonly as_of: string;
}

/** The notifications of a list: of a type, a category, or both. */
export interface Filter {
  readonly type?: string;
  readonly category?: string;
}

/** Which notifications of the inbox a list holds. `unread` is a part of `inbox`. */
export type View = "inbox" | "unread" | "snoozed" | "archived";

export interface Page {
  readonly results: readonly InboxItem[];
  readonly next: string | null;
}

/** A person's choice for a category or a type. */
export interface Preference {
  readonly muted?: boolean | null;
  readonly channels?: readonly string[] | null;
  readonly muted_channels?: readonly string[] | null;
  readonly notify_before?: number | null;
}

export interface QuietHours {
  readonly enabled: boolean;
  readonly start: string;
  readonly end: string;
  readonly timezone?: string | null;
}

/** What a person has chosen. A type's preference replaces its category's. */
export interface ChosenPreferences {
  readonly preferences: Readonly<Record<string, Preference>>;
  readonly quiet_hours: QuietHours | null;
}

export interface PreferenceChoice {
  readonly slug: string;
  readonly name: string;
  readonly category: string;
  readonly channels: readonly string[];
  readonly is_locked: boolean;
}

/** The answer of `GET /inbox/preferences`. */
export interface Preferences extends ChosenPreferences {
  readonly types: readonly PreferenceChoice[];
}

/** The answer of `POST /inbox/tokens`, which the app's backend passes on. */
export interface Token {
  readonly token: string;
  readonly user_id: string;
  readonly stream_url: string;
}

export type GetToken = () => Promise<Token>;
export type MarkKind = "read" | "unread" | "archive" | "unarchive" | "unsnooze";

/** A change that the service has not yet confirmed. */
export type Operation =
  | { readonly kind: MarkKind; readonly id: string }
  | { readonly kind: "snooze"; readonly id: string; readonly until: string }
  | { readonly kind: "act"; readonly id: string; readonly action: string }
  | { readonly kind: "read-all" };

/** `live`: by the stream. `polling`: once a minute. `offline`: the service can't be reached. */
export type Connection = "connecting" | "live" | "polling" | "offline";

/** Why something failed. `status` is the HTTP status, or 0 without an answer. */
export interface Problem {
  readonly status: number;
  readonly detail: string;
}

/** An immutable state of the inbox. */
export interface Snapshot {
  readonly items: readonly InboxItem[];
  readonly counts: Counts | null;
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly isLoaded: boolean;
  readonly connection: Connection;
  /** Why the list couldn't be read, until it is. */
  readonly problem: Problem | null;
}
