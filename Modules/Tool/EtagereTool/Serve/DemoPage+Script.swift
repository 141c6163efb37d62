#if Tool && Service
extension DemoPage {
  /// The script of the page. After each run, `document.body.dataset.runs` is the number of runs.
  static let script = #"""
    "use strict";

    // Without this field, fetch() sends "*/*", for which the service selects JPEG or PNG.
    const accept = "image/avif,image/webp,image/*;q=0.8,*/*;q=0.5";
    const [form, image] = [document.querySelector("form"), document.querySelector("#image")];
    const [submit, copy] = [document.querySelector("#submit"), document.querySelector("#copy")];
    const [message, url] = [document.querySelector("#message"), document.querySelector("#url")];
    const [signed, result] = [document.querySelector("#signed"), document.querySelector("#result")];
    let runs = 0;
    let isRunning = false;

    const milliseconds = (time) => `${time.toFixed(time < 99.95 ? 1 : 0)} ms`;
    const bytes = (count) => (count < 1000 ? `${count} B` : `${(count / 1000).toFixed(1)} kB`);

    function say(text, isFailure = false) {
      message.textContent = text;
      message.classList.toggle("failed", isFailure);
    }

    /** Returns the operations of the form. A preset comes first, because it replaces the settings before it. */
    function operations() {
      const { preset, width, height, mode, format, quality, more } = Object.fromEntries(new FormData(form));
      const list = [];
      if (preset) list.push(`preset=${preset}`);
      if (width && height) list.push(`${mode}=${width}x${height}`);
      else if (width) list.push(`width=${width}`);
      else if (height) list.push(`height=${height}`);
      if (more.trim()) list.push(more.trim());
      if (format !== "auto") list.push(`format=${format}`);
      if (quality) list.push(`quality=${quality}`);
      return list.join(",") || "format=auto";
    }

    /** Returns the error that a response describes (RFC 9457). */
    function problem(status, text) {
      try {
        const { title, detail } = JSON.parse(text);
        if (title || detail) return new Error([`${status} ${title ?? ""}`.trim(), detail].filter(Boolean).join(": "));
      } catch {}
      return new Error(`${status}: ${text.trim().slice(0, 200) || "a response without a reason"}`);
    }

    async function sign(source, operations) {
      const response = await fetch("/demo/sign", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ source, operations }),
      });
      const text = await response.text();
      if (!response.ok) throw problem(response.status, text);
      return JSON.parse(text).path;
    }

    /** Loads a path from the service. The mode "no-store" keeps the browser's own cache from serving the response. */
    async function load(path, conditions = {}) {
      const begun = performance.now();
      const response = await fetch(path, { cache: "no-store", headers: { Accept: accept, ...conditions } });
      const body = await response.blob();
      const time = performance.now() - begun;
      if (!response.ok && response.status !== 304) throw problem(response.status, await body.text());
      return { response, body, time, size: response.ok ? await size(body) : undefined };
    }

    /** Returns the size of an image in pixels. */
    async function size(body) {
      const [image, address] = [new Image(), URL.createObjectURL(body)];
      try {
        image.src = address;
        await image.decode();
        return `${image.naturalWidth} × ${image.naturalHeight}`;
      } catch {
        throw new Error(`the browser cannot show the response as an image (${body.type || "no type"})`);
      } finally {
        URL.revokeObjectURL(address);
      }
    }

    /** Returns the last member of Cache-Status in words. It is that of the service (RFC 9211 §2). */
    function cache(response) {
      const field = response.headers.get("Cache-Status");
      if (!field) return "not stated";
      const parameters = new Map(field.split(",").at(-1).split(";").slice(1).map((text) => text.trim().split("=")));
      const detail = parameters.get("detail");
      if (parameters.has("hit")) return detail ? `hit, ${detail}` : "hit";
      if (parameters.get("fwd-status") === "304") return "revalidated";
      return parameters.has("fwd") ? `no hit: ${parameters.get("fwd")}` : "no hit";
    }

    function show(column, loaded) {
      const facts = loaded && {
        status: `${loaded.response.status} ${loaded.response.statusText}`.trim(), size: loaded.size ?? "–",
        type: loaded.size ? loaded.response.headers.get("Content-Type") ?? "not stated" : "–", bytes: bytes(loaded.body.size),
        time: milliseconds(loaded.time), cache: cache(loaded.response),
      };
      for (const row of result.querySelectorAll("[data-fact]")) {
        const cell = row.cells[column];
        cell.textContent = facts?.[row.dataset.fact] ?? "–";
        cell.title = row.dataset.fact === "cache" ? loaded?.response.headers.get("Cache-Status") ?? "" : "";
      }
    }

    async function run() {
      const text = operations();
      say("Loading …");
      signed.hidden = result.hidden = true;
      const path = await sign(form.elements.source.value.trim(), text);
      url.value = new URL(path, location.href).href;
      signed.hidden = false;
      const first = await load(path);
      const second = await load(path);
      const tag = first.response.headers.get("ETag");
      const third = tag ? await load(path, { "If-None-Match": tag }) : undefined;
      URL.revokeObjectURL(image.src);
      image.src = URL.createObjectURL(first.body);
      image.alt = `Result of ${text}`;
      await image.decode();
      [first, second, third].forEach((loaded, index) => show(index + 1, loaded));
      result.hidden = false;
      say(`${first.size} pixels, ${bytes(first.body.size)}. First request: ${milliseconds(first.time)} ` +
        `(${cache(first.response)}). Second request: ${milliseconds(second.time)} (${cache(second.response)}).`);
    }

    const describe = () => { document.querySelector("#operations").textContent = operations(); };
    for (const event of ["input", "change"]) form.addEventListener(event, describe);
    describe();

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (isRunning) return;
      isRunning = true;
      submit.ariaDisabled = "true";
      try {
        await run();
      } catch (error) {
        say(error.message, true);
      }
      submit.ariaDisabled = "false";
      isRunning = false;
      runs += 1;
      document.body.dataset.runs = runs;
    });

    copy.addEventListener("click", async () => {
      url.select();
      // The clipboard API exists for TLS and loopback only.
      const isCopied = navigator.clipboard
        ? await navigator.clipboard.writeText(url.value).then(() => true, () => false)
        : document.execCommand("copy");
      say(isCopied ? "The URL is copied." : "The browser did not copy the URL. It is selected.", !isCopied);
    });
    """#
}
#endif
