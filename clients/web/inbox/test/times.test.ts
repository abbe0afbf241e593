import { expect, test } from "vitest";
import { age, dayName, moment } from "../src/times.ts";

const NOW = new Date(2026, 10, 27, 19, 30).getTime();
const before = (minutes: number): Date => new Date(NOW - minutes * 60_000);

test.each([
  [0, "now"], [0.9, "now"], [1, "1 min. ago"], [59.9, "59 min. ago"], [60, "1 hr. ago"], [19 * 60, "19 hr. ago"],
  [20 * 60, "11:30 PM"], [3 * 24 * 60, "7:30 PM"],
])("what arrived %d minutes ago is shown as %s", (minutes, shown) => {
  expect(age(before(minutes), NOW, "en")).toBe(shown);
});

// https://github.com/flarum/framework/issues/592, https://github.com/tuskyapp/Tusky/issues/2842
test("what arrives by a clock that is ahead is new, not in the future", () => {
  expect(age(before(-3), NOW, "en")).toBe("now");
  expect(dayName(before(-6 * 60), NOW, "en")).toBe("Today");
});

test.each([
  [0, "Today"], [19 * 60, "Today"], [20 * 60, "Yesterday"], [2 * 24 * 60, "Wednesday"], [6 * 24 * 60, "Saturday"],
  [7 * 24 * 60, "November 20"], [400 * 24 * 60, "October 23, 2025"],
])("what arrived %d minutes ago stands under %s", (minutes, day) => {
  expect(dayName(before(minutes), NOW, "en")).toBe(day);
});

test("times are in the page's language", () => {
  expect(age(before(5), NOW, "pt-PT")).toBe("há 5 min");
  expect(dayName(before(24 * 60), NOW, "pt")).toBe("Ontem");
  expect(dayName(before(0), NOW, "ar")).not.toBe("Today");
  expect(moment(before(0), "de")).toContain("27. Nov");
});
