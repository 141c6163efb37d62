#if Tool && Service
import ImageService

extension DemoPage {
  /// Returns the page, which loads no other document.
  ///
  /// - Parameter nonce: The value that allows the style and the script of this response (Content Security Policy 3, §2.3.1).
  func html(nonce: String) -> String {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Image service · Etagere</title>
    <link rel="icon" href="data:,">
    <style nonce="\(nonce)">
    \(Self.style)
    </style>
    </head>
    <body>
    <header>
    <h1>Image service</h1>
    <p>Makes the URL of an image, signs it for one hour, and requests it three times. This page is for trials and not for
    production: it signs a URL for every client that can reach it.</p>
    </header>
    <main>
    <form autocomplete="off">
    <div class="field wide">
    <label for="source">Source</label>
    <input id="source" name="source" list="sources" required spellcheck="false" autocapitalize="off"
      placeholder="\(SessionPage.escaped(example))" aria-describedby="source-hint">
    <datalist id="sources">
    \(suggestions.map { "<option value=\"\(SessionPage.escaped($0))\">" }.joined(separator: "\n"))
    </datalist>
    <small id="source-hint">Allowed sources:
    \(allowedPrefixes.map { "<code>\(SessionPage.escaped($0))</code>" }.joined(separator: ", "))</small>
    </div>
    \(presetField)
    <div class="field">
    <label for="width">Width</label>
    <input id="width" name="width" type="number" min="1" max="\(settings.limits.maximumSide)" value="400" inputmode="numeric">
    </div>
    <div class="field">
    <label for="height">Height</label>
    <input id="height" name="height" type="number" min="1" max="\(settings.limits.maximumSide)" inputmode="numeric">
    </div>
    <div class="field">
    <label for="mode">Width and height</label>
    <select id="mode" name="mode">
    <option value="fit">fit inside</option>
    <option value="fill">fill and cut</option>
    </select>
    </div>
    <div class="field">
    <label for="format">Format</label>
    <select id="format" name="format">
    <option value="auto">auto</option>
    \(formats.map { "<option value=\"\($0.name.lowercased())\">\($0.name)</option>" }.joined(separator: "\n"))
    </select>
    </div>
    <div class="field">
    <label for="quality">Quality</label>
    <input id="quality" name="quality" type="number" min="1" max="100" placeholder="80" inputmode="numeric">
    </div>
    <div class="field wide">
    <label for="more">More operations</label>
    <input id="more" name="more" spellcheck="false" autocapitalize="off" placeholder="gray,radius=8">
    </div>
    <p class="wide">Operations: <code id="operations"></code></p>
    <button id="submit">Sign and load</button>
    </form>
    <p id="message" role="status"></p>
    <section id="signed" aria-label="URL" hidden>
    <label for="url">Signed URL</label>
    <div class="copy"><input id="url" readonly><button type="button" id="copy">Copy</button></div>
    </section>
    <section id="result" aria-label="Result" hidden>
    <figure><img id="image" alt=""></figure>
    <table>
    <caption>Three requests for the URL</caption>
    <thead>
    <tr><td></td><th scope="col">First</th><th scope="col">Second</th><th scope="col">If-None-Match</th></tr>
    </thead>
    <tbody>
    \(Self.facts.map { fact in
      "<tr data-fact=\"\(fact.name)\"><th scope=\"row\">\(fact.title)</th><td></td><td></td><td></td></tr>"
    }.joined(separator: "\n"))
    </tbody>
    </table>
    </section>
    </main>
    <noscript><p>This page needs scripts: they read the header fields of responses and measure times.</p></noscript>
    <script nonce="\(nonce)">
    \(Self.script)
    </script>
    </body>
    </html>

    """
  }

  /// The rows of the table. The script uses the names.
  private static let facts = [
    (name: "status", title: "Status"), (name: "size", title: "Pixels"), (name: "type", title: "Type"),
    (name: "bytes", title: "Body"), (name: "time", title: "Time"), (name: "cache", title: "Cache"),
  ]

  private var folderNames: [String] {
    settings.folders.compactMap { $0.split(separator: "=", maxSplits: 1).first.map(String.init) }
  }

  /// The starts of all allowed sources.
  private var allowedPrefixes: [String] { folderNames.map { "\($0)/…" } + settings.origins }

  /// The starts that the source field suggests. The host `*.example.com` stands for other hosts and is not part of a URL.
  private var suggestions: [String] {
    folderNames.map { "\($0)/" } + settings.origins.filter { !$0.contains("*") }.map { $0.hasSuffix("/") ? $0 : "\($0)/" }
  }

  private var example: String { "\(suggestions.first ?? "https://photos.example.com/")cat.jpg" }

  private var presetField: String {
    guard !settings.presets.isEmpty else { return "" }
    let options = settings.presets.sorted { $0.key < $1.key }.map { name, operations in
      "<option value=\"\(SessionPage.escaped(name))\">\(SessionPage.escaped("\(name): \(operations)"))</option>"
    }
    return """
      <div class="field wide">
      <label for="preset">Preset</label>
      <select id="preset" name="preset">
      <option value="">none</option>
      \(options.joined(separator: "\n"))
      </select>
      </div>
      """
  }

  private static let style = """
    :root {
      color-scheme: light dark;
      --page: #f6f5f2; --card: #fff; --line: #d5d2ca; --text: #1d1d21; --soft: #5d5b63; --accent: #2f4fd0; --on-accent: #fff;
      --failed: #b3261e; --tile: #e8e6e1;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --page: #131317; --card: #1d1d23; --line: #3b3b45; --text: #f0eff4; --soft: #aaa8b5; --accent: #9db1ff;
        --on-accent: #10101a; --failed: #ff8f85; --tile: #2a2a32;
      }
    }
    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    body {
      margin: 0 auto; padding: 1.5rem clamp(.75rem, 3vw, 2rem) 3rem; max-width: 52rem; background: var(--page);
      color: var(--text); font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
    }
    h1 { margin: 0; font-size: 1.6rem; letter-spacing: -.02em; }
    header p { margin: .35rem 0 1.25rem; color: var(--soft); }
    form, section { padding: 1rem; border: 1px solid var(--line); border-radius: .75rem; background: var(--card); }
    form { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(8rem, 100%), 1fr)); gap: .9rem; }
    section { margin-top: 1rem; }
    .wide { grid-column: 1 / -1; margin: 0; }
    .field { display: grid; gap: .25rem; align-content: start; min-width: 0; }
    label { font-size: .85rem; font-weight: 600; }
    small, caption, form p { color: var(--soft); font-size: .85rem; }
    code { font: .85em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
    input, select, button {
      width: 100%; min-width: 0; min-height: 2.75rem; padding: 0 .7rem; border: 1px solid var(--line); border-radius: .5rem;
      background: var(--page); color: var(--text); font: inherit;
    }
    ::placeholder { color: var(--soft); opacity: 1; }
    button { border-color: var(--accent); background: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
    button[aria-disabled=true] { opacity: .6; cursor: progress; }
    form button { grid-column: 1 / -1; }
    :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
    #message { min-height: 1.45em; margin: 1rem 0 0; overflow-wrap: anywhere; }
    #message.failed { color: var(--failed); font-weight: 600; }
    .copy { display: flex; gap: .5rem; margin-top: .25rem; }
    .copy input { flex: 1; font: .85rem ui-monospace, "DejaVu Sans Mono", monospace; }
    .copy button { flex: none; width: auto; }
    figure { margin: 0 0 1rem; text-align: center; }
    /* A pattern shows which parts of an image are transparent. */
    img {
      max-width: 100%; max-height: 75vh; vertical-align: top;
      background: repeating-conic-gradient(var(--tile) 0 25%, var(--card) 0 50%) 0 0 / 1.25rem 1.25rem;
    }
    table { width: 100%; border-collapse: collapse; table-layout: fixed; font-size: .9rem; font-variant-numeric: tabular-nums; }
    caption { padding-bottom: .4rem; text-align: left; }
    th, td { padding: .35rem .3rem; border-top: 1px solid var(--line); text-align: right; overflow-wrap: anywhere; }
    th { font-weight: 600; }
    th[scope=row] { color: var(--soft); text-align: left; }
    thead td { width: 20%; }
    @media (max-width: 30rem) {
      form, section { padding: .75rem; }
      table { font-size: .74rem; }
      th, td { padding-inline: .15rem; }
    }
    """
}
#endif
