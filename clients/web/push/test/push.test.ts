import { expect, test } from "vitest";
import { browserName, isSameKey, obstacle } from "../src/push.ts";

const IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Version/17.5 Mobile/15E148 Safari/604.1";
const OLD_IPHONE = IPHONE.replace("17_5", "16_3").replace("17.5", "16.3");
const IPAD = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.4 Safari/605.1.15";
const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

interface Given {
  userAgent?: string;
  touch?: number;
  standalone?: boolean;
  permission?: string | null;
  secure?: boolean;
  push?: boolean;
}

function page(given: Given = {}): Window & typeof globalThis {
  const { userAgent = CHROME, touch = 0, standalone = false, permission = "default", secure = true, push = true } = given;
  return {
    isSecureContext: secure,
    navigator: { userAgent, maxTouchPoints: touch, standalone, ...(push ? { serviceWorker: {} } : {}) },
    ...(push ? { PushManager: class {} } : {}),
    ...(permission === null ? {} : { Notification: { permission } }),
  } as unknown as Window & typeof globalThis;
}

test("nothing stands in the way of a browser with push", () => {
  expect(obstacle(page())).toBeNull();
  expect(obstacle(page({ permission: "granted" }))).toBeNull();
});

test("an iPhone needs the page on its Home Screen, and before that a newer system", () => {
  expect(obstacle(page({ userAgent: IPHONE, push: false, permission: null }))).toBe("install");
  expect(obstacle(page({ userAgent: OLD_IPHONE, push: false, permission: null }))).toBe("update");
  expect(obstacle(page({ userAgent: IPHONE, standalone: true }))).toBeNull();
});

test("an iPad, which says that it is a Mac, is known by its touch screen", () => {
  expect(obstacle(page({ userAgent: IPAD, touch: 5 }))).toBe("install");
  expect(obstacle(page({ userAgent: IPAD }))).toBeNull();
});

test("a person who refused is not asked again", () => {
  expect(obstacle(page({ permission: "denied" }))).toBe("blocked");
});

test.each([{ secure: false }, { push: false }, { permission: null }])("%o has no push", (given) => {
  expect(obstacle(page(given))).toBe("unsupported");
});

test.each([
  [CHROME, "Chrome on Linux"],
  [IPHONE, "Safari on iPhone"],
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"],
  ["Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0", "Firefox on Android"],
  ["", "Browser"],
])("staff see which browser it is", (userAgent, name) => {
  expect(browserName(userAgent)).toBe(name);
});

test("a key is compared by its bytes", () => {
  const bytes = new Uint8Array([4, 255, 239, 190]).buffer;
  expect(isSameKey(bytes, "BP_vvg")).toBe(true);
  expect(isSameKey(bytes, "BP_vvg==")).toBe(true);
  expect(isSameKey(bytes, "BP_vvw")).toBe(false);
  expect(isSameKey(null, "BP_vvg")).toBe(false);
});
