import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Page } from "./use.tsx";

test("a server renders the tags, without a window", () => {
  expect(typeof globalThis.window).toBe("undefined");
  const getToken = async () => ({ token: "t", user_id: "ada", stream_url: "https://stream.example" });
  const markup = renderToStaticMarkup(<Page getToken={getToken} />);
  for (const name of ["notify-bell", "notify-inbox", "notify-preferences"]) expect(markup).toContain(`<${name}`);
});
