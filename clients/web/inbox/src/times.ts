/** Times as a person reads them. All take the service's time: the browser's clock may be wrong. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Return how long ago something was, in words within a day, otherwise the time of day. */
export function age(at: Date, now: number, language: string): string {
  const passed = Math.max(0, now - at.getTime());
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  if (passed < MINUTE) return format.format(0, "second");
  if (passed < HOUR) return format.format(-Math.floor(passed / MINUTE), "minute");
  if (daysBefore(at, now) === 0) return format.format(-Math.floor(passed / HOUR), "hour");
  return new Intl.DateTimeFormat(language, { timeStyle: "short" }).format(at);
}

/** Return the heading of a day: Today, Yesterday, a weekday within the last week, otherwise the date. */
export function dayName(at: Date, now: number, language: string): string {
  const days = daysBefore(at, now);
  if (days <= 1) {
    const name = new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(-Math.max(days, 0), "day");
    return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
  }
  const isThisYear = at.getFullYear() === new Date(now).getFullYear();
  const date: Intl.DateTimeFormatOptions = isThisYear ? {} : { year: "numeric" };
  const format = days < 7 ? { weekday: "long" } as const : { day: "numeric", month: "long", ...date } as const;
  return new Intl.DateTimeFormat(language, format).format(at);
}

/** Return a moment with its weekday and date. */
export function moment(at: Date, language: string): string {
  const format = { weekday: "short", day: "numeric", month: "short", hour: "numeric", minute: "2-digit" } as const;
  return new Intl.DateTimeFormat(language, format).format(at);
}

/** Return a moment within the next days: its weekday and time. */
export function soon(at: Date, language: string): string {
  return new Intl.DateTimeFormat(language, { weekday: "short", hour: "numeric", minute: "2-digit" }).format(at);
}

/** Return a moment as the value of a `datetime-local` input, in the page's time zone. */
export function inputValue(at: Date): string {
  const [date, time] = [
    [at.getFullYear(), at.getMonth() + 1, at.getDate()],
    [at.getHours(), at.getMinutes()],
  ].map((parts) => parts.map((part) => String(part).padStart(2, "0")));
  return `${date!.join("-")}T${time!.join(":")}`;
}

// By calendar days of the page's time zone, not by 24 hours.
function daysBefore(at: Date, now: number): number {
  const midnight = (day: Date): number => Date.UTC(day.getFullYear(), day.getMonth(), day.getDate());
  return Math.round((midnight(new Date(now)) - midnight(at)) / (24 * HOUR));
}
