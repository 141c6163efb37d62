#if Tool
extension SessionPage {
  /// The color says where a response came from, and the pattern which part of the load a bar is. The tables say both in words.
  static let style = """
    :root {
      color-scheme: light dark;
      --back: #fff; --text: #1f2328; --quiet: #59636e; --line: #d1d9e0; --track: #f3f5f7;
      --memory: #1a7f37; --disk: #0e7490; --revalidated: #9a6700; --network: #0969da;
      --scheme-handler: #6e7781; --stale: #8250df; --failed: #cf222e; --cancelled: #953800;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --back: #0d1117; --text: #e6edf3; --quiet: #9198a1; --line: #30363d; --track: #161b22;
        --memory: #3fb950; --disk: #39c5cf; --revalidated: #d29922; --network: #58a6ff;
        --scheme-handler: #8b949e; --stale: #a371f7; --failed: #ff7b72; --cancelled: #f0883e;
      }
    }
    * { box-sizing: border-box; }
    body {
      margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 76rem; background: var(--back); color: var(--text);
      font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
    }
    h1 { font-size: 1.6rem; margin: 0; }
    h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
    header p { margin: .2rem 0 0; color: var(--quiet); }
    a { color: inherit; text-underline-offset: .15em; }
    .memory { --color: var(--memory); } .disk { --color: var(--disk); } .revalidated { --color: var(--revalidated); }
    .network { --color: var(--network); } .scheme-handler { --color: var(--scheme-handler); }
    .stale { --color: var(--stale); } .failed { --color: var(--failed); }
    .cancelled { --color: var(--cancelled); }
    .scroll { overflow-x: auto; }
    table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; min-width: 100%; }
    th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
    thead th { color: var(--quiet); font-weight: 500; position: sticky; top: 0; background: var(--back); }
    th[scope=row], .overview th:first-child, .loads th:nth-child(2) { text-align: left; font-weight: 500; }
    .loads td:nth-child(3) { text-align: left; color: var(--color); }
    .histogram { display: flex; align-items: flex-end; gap: 3px; height: 11rem; margin: 0; padding: 0; list-style: none; }
    .histogram li { flex: 1; min-width: 0; height: 100%; display: grid; grid-template-rows: 1.4rem 1fr 1.6rem; text-align: center; }
    .histogram b { font-size: .75rem; font-weight: 500; align-self: end; }
    .histogram small { font-size: .68rem; color: var(--quiet); white-space: nowrap; overflow: hidden; padding-top: .2rem; }
    .stack { display: flex; flex-direction: column; justify-content: flex-end; height: 100%; border-bottom: 1px solid var(--line); }
    .stack i { background: var(--color); min-height: 2px; }
    .legend ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: 0 0 .4rem; padding: 0; list-style: none; font-size: .85rem; }
    .key { display: inline-block; width: 1.6rem; height: .8rem; margin-right: .4rem; vertical-align: -1px; background: var(--color); }
    .parts { --color: var(--quiet); }
    .waterfall { margin: 0; padding: 0; list-style: none; }
    .row { display: grid; grid-template-columns: 12rem 1fr 5.5rem; gap: .6rem; align-items: center; font-size: .8rem; }
    .waterfall .row:hover { background: var(--track); }
    .label { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .label b { display: inline-block; min-width: 1.9em; color: var(--quiet); font-weight: 400; text-align: right; }
    .time { text-align: right; font-variant-numeric: tabular-nums; color: var(--color); }
    .track { position: relative; height: .85rem; }
    .track i { position: absolute; top: 0; bottom: 0; min-width: 2px; background: var(--color); }
    .track .whole { top: 45%; bottom: 45%; opacity: .5; }
    .axis { color: var(--quiet); margin-bottom: .3rem; border-bottom: 1px solid var(--line); }
    .axis .track { height: 1.2rem; }
    .axis .track span { position: absolute; padding-left: .25rem; border-left: 1px solid var(--line); white-space: nowrap; }
    .key.queue, .track .queue { background: color-mix(in srgb, var(--color) 25%, var(--back)); }
    .key.dns, .track .dns { background: repeating-linear-gradient(90deg, var(--color) 0 1px, transparent 1px 3px); }
    .key.connect, .track .connect { background: repeating-linear-gradient(45deg, var(--color) 0 2px, transparent 2px 5px); }
    .key.tls, .track .tls { background: repeating-linear-gradient(135deg, var(--color) 0 2px, transparent 2px 5px); }
    .key.first-byte, .track .first-byte { background: color-mix(in srgb, var(--color) 55%, var(--back)); }
    .key.decode, .track .decode { background: repeating-linear-gradient(0deg, var(--color) 0 2px, transparent 2px 4px); }
    .key.store, .track .store { background: none; border: 2px solid var(--color); }
    summary { cursor: pointer; margin: .8rem 0 .4rem; color: var(--quiet); font-size: .85rem; }
    @media (max-width: 40rem) {
      body { padding: 1rem .75rem 3rem; }
      .row { grid-template-columns: 1fr 4.8rem; row-gap: 0; }
      .row .label { grid-column: 1 / -1; }
      .axis .label { display: none; }
      .histogram small { writing-mode: vertical-rl; justify-self: center; font-size: .62rem; }
      .histogram li { grid-template-rows: 1.4rem 1fr 3.4rem; }
      .histogram { height: 13rem; }
    }
    @media print {
      :root { color-scheme: light; }
      * { print-color-adjust: exact; }
      body { max-width: none; padding: 0; font-size: 11px; }
      .waterfall li, .histogram, tr { break-inside: avoid; }
      h2 { break-after: avoid; }
    }
    """
}
#endif
