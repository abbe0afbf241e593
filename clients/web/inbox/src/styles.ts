import { css } from "lit";

const light = css`
  --_surface: var(--notify-surface, #fff);
  --_text: var(--notify-text, #18181b);
  --_muted: var(--notify-muted, #63636e);
  --_line: var(--notify-line, #e8e8ec);
  --_hover: var(--notify-hover, #f6f6f8);
  --_accent: var(--notify-accent, #4f46e5);
  --_on-accent: var(--notify-on-accent, #fff);
  --_shadow: 0 0 0 1px rgb(0 0 0 / 7%), 0 4px 10px rgb(0 0 0 / 6%), 0 16px 40px rgb(0 0 0 / 12%);
  color-scheme: light;
`;
const dark = css`
  --_surface: var(--notify-surface, #18181b);
  --_text: var(--notify-text, #f4f4f5);
  --_muted: var(--notify-muted, #a1a1aa);
  --_line: var(--notify-line, #2c2c31);
  --_hover: var(--notify-hover, #222226);
  --_accent: var(--notify-accent, #8b8cf8);
  --_on-accent: var(--notify-on-accent, #111113);
  --_shadow: 0 0 0 1px rgb(255 255 255 / 9%), 0 16px 40px rgb(0 0 0 / 60%);
  color-scheme: dark;
`;

export const base = css`
  :host { ${light} font: var(--notify-font, 14px/1.45 system-ui, sans-serif); color: var(--_text); }
  @media (prefers-color-scheme: dark) { :host(:not([theme="light"])) { ${dark} } }
  :host([theme="dark"]) { ${dark} }
  :host([hidden]) { display: none; }
  *, ::before, ::after { box-sizing: border-box; }
  button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
  button:focus-visible, a:focus-visible { outline: 2px solid var(--_accent); outline-offset: -2px; }
  svg { display: block; fill: none; stroke: currentcolor; stroke-width: 1.6; stroke-linecap: round;
    stroke-linejoin: round; }
  .only-spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  @media (prefers-reduced-motion: reduce) { *, ::before, ::after { animation: none !important; transition: none !important; } }
`;

export const bell = css`
  :host { display: inline-block; position: relative; }
  .bell { position: relative; display: grid; place-items: center; width: 40px; height: 40px; border-radius: 10px;
    transition: background 0.12s; }
  .bell:hover, .bell[aria-expanded="true"] { background: var(--_hover); }
  .badge { position: absolute; inset-block-start: 3px; inset-inline-end: 1px; min-width: 18px; height: 18px; padding: 0 5px;
    border-radius: 9px; background: var(--_accent); color: var(--_on-accent); font: 600 11px/18px system-ui, sans-serif;
    font-variant-numeric: tabular-nums; text-align: center; box-shadow: 0 0 0 2px var(--_surface); }
  notify-inbox { position: fixed; z-index: 1000; inset: auto; margin: 0; padding: 0; border: 0; background: none;
    color: inherit; overflow: visible; animation: arrive 0.13s ease-out; }
  @keyframes arrive { from { transform: translateY(-4px); } }
`;

const states = css`
  .state { display: grid; justify-items: center; gap: 4px; padding: 56px 24px 64px; text-align: center; color: var(--_muted); }
  .state svg { margin-block-end: 8px; opacity: 0.7; }
  .state strong { color: var(--_text); font-weight: 600; }
  .state .quiet { margin-block-start: 8px; box-shadow: inset 0 0 0 1px var(--_line); color: var(--_text); }
  .bone { display: grid; gap: 9px; padding: 16px 16px 17px 30px; padding-inline: 30px 16px; border-block-end: 1px solid var(--_line); }
  .bone::before, .bone::after { content: ""; height: 11px; border-radius: 5px; background: var(--_line);
    animation: breathe 1.4s ease-in-out infinite alternate; }
  .bone::before { width: 55%; }
  .bone::after { width: 85%; }
  @keyframes breathe { to { opacity: 0.45; } }
`;

