import {
  isOn, preferenceFor, switchCategory, switchType, type ChosenPreferences, type Inbox, type PreferenceChoice,
  type Preferences, type QuietHours,
} from "@notifyproject/inbox-core";
import { html, nothing, type TemplateResult } from "lit";
import { InboxElement } from "./element.ts";
import * as icons from "./icons.ts";
import * as styles from "./styles.ts";

const NO_QUIET_HOURS: QuietHours = { enabled: false, start: "22:00", end: "07:00" };

/** What reaches a person on which channel, and their quiet hours: `<notify-preferences token-url="…">`. */
export class NotifyPreferences extends InboxElement {
  static override properties = {
    ...InboxElement.properties,
    chosen: { state: true },
    status: { state: true },
  };
  static override styles = [styles.base, styles.preferences];

  declare chosen: Preferences | null;
  declare status: "" | "saved" | "failed";
  private changes = 0;
  private saving = Promise.resolve();

  constructor() {
    super();
    this.chosen = null;
    this.status = "";
  }

  protected override attached(inbox: Inbox): void {
    void this.load(inbox);
  }

  private async load(inbox: Inbox): Promise<void> {
    try {
      this.chosen = await inbox.preferences();
      this.status = "";
    } catch {
      this.status = "failed";
    }
  }

  // One request at a time, in order: of two in parallel, the service may store the earlier choice last.
  private save(chosen: ChosenPreferences): void {
    const inbox = this.current;
    if (inbox === null || this.chosen === null) return;
    const change = (this.changes += 1);
    const { preferences, quiet_hours } = (this.chosen = { ...this.chosen, ...chosen });
    this.saving = this.saving.then(() => this.store(inbox, { preferences, quiet_hours }, change));
  }

  // The last change wins: an answer to an earlier one is not shown.
  private async store(inbox: Inbox, chosen: ChosenPreferences, change: number): Promise<void> {
    try {
      const stored = await inbox.setPreferences(chosen);
      if (change !== this.changes) return;
      this.chosen = stored;
      this.status = "saved";
    } catch {
      if (change === this.changes) await this.load(inbox);
      this.status = "failed";
    }
  }

  protected override render(): TemplateResult {
    const { text, chosen, status } = this;
    if (chosen === null) {
      return html`<div class="frame" part="frame">${status === "failed"
        ? html`<div class="state" part="error" role="alert"><strong>${text.preferencesFailed}</strong>
            <button class="quiet" @click=${() => this.current && this.load(this.current)}>${text.retry}</button></div>`
        : html`<div role="status"><span class="only-spoken">${text.loading}</span>
            ${[1, 2, 3].map(() => html`<div class="bone"></div>`)}</div>`}</div>`;
    }
    const offered = new Set(chosen.types.flatMap((type) => type.channels));
    const used = [...new Set([...Object.keys(text.channels), ...offered])].filter((one) => offered.has(one));
    const categories = [...new Set(chosen.types.map((one) => one.category))];
    return html`<div class="frame" part="frame">
      <table part="table">
        <caption class="only-spoken">${text.preferences}</caption>
        <thead><tr><th scope="col"><span class="only-spoken">${text.topic}</span></th>
          ${used.map((one) => html`<th scope="col">${text.channels[one] ?? one}</th>`)}</tr></thead>
        ${categories.map((one) => this.renderCategory(one, used, chosen))}
      </table>
      ${this.renderQuietHours(chosen.quiet_hours ?? NO_QUIET_HOURS)}
      <p class="saved" role="status">${status === "saved" ? text.saved : status === "failed" ? text.notSaved : ""}</p>
    </div>`;
  }

  private renderCategory(category: string, used: readonly string[], chosen: Preferences): TemplateResult {
    const { text } = this;
    const types = chosen.types.filter((one) => one.category === category);
    const free = types.filter((one) => !one.is_locked);
    const name = text.categories[category] ?? category;
    return html`<tbody part="category">
      <tr class="category"><th scope="rowgroup">${name}</th>
        ${used.map((channel) => {
          const able = free.filter((one) => one.channels.includes(channel));
          if (able.length === 0) return html`<td></td>`;
          const on = able.filter((one) => isOn(preferenceFor(chosen.preferences, one), channel)).length;
          return html`<td>${this.renderSwitch(`${name}: ${text.channels[channel] ?? channel}`, on === able.length,
            on > 0 && on < able.length, (value) => this.save({
              ...chosen, preferences: switchCategory(chosen.preferences, category, channel, value, chosen.types),
            }))}</td>`;
        })}</tr>
      ${types.map((one) => this.renderType(one, used, chosen))}
    </tbody>`;
  }

  private renderType(type: PreferenceChoice, used: readonly string[], chosen: Preferences): TemplateResult {
    const { text } = this;
    return html`<tr part="type"><th scope="row">${type.name}${type.is_locked
        ? html`<small>${icons.lock}${text.locked}</small>` : nothing}</th>
      ${used.map((channel) => {
        if (!type.channels.includes(channel)) return html`<td></td>`;
        const label = `${type.name}: ${text.channels[channel] ?? channel}`;
        const on = type.is_locked || isOn(preferenceFor(chosen.preferences, type), channel);
        return html`<td>${this.renderSwitch(label, on, false, type.is_locked ? null : (value) => this.save({
          ...chosen, preferences: switchType(chosen.preferences, type, channel, value),
        }))}</td>`;
      })}</tr>`;
  }

  private renderSwitch(
    label: string, on: boolean, mixed: boolean, change: ((on: boolean) => void) | null,
  ): TemplateResult {
    return html`<input type="checkbox" aria-label=${label} .checked=${on} .indeterminate=${mixed}
      ?disabled=${change === null}
      @change=${(event: Event) => change?.((event.target as HTMLInputElement).checked)} />`;
  }

  private renderQuietHours(hours: QuietHours): TemplateResult {
    const { text } = this;
    const change = (changes: Partial<QuietHours>): void => {
      const zone = hours.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
      this.save({ ...this.chosen!, quiet_hours: { ...hours, timezone: zone, ...changes } });
    };
    const time = (name: "start" | "end", label: string): TemplateResult => html`<label>${label}
      <input type="time" required .value=${hours[name]} @change=${(event: Event) => {
        const { value } = event.target as HTMLInputElement;
        if (value) change({ [name]: value });
      }} /></label>`;
    return html`<fieldset part="quiet-hours"><legend class="only-spoken">${text.quietHours}</legend>
      <label class="whole"><input type="checkbox" .checked=${hours.enabled}
        @change=${(event: Event) => change({ enabled: (event.target as HTMLInputElement).checked })} />
        <span>${text.quietHours}<small>${text.quietHint}</small></span></label>
      ${hours.enabled ? html`<div class="hours">${time("start", text.from)}${time("end", text.to)}</div>` : nothing}
    </fieldset>`;
  }
}
