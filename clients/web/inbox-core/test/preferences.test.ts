import { expect, test } from "vitest";
import { isOn, preferenceFor, switchCategory, switchType, type PreferenceChoice } from "../src/index.ts";

const CHANNELS = ["email", "push", "in_app"];

function choice(slug: string, fields: Partial<PreferenceChoice> = {}): PreferenceChoice {
  return { slug, name: slug, category: "transactional", channels: CHANNELS, is_locked: false, ...fields };
}

const paid = choice("paid");
const shipped = choice("shipped");

test("without a choice everything is on", () => {
  expect(CHANNELS.every((one) => isOn(preferenceFor({}, paid), one))).toBe(true);
});

test("a switch of a type leaves its category and other types as they were", () => {
  const stored = switchType({}, paid, "email", false);
  expect(isOn(preferenceFor(stored, paid), "email")).toBe(false);
  expect(isOn(preferenceFor(stored, paid), "push")).toBe(true);
  expect(isOn(preferenceFor(stored, shipped), "email")).toBe(true);
});

test("a type begins with what its category says, because its own choice replaces that", () => {
  const category = { transactional: { muted_channels: ["push"] } };
  const stored = switchType(category, paid, "email", false);
  expect(stored["paid"]!.muted_channels).toEqual(["email", "push"]);
});

test("switching one channel of a muted type on leaves the others off", () => {
  const stored = switchType({ paid: { muted: true } }, paid, "email", true);
  expect(CHANNELS.map((one) => isOn(preferenceFor(stored, paid), one))).toEqual([true, false, false]);
});

test("a switch of a category also switches the types with a choice of their own", () => {
  const own = switchType({}, paid, "push", false);
  const stored = switchCategory(own, "transactional", "email", false, [paid, shipped]);
  expect([paid, shipped].map((one) => isOn(preferenceFor(stored, one), "email"))).toEqual([false, false]);
  expect(isOn(preferenceFor(stored, paid), "push")).toBe(false);
  const again = switchCategory(stored, "transactional", "email", true, [paid, shipped]);
  expect([paid, shipped].map((one) => isOn(preferenceFor(again, one), "email"))).toEqual([true, true]);
});

test("a reminder's lead time stays, and does not count as a choice of channels", () => {
  const stored = { paid: { notify_before: 7200 }, transactional: { muted_channels: ["email"] } };
  expect(isOn(preferenceFor(stored, paid), "email")).toBe(false);
  expect(switchType(stored, paid, "email", true)["paid"]!.notify_before).toBe(7200);
});

test("a preferred channel that is switched off is preferred no more", () => {
  const stored = switchType({ paid: { channels: ["email", "push"] } }, paid, "email", false);
  expect(stored["paid"]).toMatchObject({ channels: ["push"], muted_channels: ["email"] });
});