export const inbox = css`
  ${states}
  :host { display: block; }
  :host([mode="popover"]) { width: min(400px, calc(100vw - 16px)); }
  :host([mode="panel"]) { height: 100%; }
  .frame { display: flex; flex-direction: column; overflow: hidden; background: var(--_surface);
    border-radius: var(--notify-radius, 12px); }
  :host([mode="popover"]) .frame { max-height: min(580px, var(--_room, 82vh)); box-shadow: var(--_shadow); }
  :host([mode="panel"]) .frame { height: 100%; border-radius: 0; }
  :host([mode="page"]) .frame { border: 1px solid var(--_line); }
  header { display: flex; align-items: center; gap: 8px; min-height: 52px; padding: 8px 8px 8px 16px;
    padding-inline: 16px 8px; border-block-end: 1px solid var(--_line); }
  h2 { margin: 0; font-size: 15px; font-weight: 600; letter-spacing: -0.01em; }
  .count { padding: 0 7px; border-radius: 9px; background: var(--_hover); color: var(--_muted); font-size: 12px;
    font-weight: 550; line-height: 20px; font-variant-numeric: tabular-nums; }
  .quiet { min-height: 32px; padding: 0 10px; border-radius: 7px; color: var(--_muted); font-size: 13px; font-weight: 500; }
  .quiet:hover { background: var(--_hover); color: var(--_text); }
  header .quiet { margin-inline-start: auto; }
  .views { display: flex; flex: none; gap: 2px; padding: 6px 12px; border-block-end: 1px solid var(--_line); overflow-x: auto; }
  .views button { flex: none; min-height: 30px; padding: 0 10px; border-radius: 7px; color: var(--_muted); font-size: 13px;
    font-weight: 500; white-space: nowrap; }
  .views button:hover { color: var(--_text); }
  .views [aria-pressed="true"] { background: var(--_hover); color: var(--_text); font-weight: 600; }
  h3 { margin: 0; padding: 12px 16px 6px; color: var(--_muted); font-size: 12px; font-weight: 600; }
  ul + h3 { border-block-start: 1px solid var(--_line); }
  .strip { margin: 0; padding: 8px 16px; background: var(--_hover); color: var(--_muted); font-size: 13px; }
  .scroll { overflow-y: auto; overscroll-behavior: contain; flex: 1; }
  ul { margin: 0; padding: 0; list-style: none; }
  li { position: relative; display: flex; border-block-end: 1px solid var(--_line); content-visibility: auto;
    contain-intrinsic-size: auto 76px; transition: background 0.12s; }
  li:last-child { border-block-end: 0; }
  li:hover, li:focus-within { background: var(--_hover); }
  .open { flex: 1; min-width: 0; display: grid; grid-template-columns: 8px auto minmax(0, 1fr);
    padding: 13px 16px 13px 12px; padding-inline: 12px 16px; text-align: start; color: inherit; text-decoration: none; }
  .dot { width: 8px; height: 8px; margin-block-start: 6px; border-radius: 50%; }
  .unread .dot { background: var(--_accent); }
  img { width: 32px; height: 32px; border-radius: 8px; object-fit: cover; margin-block-start: 2px;
    margin-inline-start: 10px; }
  .words { min-width: 0; grid-column: 3; margin-inline-start: 10px; }
  .line { display: flex; gap: 10px; align-items: baseline; }
  .subject { flex: 1; min-width: 0; font-weight: 450; overflow-wrap: anywhere; display: -webkit-box;
    -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
  .unread .subject { font-weight: 600; }
  time { flex: none; color: var(--_muted); font-size: 12px; font-variant-numeric: tabular-nums; }
  .body { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; margin-block-start: 2px;
    color: var(--_muted); font-size: 13px; overflow-wrap: anywhere; }
  .actions { position: absolute; inset-block-start: 7px; inset-inline-end: 10px; display: flex; gap: 2px; padding: 2px;
    border-radius: 9px; background: var(--_surface); box-shadow: 0 0 0 1px var(--_line), 0 2px 6px rgb(0 0 0 / 8%); opacity: 0; }
  li:hover .actions, li:focus-within .actions { opacity: 1; }
  .actions button { display: grid; place-items: center; width: 28px; height: 28px; border-radius: 7px; color: var(--_muted); }
  .actions button:hover { background: var(--_hover); color: var(--_text); }
  @media (hover: hover) { li:hover time, li:focus-within time { visibility: hidden; } }
  .narrow { display: none !important; }
  @media (hover: none), (max-width: 480px) {
    .wide { display: none !important; }
    .actions { inset-block-start: 4px; inset-inline-end: 4px; opacity: 1; box-shadow: none; background: none; padding: 0; }
    .actions .narrow { display: grid !important; width: 40px; height: 40px; }
    .narrow svg { stroke-width: 2.6; }
    .open { padding-inline-end: 48px; }
    li:hover time, li:focus-within time { visibility: visible; }
    .views button { min-height: 36px; }
  }
  li:has(.choices) { flex-direction: column; }
  .choices { display: flex; flex-wrap: wrap; gap: 8px; margin: -3px 16px 13px 30px; margin-inline: 30px 16px; }
  .choices button { min-height: 32px; padding: 0 12px; border-radius: 8px; font-size: 13px; font-weight: 550;
    box-shadow: inset 0 0 0 1px var(--_line); background: var(--_surface); }
  .choices .primary { background: var(--_accent); color: var(--_on-accent); box-shadow: none; }
  .choices .danger { color: light-dark(#b91c1c, #fca5a5); }
  .chosen { align-items: center; gap: 6px; color: var(--_muted); font-size: 13px; }
  .menu { position: fixed; inset: auto; margin: 0; border: 0; display: grid; width: max-content; min-width: 220px;
    max-width: calc(100vw - 16px); padding: 4px; border-radius: 10px; white-space: nowrap; color: var(--_text);
    background: var(--_surface); box-shadow: var(--_shadow); }
  .actions .menu button { display: flex; gap: 10px; width: auto; min-height: 36px; height: auto; padding: 0 10px;
    align-items: center; color: var(--_text); font-size: 13px; }
  .menu time { visibility: visible !important; margin-inline-start: auto; padding-inline-start: 20px; }
  .menu .heading { padding: 10px 10px 4px; color: var(--_muted); font-size: 12px; font-weight: 600; }
  .own { display: grid; grid-template-columns: 1fr auto; gap: 4px 8px; align-items: end; margin-block-start: 4px; padding: 8px 10px 6px;
    border-block-start: 1px solid var(--_line); }
  .own label { display: grid; gap: 4px; color: var(--_muted); font-size: 12px; }
  .own input { min-width: 0; min-height: 36px; padding: 4px 8px; border: 1px solid var(--_line); border-radius: 8px; font: inherit;
    font-size: 13px; color: var(--_text); background: var(--_surface); color-scheme: inherit; }
  .own input:focus-visible { outline: 2px solid var(--_accent); outline-offset: 1px; }
  .actions .menu .own button { padding: 0 12px; font-weight: 550; box-shadow: inset 0 0 0 1px var(--_line); }
  @media (hover: none) { .own input { min-height: 44px; font-size: 16px; } }
  @media (hover: none) { .actions .menu button { min-height: 44px; font-size: 14px; } }
  li:has(.menu) { content-visibility: visible; }
  li:has(.menu) .actions { opacity: 1; }
  .strip { display: flex; align-items: center; justify-content: space-between; gap: 8px; }
  .strip .quiet { color: var(--_accent); font-weight: 600; }
  .more { display: block; width: 100%; min-height: 44px; border-radius: 0; }
`;

