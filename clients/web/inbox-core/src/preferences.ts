import type { Preference, PreferenceChoice } from "./types.ts";

type Stored = Readonly<Record<string, Preference>>;
const CHANNEL_FIELDS = ["muted", "channels", "muted_channels"] as const;

/** Return the preference that applies to a type: its own, or else its category's. */
export function preferenceFor(stored: Stored, type: PreferenceChoice): Preference {
  const own = stored[type.slug];
  const isOwn = own !== undefined && CHANNEL_FIELDS.some((name) => own[name] != null);
  return (isOwn ? own : stored[type.category]) ?? {};
}

/** Whether notifications of a type, or by the default of a category, are sent on a channel. */
export function isOn(preference: Preference, channel: string): boolean {
  return !preference.muted && !preference.muted_channels?.includes(channel);
}

/** Return a preference with one channel on or off. `channels` are all that it could use. */
export function switched(
  preference: Preference, channel: string, on: boolean, channels: readonly string[],
): Preference {
  const off = new Set(preference.muted ? channels : preference.muted_channels);
  if (on) off.delete(channel);
  else off.add(channel);
  const preferred = preference.channels?.filter((one) => !off.has(one));
  return {
    ...preference,
    // Null, since the service keeps what isn't named.
    muted: null,
    channels: preferred?.length ? preferred : null,
    muted_channels: channels.filter((one) => off.has(one)),
  };
}

/**
 * Return the preferences after a switch of a category's channel. Its types with a choice of their own
 * follow, so that the switch does what it says.
 */
export function switchCategory(
  stored: Stored, category: string, channel: string, on: boolean, types: readonly PreferenceChoice[],
): Stored {
  const members = types.filter((one) => one.category === category && !one.is_locked);
  const channels = [...new Set(members.flatMap((one) => one.channels))];
  const changed: Record<string, Preference> = {
    ...stored,
    [category]: switched(stored[category] ?? {}, channel, on, channels),
  };
  for (const one of members) {
    const own = stored[one.slug];
    if (own && CHANNEL_FIELDS.some((name) => own[name] != null)) {
      changed[one.slug] = switched(own, channel, on, one.channels);
    }
  }
  return changed;
}

/** Return the preferences after a switch of a type's channel. */
export function switchType(
  stored: Stored, type: PreferenceChoice, channel: string, on: boolean,
): Stored {
  const lead = stored[type.slug]?.notify_before;
  const own = switched(preferenceFor(stored, type), channel, on, type.channels);
  return { ...stored, [type.slug]: { ...own, notify_before: lead ?? null } };
}
