"use strict";

// Images are loaded by fetch(), not by <img src>: a script can't read the header fields of what <img> loads.
//
// The origin keeps the browser's cache from serving the images. Its responses have two sets of directives:
// "CDN-Cache-Control: max-age=3600" (RFC 9213) for the gateway, and "Cache-Control: no-store" for the browser. So each fetch()
// below has the default cache mode and adds no Cache-Control. The mode "no-store" would add "Cache-Control: no-cache", and the
// gateway would revalidate each response, so there would be no hits. If the browser's cache serves a response nevertheless,
// Resource Timing has a transferSize of 0, and the summary says so.

/** The words for each source: in a tile, and in a sentence behind a number. */
const sources = {
  memory: ["memory hit", "from memory"],
  disk: ["disk hit", "from disk"],
  revalidated: ["304 revalidated", "revalidated with a 304"],
  network: ["network", "from the network"],
  stale: ["stale, offline", "stale"],
  failed: ["no response", "without a response"],
};
const buttons = [...document.querySelectorAll("nav button")];
const tiles = [...document.querySelectorAll(".tile")];
const summary = document.querySelector(".summary");
const table = document.querySelector("table");
const keptRuns = 12;
let runs = 0;
let isRunning = false;

const milliseconds = (time) =>
  time < 9.95 ? `${time.toFixed(1)} ms` : time < 9999.5 ? `${Math.round(time).toLocaleString("en")} ms` : `${(time / 1000).toFixed(1)} s`;
const bytes = (count) =>
  count < 1000 ? `${count} B` : count < 999_500 ? `${(count / 1000).toFixed(count < 99_950 ? 1 : 0)} kB` : `${(count / 1e6).toFixed(2)} MB`;
const times = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** The parameters of the last member of Cache-Status, which is that of the gateway (RFC 9211 §2). */
function cacheStatus(field) {
  const member = (field ?? "").split(",").at(-1);
  return Object.fromEntries(
    member.split(";").slice(1).map((parameter) => {
      const [name, value] = parameter.trim().split("=");
      return [name, value ?? true];
    }));
}

function source(response) {
  if (!response.ok) return "failed";
  const status = cacheStatus(response.headers.get("Cache-Status"));
  if (status.hit) return status.detail === "disk" ? "disk" : "memory";
  if (status["fwd-status"] === "304") return "revalidated";
  // The origin sent no response, and the stored one was served in its place.
  if (status.fwd === "stale" && status.detail) return "stale";
  return "network";
}

