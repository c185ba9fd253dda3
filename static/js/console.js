// The console's own script: one clock for live regions, freshness, keyboard, dirty forms, copy buttons.
// Every page works without it. It runs under script-src 'self': no eval, no inline code.
"use strict";

const root = document.documentElement;
const $ = (selector) => document.querySelector(selector);
const remembered = (store, key) => { try { return store.getItem(key); } catch { return null; } };
const remember = (store, key, value) => { try { store.setItem(key, value); } catch { /* storage is off */ } };

root.dataset.script = ""; // shows what only works with it

// --- The clock: a beat is an event on <body>, so that no trigger needs a filter -----------------------

const freshness = $("#asof");
const pauseButton = $("#pause");
let paused = remembered(sessionStorage, "paused") === "yes";
let missed = 0;
let lastData = Date.now();
let slowUntil = 0;

function selectedInLiveRegion() {
  const selection = document.getSelection();
  return !selection.isCollapsed && selection.anchorNode?.parentElement?.closest("[data-live]");
}

const busy = () => paused || document.hidden || selectedInLiveRegion()
  || $("dialog[open], form[data-dirty], [popover]:popover-open");

const owed = new Set();

function beat(seconds) {
  if (busy()) { owed.add(seconds); return; }
  document.body.dispatchEvent(new CustomEvent(`live-${seconds}s`));
}
function payOwed() {
  if (!owed.size || busy()) return;
  const late = Array.from(owed);
  owed.clear();
  late.forEach(beat);
}

for (const seconds of [5, 10, 60]) {
  const jitter = 0.9 + Math.random() * 0.2;
  setInterval(() => Date.now() >= slowUntil && beat(seconds), seconds * 1000 * jitter);
}
setInterval(payOwed, 500);

function showPause() {
  if (!pauseButton) return;
  pauseButton.setAttribute("aria-pressed", String(paused));
  pauseButton.textContent = paused ? pauseButton.dataset.resume : pauseButton.dataset.pause;
  if (paused) freshness.textContent = freshness.dataset.paused.replace("{time}", freshness.dataset.time);
}

function togglePause() {
  paused = !paused;
  remember(sessionStorage, "paused", paused ? "yes" : "no");
  showPause();
  if (!paused) freshness.textContent = freshness.dataset.text;
}
pauseButton?.addEventListener("click", togglePause);
showPause();

// --- Freshness: two missed beats are "stale", said once; data stays, and can't pass for current -------

const say = (id, text) => { if (text) $(id).textContent = text; };

function missedBeat() {
  missed += 1;
  slowUntil = Date.now() + Math.min(60, 5 * 2 ** (missed - 2)) * 1000;
  if (missed < 2) return;
  const seconds = Math.round((Date.now() - lastData) / 1000);
  freshness.textContent = freshness.dataset.stale.replace("{seconds}", seconds);
  $("#retry").hidden = false;
  if (!("stale" in root.dataset)) say("#announce", freshness.textContent);
  root.dataset.stale = "";
}

function freshData(response) {
  const wasStale = "stale" in root.dataset;
  missed = slowUntil = 0;
  lastData = Date.now();
  delete root.dataset.stale;
  $("#retry").hidden = true;
  const at = response.headers.get("Console-As-Of");
  if (at) {
    const text = response.headers.get("Console-As-Of-Text");
    $("main").dataset.asof = at;
    freshness.dataset.time = text;
    freshness.dataset.text = freshness.dataset.template.replace("{time}", text);
  }
  freshness.textContent = freshness.dataset.text;
  if (wasStale) say("#announce", freshness.dataset.back);
}

$("#retry")?.addEventListener("click", () => { slowUntil = 0; beat(5); beat(10); });

const isLive = (event) => event.detail.ctx.sourceElement.matches("[data-live]");

document.addEventListener("htmx:config:request", (event) => {
  if (!isLive(event)) return;
  // A list's beat asks for exactly the rows on the screen: a poll never moves, adds or removes one.
  const rows = event.detail.ctx.sourceElement.querySelectorAll("[data-row]");
  if (rows.length) {
    event.detail.ctx.request.headers["Console-Rows"] = Array.from(rows, (row) => row.dataset.row).join(",");
  }
});
document.addEventListener("htmx:after:request", (event) => {
  const { status, raw } = event.detail.ctx.response;
  if (status === 401) { $("#signed-out").hidden = false; paused = true; return; }
  if (!isLive(event)) return;
  if (status >= 400) missedBeat(); else freshData(raw);
});
document.addEventListener("htmx:error", (event) => { if (isLive(event)) missedBeat(); });