export const preferences = css`
  ${states}
  :host { display: block; }
  .frame { overflow: hidden; background: var(--_surface); border: 1px solid var(--_line); border-radius: var(--notify-radius, 12px); }
  table { width: 100%; border-collapse: collapse; }
  th { font-weight: 450; text-align: start; padding: 9px 16px; }
  thead th { padding-block: 12px; color: var(--_muted); font-size: 12px; font-weight: 500; }
  thead th:not(:first-child), td { width: 76px; padding-inline: 4px; text-align: center; vertical-align: middle; line-height: 0; }
  thead th:not(:first-child) { line-height: inherit; }
  tbody { border-block-start: 1px solid var(--_line); }
  .category th { padding-block: 14px 8px; font-weight: 600; }
  .category td { padding-block: 14px 8px; }
  tbody tr:not(.category) th { padding-inline-start: 28px; color: var(--_muted); }
  tbody tr:last-child > * { padding-block-end: 14px; }
  small { display: flex; align-items: center; gap: 4px; color: var(--_muted); font-size: 12px; font-weight: 400; }
  input[type="checkbox"] { width: 18px; height: 18px; margin: 3px; accent-color: var(--_accent); cursor: pointer; }
  input:disabled { cursor: default; opacity: 0.55; }
  input:focus-visible { outline: 2px solid var(--_accent); outline-offset: 1px; }
  fieldset { margin: 0; padding: 14px 16px; border: 0; border-block-start: 1px solid var(--_line); display: flex; flex-wrap: wrap;
    gap: 12px 24px; align-items: center; justify-content: space-between; }
  .whole { display: flex; gap: 12px; align-items: center; font-weight: 600; }
  .hours { display: flex; gap: 16px; color: var(--_muted); font-size: 13px; }
  .hours label { display: flex; gap: 8px; align-items: center; }
  input[type="time"] { font: inherit; color: var(--_text); background: var(--_surface); border: 1px solid var(--_line);
    border-radius: 8px; padding: 5px 8px; min-height: 32px; }
  .saved { min-height: 20px; margin: 0; padding: 0 16px 12px; color: var(--_muted); font-size: 13px; }
  @media (max-width: 480px) { thead th:not(:first-child), td { width: 54px; font-size: 11px; } th { padding-inline: 12px 4px; }
    tbody tr:not(.category) th { padding-inline-start: 18px; } }
`;
