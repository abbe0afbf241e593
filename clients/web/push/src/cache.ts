/** What the page keeps for its service worker, and where. */

export const CACHE = "notify-push";
export const BROWSER = "/notify-push-browser";

/** What the registration returned, with which the worker replaces the subscription. */
export interface KeptBrowser {
  readonly service: string;
  readonly id: string;
  readonly token: string;
  readonly key: string;
}