// --- Focus and announcements around swaps --------------------------------------------------------------

const alertIds = () => new Set(Array.from(document.querySelectorAll("#strips [data-alert]"), (strip) => strip.dataset.alert));
let knownAlerts = alertIds();
let focusRegion = null;

document.addEventListener("htmx:before:swap", () => {
  focusRegion = document.activeElement?.closest("[data-live]")?.id ?? null;
});
document.addEventListener("htmx:after:swap", (event) => {
  if (!isLive(event)) { // a beat takes no focus, and says nothing a second time
    $("[data-focus]")?.focus();
    say("#announce", $("[data-announce]")?.textContent.trim());
  }
  if (focusRegion && document.activeElement === document.body) {
    const region = document.getElementById(focusRegion);
    (region?.querySelector("a[href], button") ?? $("main")).focus();
  }
  const now = alertIds();
  for (const strip of document.querySelectorAll("#strips [data-alert]")) {
    if (!knownAlerts.has(strip.dataset.alert)) say("#announce-alert", strip.querySelector("p").textContent.trim());
  }
  knownAlerts = now;
});

// --- Forms: a changed one holds the clock and asks before it is lost -----------------------------------

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.matches("[data-guard]")) form.dataset.dirty = "";
});
document.addEventListener("submit", (event) => {
  delete event.target.dataset.dirty;
  for (const button of event.target.querySelectorAll("button[data-once]")) {
    // After the browser has read the form: a disabled button sends no value.
    setTimeout(() => { button.disabled = true; if (button.dataset.once) button.textContent = button.dataset.once; });
  }
});
addEventListener("beforeunload", (event) => { if ($("form[data-dirty]")) event.preventDefault(); });

// What must not be lost in silence is sent from here: a failure is said beside the button, which stays.
document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-record]");
  if (!form) return;
  event.preventDefault();
  const button = form.querySelector("button");
  const label = button.textContent;
  form.querySelector(".alarm")?.remove();
  say("#announce-alert", " ");
  const answer = await fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" }).catch(() => null);
  if (answer?.type === "opaqueredirect") { // recorded: the page tells it
    remember(sessionStorage, "recorded", "yes");
    location.reload();
    return;
  }
  button.disabled = false;
  button.textContent = label;
  button.after(Object.assign(document.createElement("p"), { className: "alarm", textContent: form.dataset.record }));
  say("#announce-alert", form.dataset.record);
});
if (remembered(sessionStorage, "recorded") === "yes") {
  remember(sessionStorage, "recorded", "no");
  const told = $("#acknowledged") ?? $(".messages");
  told?.setAttribute("tabindex", "-1");
  told?.focus();
}

// A form that the server keeps as it is typed is clean again with each answer; what was typed since is not.
// An answer is not waited for: what was sent first may reach the server last, so each change is counted.
let typedAt = 0;
let sentAt = 0;
let step = 0;
for (const change of ["input", "change", "click"]) {
  document.addEventListener(change, (event) => {
    const form = event.target.closest("form[data-keeps]");
    if (!form) return;
    form.elements.page.value = performance.timeOrigin;
    form.elements.step.value = ++step;
  }, true);
}
document.addEventListener("input", (event) => { if (event.target.form?.matches("[data-keeps]")) typedAt = Date.now(); });
document.addEventListener("htmx:before:request", (event) => {
  if (event.detail.ctx.sourceElement.closest("form[data-keeps]")) sentAt = Date.now();
});
document.addEventListener("htmx:after:swap", () => {
  const form = $("form[data-keeps]");
  if (form) form.toggleAttribute("data-dirty", typedAt > sentAt);
});

// --- Menus close on Escape and on a press elsewhere ----------------------------------------------------

const openMenus = () => Array.from(document.querySelectorAll("details.states[open]"));
document.addEventListener("pointerdown", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || $("dialog[open]")) return;
  for (const menu of openMenus()) {
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  }
});

