// The state of the theme's pages, by names. Its own expressions need eval and globals, which the
// Content-Security-Policy and its build of Alpine.js refuse.
const SIDEBAR = "sidebarDesktopOpen";

document.addEventListener("alpine:init", () => {
  Alpine.data("theme", (name) => theme(name));
  Alpine.data("searchCommand", () => searchCommand());
  Alpine.data("searchForm", () => searchForm());
  Alpine.data("page", (tab) => ({
    activeTab: tab && (getCurrentTab() || tab),
    sidebarMobileOpen: false,
    sidebarDesktopOpen: localStorage.getItem(SIDEBAR) !== "0",
    // A form names its own address, to which a tab's is added.
    window: {
      location: {
        get pathname() {
          return location.pathname;
        },
        get search() {
          return location.search;
        },
      },
    },
    init() {
      this.$watch(SIDEBAR, (isOpen) => localStorage.setItem(SIDEBAR, isOpen ? "1" : "0"));
    },
  }));
  // The focus of a field on a page that the theme hides until its scripts have run.
  Alpine.data("focused", () => ({
    init() {
      this.$nextTick(() => this.$el.focus());
    },
  }));
});
