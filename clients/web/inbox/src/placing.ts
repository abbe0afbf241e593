const GAP = 6;
const EDGE = 8;

/**
 * Show a panel beside its anchor, on the side with room: below or above, and never beyond the window.
 *
 * It is put into the browser's top layer where there is one, so that no ancestor clips or covers it. Styles are set
 * as properties: a content security policy without inline styles allows these.
 */
export function place(panel: HTMLElement, anchor: HTMLElement): void {
  if (panel.isConnected && panel.popover === "manual" && !panel.matches(":popover-open")) panel.showPopover();
  const at = anchor.getBoundingClientRect();
  const [width, height] = [document.documentElement.clientWidth, document.documentElement.clientHeight];
  const below = height - at.bottom - GAP - EDGE;
  const above = at.top - GAP - EDGE;
  panel.style.setProperty("--_room", `${Math.max(below, above)}px`);
  const { offsetWidth, offsetHeight } = panel;
  // Its end edge is at the anchor's, as long as it fits there.
  const isRtl = getComputedStyle(anchor).direction === "rtl";
  const wanted = isRtl ? at.left : at.right - offsetWidth;
  const left = Math.max(EDGE, Math.min(wanted, width - offsetWidth - EDGE));
  const isAbove = offsetHeight > below && above > below;
  const top = isAbove ? at.top - GAP - Math.min(offsetHeight, above) : at.bottom + GAP;
  panel.style.left = `${left}px`;
  panel.style.top = `${top}px`;
}

/** Keep a panel at its anchor while the page scrolls or changes its size. Return a function that ends this. */
export function follow(panel: HTMLElement, anchor: HTMLElement): () => void {
  const move = (): void => place(panel, anchor);
  move();
  const resized = new ResizeObserver(move);
  resized.observe(panel);
  addEventListener("resize", move);
  addEventListener("scroll", move, { capture: true, passive: true });
  return () => {
    resized.disconnect();
    removeEventListener("resize", move);
    removeEventListener("scroll", move, { capture: true });
  };
}