/** Loads one image, shows it, and returns the facts of its response. */
async function load(tile) {
  const { path, title } = tile.dataset;
  const image = tile.querySelector("img");
  const begun = performance.now();
  // An image that fails does not end the run of the others.
  const response = await fetch(path).catch(() => Response.error());
  const body = response.ok ? await response.blob().catch(() => undefined) : undefined;
  const result = {
    tile, path, ms: performance.now() - begun, source: body ? source(response) : "failed", isFromBrowser: false,
  };
  result.status = response.headers.get("Cache-Status");
  result.age = Number(response.headers.get("Age") ?? 0);
  result.version = Number(/-v(\d+)"$/.exec(response.headers.get("ETag") ?? "")?.[1] ?? 0);
  URL.revokeObjectURL(image.src);
  if (body) {
    image.src = URL.createObjectURL(body);
    image.alt = `${title}, version ${result.version}`;
    await image.decode().catch(() => undefined);
  } else {
    image.removeAttribute("src");
    image.alt = `${title}, no response`;
  }
  image.hidden = !body;
  tile.querySelector(".version").textContent = result.version > 1 ? `v${result.version}` : "";
  result.shown = performance.now() - begun;
  show(result);
  return result;
}

/** Shows the facts of one response in its tile. The origin's bytes are known at the end of the run. */
function show({ tile, source, ms, age, version, status, bytes: sent }) {
  tile.dataset.source = source;
  tile.dataset.version = version;
  tile.dataset.ms = ms;
  if (sent !== undefined) tile.dataset.bytes = sent;
  tile.title = status ?? "";
  tile.querySelector(".status").textContent = status ?? "";
  tile.ariaBusy = "false";
  tile.querySelector(".source").textContent = sources[source][0];
  const facts = [milliseconds(ms), sent === undefined ? "…" : bytes(sent)];
  if (age > 0) facts.push(`age ${age} s`);
  tile.querySelector(".facts").textContent = facts.join(" · ");
}

/** Replaces the times by those of Resource Timing, which begin when the request is sent. A browser sends six requests at a time,
 * and the time in its queue says nothing about a cache. */
function measure(results) {
  const entries = new Map(performance.getEntriesByType("resource").map((entry) => [new URL(entry.name).pathname, entry]));
  for (const result of results) {
    const entry = entries.get(result.path);
    if (!entry || entry.requestStart === 0) continue;
    result.ms = entry.responseEnd - entry.requestStart;
    result.isFromBrowser = entry.transferSize === 0;
  }
}

function cell(row, text, name = "td") {
  const cell = document.createElement(name);
  cell.textContent = text;
  row.append(cell);
  return cell;
}

/** Puts a run above the earlier ones. */
function add(run) {
  const body = document.createElement("tbody");
  const row = body.insertRow();
  const head = cell(row, "", "th");
  head.scope = "row";
  const number = document.createElement("span");
  number.textContent = `${run.number} `;
  head.append(number, run.name);
  for (const text of [milliseconds(run.mean), milliseconds(run.wall), run.origin.requests, bytes(run.origin.bytes)]) cell(row, text);
  const sourcesCell = cell(body.insertRow(), "");
  sourcesCell.colSpan = 5;
  sourcesCell.className = "sources";
  const bar = document.createElement("div");
  bar.className = "bar";
  bar.role = "img";
  bar.ariaLabel = describe(run.counts);
  bar.title = describe(run.counts);
  for (const [source, count] of run.counts) {
    const part = document.createElement("span");
    part.dataset.source = source;
    part.style.flexGrow = count;
    bar.append(part);
  }
  sourcesCell.append(bar);
  table.tHead.after(body);
  while (table.tBodies.length > keptRuns) table.tBodies[keptRuns].remove();
}

/** A sentence about the images that the cache had before the loads. */
function describeLookup(found) {
  const counts = new Map();
  for (const { layer, isFresh } of Object.values(found)) {
    const place = `${isFresh ? "fresh" : "stale"} ${layer === "memory" ? "in memory" : "on disk"}`;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  const parts = [...counts].sort((a, b) => b[1] - a[1]).map(([place, count]) => `${count} ${place}`);
  return `Before, the cache had ${parts.length > 0 ? new Intl.ListFormat("en").format(parts) : "none of them"}.`;
}

const describe = (counts) => counts.map(([source, count]) => `${count} ${sources[source][1]}`).join(", ");

function summarize(run, results) {
  const name = document.createElement("strong");
  name.textContent = run.name;
  const sentences = [
    `: ${times(run.loads, "load")} (${describe(run.counts)}) in ${milliseconds(run.wall)}, ${milliseconds(run.mean)} on average.`,
    describeLookup(run.found),
    run.name === "offline"
      ? "The origin resets connections."
      : `The origin got ${times(run.origin.requests, "request")} and sent ${bytes(run.origin.bytes)}.`,
  ];
  const stale = run.counts.find(([source]) => source === "stale")?.[1] ?? 0;
  if (stale > 0) sentences.push(`${times(stale, "stale image")} ${stale === 1 ? "is" : "are"} shown in its place.`);
  const fromBrowser = results.filter((result) => result.isFromBrowser).length;
  if (fromBrowser > 0) sentences.push(`The browser's own cache served ${times(fromBrowser, "load")}.`);
  summary.replaceChildren(name, sentences.join(" "));
}

async function expectSuccess(response) {
  if (!response.ok) throw new Error((await response.text()).trim());
  return response;
}

/** Prepares a scenario and loads all images. */
async function run(name, scenario) {
  if (isRunning) return;
  isRunning = true;
  for (const button of buttons) {
    button.ariaPressed = String(button.value === name);
    button.ariaDisabled = "true";
  }
  try {
    await expectSuccess(await fetch(`/runs/${scenario}`, { method: "POST" }));
    const found = await (await expectSuccess(await fetch("/runs/lookup"))).json();
    performance.clearResourceTimings();
    for (const tile of tiles) {
      tile.ariaBusy = "true";
      tile.querySelector("img").hidden = true;
    }
    const results = await Promise.all(tiles.map(load));
    const origin = await (await expectSuccess(await fetch("/runs/report"))).json();
    measure(results);
    for (const result of results) show({ ...result, bytes: origin.images[result.path].bytes });
    const counts = Object.keys(sources)
      .map((source) => [source, results.filter((result) => result.source === source).length])
      .filter(([, count]) => count > 0);
    runs += 1;
    const finished = {
      number: runs, name, counts, found, origin, loads: results.length,
      mean: results.reduce((sum, result) => sum + result.ms, 0) / results.length,
      wall: Math.max(...results.map((result) => result.shown)),
    };
    add(finished);
    summarize(finished, results);
  } catch (error) {
    summary.textContent = `The run failed: ${error.message}`;
    for (const tile of tiles) tile.ariaBusy = "false";
  }
  for (const button of buttons) button.ariaDisabled = "false";
  isRunning = false;
  document.body.dataset.runs = runs;
}

for (const button of buttons) button.addEventListener("click", () => run(button.value, button.value));
run("opened", "warm");
