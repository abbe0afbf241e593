import { NotifyBell, NotifyInbox, NotifyPreferences } from "../src/index.ts";

// Only checked for its types, by those of React 18 and of React 19.
export function Page({ getToken }: { getToken: () => Promise<{ token: string; user_id: string; stream_url: string }> }) {
  return (
    <main>
      <NotifyBell getToken={getToken} locale="pt" onCounts={(event) => console.log(event.detail.unread)} />
      <NotifyInbox
        tokenUrl="/me/notify-token"
        mode="page"
        filter="category:alert"
        onOpen={(event) => event.detail.deep_link && event.preventDefault()}
        onProblem={(event) => console.warn(event.detail.status)}
      />
      <NotifyPreferences getToken={getToken} theme="dark" />
    </main>
  );
}

// @ts-expect-error: the elements have no such property.
export const wrong = <NotifyBell colour="red" />;
