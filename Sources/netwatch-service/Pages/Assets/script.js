// The live part of a page. The server renders everything: on a change, this script asks for the same page again with part=1, and exchanges
// the parts. Between that, it shows changes of the rows in sight at once. Without it, the page is complete, and reloads by itself.
"use strict";
(() => {
  const words = { up: "up", degraded: "degraded", down: "down", unreachable: "unreachable", unknown: "no result" };
  const styles = { up: "u", degraded: "g", down: "d", unreachable: "r", unknown: "n" };
  const minimumGap = 2000, refresh = 15000, patience = 35000;
  const fresh = () => document.getElementById("fresh");
  const zoneOffset = () => {
    const text = document.querySelector("#fresh time")?.dateTime ?? "";
    const found = /([+-])(\d\d):(\d\d)$/.exec(text);
    return found ? (found[1] === "-" ? -1 : 1) * (found[2] * 60 + +found[3]) * 60000 : 0;
  };
  const offset = zoneOffset();
  const time = (ms) => new Date(ms + offset).toISOString().slice(11, 19);

  let source = null, timer = 0, lastFetch = 0, heard = +(fresh()?.dataset.ts ?? Date.now()), heardAt = performance.now(), running = false, again = false;

  // Freshness: "live", or "last heard" with the time of the last sign of life.
  const showFreshness = () => {
    const element = fresh();
    if (!element) return;
    const isOld = performance.now() - heardAt > patience || element.classList.contains("late");
    const isLive = !isOld && source?.readyState === EventSource.OPEN;
    element.classList.toggle("live", isLive);
    element.classList.toggle("old", isOld);
    document.body.classList.toggle("stalled", isOld);
    const text = element.querySelector("[data-fresh]");
    if (text && (isLive || isOld || source)) {
      const now = isLive ? "live" : isOld ? "last heard " + time(heard) : "connecting, last heard " + time(heard);
      if (text.textContent !== now) text.textContent = now;
    }
  };
  const hear = (ms) => {
    if (ms > heard) heard = ms;
    heardAt = performance.now();
    showFreshness();
  };
  const say = (text) => {
    const region = document.getElementById("say");
    if (region) region.textContent = text;
  };

  // The rows in sight.
  let rows = null;
  const row = (key) => {
    rows ??= new Map([...document.querySelectorAll("tr[data-k]")].map((element) => [element.dataset.k, element]));
    return rows.get(key);
  };
  const roundTrip = (ms) =>
    ms < 0.1 ? ms.toFixed(3) + " ms" : ms < 1 ? ms.toFixed(2) + " ms" : ms < 10 ? ms.toFixed(1) + " ms" : ms < 1000 ? Math.floor(ms) + " ms" : (ms / 1000).toFixed(1) + " s";
  const show = (record) => {
    const element = row(record.id ?? record.target);
    const style = styles[record.status];
    if (!element || !style) return;
    const word = words[record.status];
    const isChanged = !element.classList.contains(style);
    if (element.classList.contains("m")) return;
    element.className = style + (isChanged ? " fresh-row" : "");
    element.querySelector(".t svg")?.setAttribute("class", "s " + style);
    element.querySelector(".t use")?.setAttribute("href", "#" + style);
    const label = element.querySelector(".t .word");
    if (label) label.textContent = word;
    const cause = element.querySelector(".c");
    if (cause) {
      cause.textContent = record.cause ? record.cause.detail.slice(0, 240) + " " : "";
      if (record.cause) {
        const code = document.createElement("code");
        code.textContent = record.cause.layer + "/" + record.cause.code;
        cause.append(code);
      }
    }
    showRoundTrip(element, record);
    if (isChanged) say((element.querySelector(".name")?.textContent ?? "A target") + " is " + word + ".");
  };
  const showRoundTrip = (element, record) => {
    const cell = element?.querySelector(".l");
    if (cell && "rtt_ms" in record) cell.textContent = record.rtt_ms == null ? "" : roundTrip(record.rtt_ms);
  };

  // The parts of the page.
  const address = () => {
    const url = new URL(location.href);
    url.hash = "";
    url.searchParams.set("part", "1");
    return url;
  };
  const exchange = (next) => {
    const focused = document.activeElement;
    const focus = focused?.id ? "#" + CSS.escape(focused.id) : focused?.getAttribute?.("href") ? `[href="${CSS.escape(focused.getAttribute("href"))}"]` : null;
    const open = [...document.querySelectorAll("details[open][id]")].map((element) => element.id);
    for (const part of next.querySelectorAll("[data-part]")) {
      const old = document.getElementById(part.id);
      if (!old) continue;
      const isFocused = focus && old.contains(focused);
      old.replaceWith(document.importNode(part, true));
      if (isFocused) document.querySelector("#" + CSS.escape(part.id) + " " + focus)?.focus({ preventScroll: true });
    }
    rows = null;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    document.title = next.title || document.title;
    const state = document.querySelector("[data-state]")?.dataset.state;
    const icon = document.querySelector("link[rel=icon]");
    const iconAddress = "/favicon.svg" + (state ? "?state=" + encodeURIComponent(state) : "");
    if (icon && icon.getAttribute("href") !== iconAddress) icon.setAttribute("href", iconAddress);
  };
  const load = async () => {
    if (running) { again = true; return; }
    if (document.hidden) return;
    running = true;
    lastFetch = performance.now();
    try {
      const response = await fetch(address(), { signal: AbortSignal.timeout(8000), credentials: "same-origin", cache: "no-store" });
      if (response.ok) {
        const next = new DOMParser().parseFromString(await response.text(), "text/html");
        const stamp = +(next.getElementById("fresh")?.dataset.ts ?? 0);
        const isLate = next.getElementById("fresh")?.classList.contains("old");
        exchange(next);
        if (isLate) fresh()?.classList.add("late");
        if (stamp > heard || !isLate) hear(stamp);
      }
    } catch { /* The freshness shows it. */ }
    running = false;
    showFreshness();
    if (again) { again = false; schedule(0); }
  };
  const schedule = (wait, minimum = minimumGap) => {
    const gap = Math.max(wait, minimum - (performance.now() - lastFetch));
    clearTimeout(timer);
    timer = setTimeout(load, Math.max(120, gap));
  };

  // The stream, only while the page can be seen.
  const read = (event) => {
    try { return JSON.parse(event.data); } catch { return {}; }
  };
  const connect = () => {
    if (source || document.hidden) return;
    // The page has the state up to a record. Without that, the stream would begin with all targets.
    const query = new URLSearchParams({ last_event_id: fresh()?.dataset.seq ?? "" });
    const target = document.getElementById("target")?.dataset.k;
    if (target) query.set("target", target);
    source = new EventSource("/api/v1/events?" + query);
    source.onopen = () => hear(0);
    source.onerror = () => { showFreshness(); };
    const on = (type, action) => source.addEventListener(type, (event) => {
      const record = read(event);
      hear(Date.parse(record.ts) || 0);
      action(record);
    });
    on("hello", () => schedule(0));
    on("target", (record) => {
      if (record.initial) return;
      show(record);
      const isInSight = row(record.id ?? record.target) || target;
      schedule(250, isInSight ? minimumGap : 5000);
    });
    on("probe", (record) => showRoundTrip(row(record.id ?? record.target), record));
    for (const type of ["incident", "path", "gap", "resync"]) on(type, () => schedule(150));
    on("clock", () => {});
  };
  const disconnect = () => {
    source?.close();
    source = null;
    clearTimeout(timer);
    showFreshness();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return disconnect();
    connect();
    schedule(0);
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => { if (event.persisted) { connect(); schedule(0); } });
  setInterval(() => {
    if (document.hidden) return;
    if (performance.now() - lastFetch > refresh) schedule(0);
    showFreshness();
  }, 1000);

  // Copying the evidence.
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(text.value);
      } catch {
        text.select();
        document.execCommand("copy");
      }
      say("The evidence is copied.");
      button.textContent = "Copied";
    });
  }
  lastFetch = performance.now();
  connect();
})();
