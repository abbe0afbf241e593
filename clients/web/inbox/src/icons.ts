import { svg, type SVGTemplateResult } from "lit";

function icon(path: string, size = 16): SVGTemplateResult {
  return svg`<svg viewBox="0 0 24 24" width=${size} height=${size} aria-hidden="true"><path d=${path}/></svg>`;
}

const BELL = "M6 9a6 6 0 0 1 12 0c0 6 2.5 7 2.5 8h-17c0-1 2.5-2 2.5-8M10 20.5a2.2 2.2 0 0 0 4 0";
export const bell = icon(BELL, 20);
export const largeBell = icon(BELL, 32);
export const check = icon("M5 12.5l4.5 4.5L19 7.5");
export const dot = icon("M12 7a5 5 0 1 0 0 10a5 5 0 0 0 0-10");
export const clock = icon("M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M12 8v4.5l3 1.8");
export const lock = icon("M7 11V8a5 5 0 0 1 10 0v3M5.5 11h13v9h-13z", 12);
export const more = icon("M5 11.5v1M12 11.5v1M19 11.5v1");
export const back = icon("M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3");
export const box = icon("M4 5h16v4H4zM5.5 9v10h13V9M10 13h4");