// --- Ticked rows: how many, and all of the page at once ------------------------------------------------

const ticks = () => Array.from(document.querySelectorAll('input[name="ticked"]'));

function countTicks() {
  const all = ticks();
  const ticked = all.filter((box) => box.checked).length;
  for (const told of document.querySelectorAll("[data-ticked]")) told.textContent = ticked ? ` (${ticked})` : "";
  const whole = $("#tick-all");
  if (!whole) return;
  whole.checked = ticked > 0 && ticked === all.length;
  whole.indeterminate = ticked > 0 && ticked < all.length;
}
document.addEventListener("change", (event) => {
  if (event.target.id === "tick-all") for (const box of ticks()) box.checked = event.target.checked;
  if (event.target.matches('#tick-all, input[name="ticked"]')) countTicks();
});
document.addEventListener("htmx:after:swap", countTicks);
addEventListener("pageshow", countTicks); // going back, the browser ticks them again

// --- Copy, with a way for plain http -------------------------------------------------------------------

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await copy(button.dataset.copy);
  say("#announce", button.dataset.copied);
  const label = button.textContent;
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = label; }, 1500);
});

// --- Back to a list focuses the row that was opened ----------------------------------------------------

const here = () => `opened ${location.pathname}${location.search}`;
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-row] a[id]");
  if (link) remember(sessionStorage, here(), `${link.id} ${Math.round(scrollY)}`);
});
addEventListener("pageshow", () => {
  const returning = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  const [id, height] = (returning && remembered(sessionStorage, here())?.split(" ")) || [];
  if (!id) return;
  document.getElementById(id)?.focus({ preventScroll: true });
  scrollTo(0, Number(height)); // where the row was, also where the page is made anew
});

// --- Keyboard: a key opens or focuses, it never changes anything ---------------------------------------

const keysDialog = $("#keys");
const keysSwitch = $("#keys-switch");
let keysOff = root.dataset.keys === "off";
let afterG = false;

function showKeysSwitch() {
  if (!keysSwitch) return;
  keysSwitch.setAttribute("aria-pressed", String(keysOff));
}
keysSwitch?.addEventListener("click", () => {
  keysOff = !keysOff;
  document.cookie = `keys=${keysOff ? "off" : "on"}; path=/; max-age=31536000; samesite=lax`;
  showKeysSwitch();
});
showKeysSwitch();
$("#keys-open")?.addEventListener("click", () => keysDialog.showModal());

function moveRow(step) {
  const links = Array.from(document.querySelectorAll("main [data-row] a[id]"));
  const here = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
  links[here < 0 ? 0 : Math.min(links.length - 1, Math.max(0, here + step))]?.focus();
}

// Alt with an arrow moves the binding whose field has focus: the same as its buttons.
function moveBinding(event) {
  const way = { ArrowUp: "up", ArrowDown: "down" }[event.key];
  const button = way && event.target.closest(".editing [data-row]")?.querySelector(`[data-move="${way}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
}

const visible = (selector) => Array.from(document.querySelectorAll(selector)).find((element) => element.checkVisibility());
const keys = {
  "/": () => visible('input[name="q"][type="search"]')?.focus(),
  "?": () => keysDialog?.showModal(),
  p: togglePause,
  j: () => moveRow(1),
  k: () => moveRow(-1),
  x: () => document.activeElement.closest("[data-row]")?.querySelector('input[name="ticked"]')?.click(),
  g: () => { afterG = true; setTimeout(() => { afterG = false; }, 1500); },
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.altKey) { moveBinding(event); return; }
  const field = event.target.closest("input, select, textarea, [contenteditable]");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.target.form?.requestSubmit(); return; }
  if (field || event.ctrlKey || event.metaKey || keysOff || $("dialog[open]")) return;
  const go = afterG ? $(`[data-go="${CSS.escape(event.key)}"]`) : null;
  const near = $(`[data-key="${CSS.escape(event.key)}"]`);
  const action = go ? () => go.click() : near ? () => (near.matches("a") ? near.click() : near.focus()) : keys[event.key];
  afterG = false;
  if (!action) return;
  event.preventDefault();
  action();
});
