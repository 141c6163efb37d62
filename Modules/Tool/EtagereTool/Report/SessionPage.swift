#if Demo
import CacheTelemetry
import CommandIO
import Etagere
import Foundation

/// A page that shows the loads of a session: an overview, a histogram, and for each group a waterfall and a table. It is one file
/// without scripts and without other resources.
struct SessionPage {
  /// The maximum number of rows of a waterfall and of a table. A browser cannot open a page with a million rows.
  static let rowLimit = 500

  let title: String
  let groups: [SessionRecorder.Group]
  let date: Date

  init(_ title: String, _ groups: [SessionRecorder.Group], date: Date = Date()) {
    self.title = title
    self.groups = groups
    self.date = date
  }

  /// Writes the page into what the path names.
  func write(to path: String) throws {
    do throws(CacheError) {
      try OutputFile(path).write(Data(html.utf8))
    } catch {
      Console.complain(error.reason)
      throw ToolFailure(status: .cannotCreate)
    }
  }

  var html: String {
    let loads = groups.flatMap(\.loads)
    return """
      <!doctype html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <title>\(Self.escaped(title))</title>
      <style>
      \(Self.style)
      </style>
      </head>
      <body>
      <header>
      <h1>\(Self.escaped(title))</h1>
      <p>\(date.formatted(.iso8601)) · \(loads.count) loads · \(loads.count { LoadColor($0) == .failed }) failed</p>
      </header>
      <main>
      \(overview)
      \(histogram(loads))
      \(legend)
      \(groups.enumerated().map { section($0.offset, $0.element) }.joined(separator: "\n"))
      </main>
      </body>
      </html>

      """
  }

  // MARK: Overview

  /// The colors that a load of the session has.
  private var colors: [LoadColor] {
    LoadColor.allCases.filter { color in groups.contains { $0.loads.contains { LoadColor($0) == color } } }
  }

  private var overview: String {
    let heads = ["loads"] + colors.map(\.title) + ["requests", "bytes", "mean", "median", "95 %", "longest"]
    let rows = groups.enumerated().map { index, group in
      let times = group.loads.map(\.duration)
      func time(_ share: Double) -> String { Self.time(times.percentile(share)) }
      let cells =
        ["\(times.count)"] + colors.map { color in "\(group.loads.count { LoadColor($0) == color })" }
        + [
          "\(group.loads.reduce(0) { $0 + $1.transfers.count })", Text.bytes(group.loads.reduce(0) { $0 + $1.bytesOnWire }),
          Self.time(times.reduce(.zero, +) / max(1, times.count)), time(0.5), time(0.95), time(1),
        ]
      return "<tr><th scope=\"row\"><a href=\"#group-\(index)\">\(Self.escaped(group.name))</a></th>"
        + cells.map { "<td>\($0)</td>" }.joined() + "</tr>"
    }
    return """
      <section>
      <h2>Overview</h2>
      <div class="scroll"><table class="overview">
      <thead><tr><th scope="col">group</th>\(heads.map { "<th scope=\"col\">\($0)</th>" }.joined())</tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table></div>
      </section>
      """
  }

  private func histogram(_ loads: [LoadRecord]) -> String {
    let bins = DurationHistogram(loads).bins
    let most = max(1, bins.map(\.count).max() ?? 1)
    let columns = bins.map { bin in
      let parts = LoadColor.allCases.reversed().compactMap { color -> String? in
        guard let count = bin.counts[color] else { return nil }
        return "<i class=\"\(color.rawValue)\" style=\"height:\(Self.percent(Double(count) / Double(most)))\"></i>"
      }
      let words = LoadColor.allCases.compactMap { color in bin.counts[color].map { "\($0) \(color.title)" } }
      return """
        <li title="\(words.joined(separator: ", "))"><b>\(bin.count == 0 ? "" : "\(bin.count)")</b>\
        <span class="stack">\(parts.joined())</span><small>&lt; \(DurationHistogram.text(bin.bound))</small></li>
        """
    }
    return """
      <section>
      <h2>Durations</h2>
      <ol class="histogram" aria-label="Number of loads by duration">
      \(columns.joined(separator: "\n"))
      </ol>
      </section>
      """
  }

  private var legend: String {
    let sources = colors.map { "<li class=\"\($0.rawValue)\"><i class=\"key\"></i>\($0.title)</li>" }
    let parts = LoadTimeline.Part.allCases.map { "<li><i class=\"key \($0.rawValue)\"></i>\($0.title)</li>" }
    return """
      <section class="legend">
      <h2>Legend</h2>
      <ul>\(sources.joined())</ul>
      <ul class="parts">\(parts.joined())</ul>
      </section>
      """
  }

  // MARK: Groups

  private func section(_ index: Int, _ group: SessionRecorder.Group) -> String {
    let loads = group.loads.sorted { $0.startedAt < $1.startedAt }
    let shown = loads.prefix(Self.rowLimit)
    let start = shown.first?.startedAt ?? Timestamp(seconds: 0)
    let timelines = shown.map { ($0, LoadTimeline($0)) }
    let numbers = Dictionary(shown.enumerated().map { ($0.element.load, $0.offset + 1) }) { first, _ in first }
    let span = timelines.map { $0.0.startedAt - start + $0.1.end }.max() ?? .zero
    let rest = loads.count - shown.count
    return """
      <section id="group-\(index)">
      <h2>\(Self.escaped(group.name))</h2>
      \(axis(span))
      <ol class="waterfall">
      \(timelines.enumerated().map { row($0.offset + 1, $0.element.0, $0.element.1, from: start, span, numbers) }.joined(separator: "\n"))
      </ol>
      \(rest > 0 ? "<p>\(rest) more loads are not shown.</p>" : "")
      <details\(groups.count == 1 ? " open" : "")>
      <summary>Table of \(shown.count) loads</summary>
      \(table(timelines, from: start, numbers))
      </details>
      </section>
      """
  }

  private func axis(_ span: Duration) -> String {
    let step = Self.step(span)
    let ticks = stride(from: 0, through: Int(span / step), by: 1).map { step * $0 }
    let marks = ticks.map { "<span style=\"left:\(Self.percent($0 / span))\">\(Self.time($0, isShort: true))</span>" }
    return
      "<div class=\"axis row\" aria-hidden=\"true\"><span class=\"label\"></span><span class=\"track\">\(marks.joined())</span></div>"
  }

  /// A round step of which at most six fit into the span.
  private static func step(_ span: Duration) -> Duration {
    var unit = Duration.microseconds(1)
    while true {
      for factor in [1, 2, 5] where span / (unit * factor) <= 6 { return unit * factor }
      unit *= 10
    }
  }

  private func row(
    _ number: Int, _ record: LoadRecord, _ timeline: LoadTimeline, from start: Timestamp, _ span: Duration,
    _ numbers: [LoadID: Int]
  ) -> String {
    let offset = record.startedAt - start
    func place(_ from: Duration, _ duration: Duration) -> String {
      "left:\(Self.percent((offset + from) / span));width:\(Self.percent(duration / span))"
    }
    let bars = timeline.bars.map { "<i class=\"\($0.part.rawValue)\" style=\"\(place($0.start, $0.duration))\"></i>" }
    let words = timeline.bars.map { "\($0.part.title) \(Self.time($0.duration))" }
    let note = Self.joined(record, numbers)
    return """
      <li class="row \(LoadColor(record).rawValue)" title="\(Self.escaped((words + [note].compactMap(\.self)).joined(separator: ", ")))">\
      <span class="label"><b>\(number)</b> \(Self.escaped(Self.label(record)))</span>\
      <span class="track"><i class="whole" style="\(place(.zero, timeline.end))"></i>\(bars.joined())</span>\
      <span class="time">\(Self.time(record.duration))</span></li>
      """
  }

  private func table(
    _ timelines: [(LoadRecord, LoadTimeline)], from start: Timestamp, _ numbers: [LoadID: Int]
  ) -> String {
    let heads =
      ["#", "URL", "source", "status", "bytes", "start"] + LoadTimeline.Part.allCases.map(\.title) + ["total"]
    let rows = timelines.enumerated().map { index, load in
      let (record, timeline) = load
      let reason = LoadColor(record) == .cancelled ? nil : record.error ?? record.fallbackReason
      let source = LoadColor(record).title + (reason.map { ": \(Text.kebabCase($0.code.rawValue))" } ?? "")
      let cells =
        [
          [source, Self.joined(record, numbers)].compactMap(\.self).joined(separator: ", "),
          record.transfers.last?.status.map { "\($0)" } ?? "",
          record.transfers.isEmpty ? "" : Text.bytes(record.bytesOnWire), Self.time(record.startedAt - start),
        ]
        + LoadTimeline.Part.allCases.map { part in
          let time = timeline.total(part)
          return time > .zero ? Self.time(time) : ""
        } + [Self.time(record.duration)]
      return
        "<tr class=\"\(LoadColor(record).rawValue)\"><td>\(index + 1)</td><th scope=\"row\">\(Self.escaped(record.url.withoutQuery))</th>"
        + cells.map { "<td>\(Self.escaped($0))</td>" }.joined() + "</tr>"
    }
    return """
      <div class="scroll"><table class="loads">
      <thead><tr>\(heads.map { "<th scope=\"col\">\($0)</th>" }.joined())</tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table></div>
      """
  }

  // MARK: Text

  /// The load that a load joined, by the number of its row.
  private static func joined(_ record: LoadRecord, _ numbers: [LoadID: Int]) -> String? {
    record.joined.map { load in numbers[load].map { "joined load \($0)" } ?? "joined another load" }
  }

  /// The last part of the path, or the host if the path is empty.
  private static func label(_ record: LoadRecord) -> String {
    let url = record.url.withoutQuery
    return url.split(separator: "/").last.map(String.init) ?? url
  }

  private static func time(_ duration: Duration, isShort: Bool = false) -> String {
    if isShort {
      if duration >= .seconds(1) { return "\(Text.decimal(duration / .seconds(1), duration / .seconds(1) < 10 ? 1 : 0)) s" }
      if duration >= .milliseconds(1) || duration == .zero { return "\(Text.decimal(duration / .milliseconds(1), 0)) ms" }
      return "\(Text.decimal(duration / .microseconds(1), 0)) µs"
    }
    return "\(Text.time(Text.milliseconds(duration))) ms"
  }

  private static func percent(_ share: Double) -> String {
    "\(Text.decimal(share.isFinite ? min(100, max(0, share * 100)) : 0, 3))%"
  }

  /// Returns text for an element or an attribute of HTML.
  static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
  }
}

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

/// The loads of a session, in groups, for the page that shows them.
final class SessionRecorder: Sendable {
  /// Loads that belong together, such as those of one pass of the demo.
  struct Group: Sendable {
    var name: String
    /// The time from which loads belong to the group.
    var start = Timestamp.distantPast
    var loads: [LoadRecord] = []
  }

  private final class Groups: Sendable {
    let all = Lock<[Group]>([])

    func add(_ record: LoadRecord) {
      all.withLock { groups in
        guard let index = groups.lastIndex(where: { $0.start <= record.startedAt }) else { return }
        groups[index].loads.append(record)
      }
    }
  }

  /// The observer of all managers of the session.
  let telemetry: Telemetry?
  private let clock: any CacheClock
  private let groups = Groups()

  /// - Parameter clock: The clock of the managers.
  init(clock: any CacheClock = SystemClock()) {
    self.clock = clock
    telemetry = Telemetry([.records { [groups] in groups.add($0) }], clock: clock)
  }

  /// Begins a group. Loads that start from now on belong to it. Loads before the first group are left out.
  func begin(_ name: String) {
    let group = Group(name: name, start: clock.now)
    groups.all.withLock { $0.append(group) }
  }

  /// Returns the groups that have loads, in order. Waits until all work of the loads has ended.
  func finish() async -> [Group] {
    await telemetry?.idle()
    return groups.all.withLock { $0.filter { !$0.loads.isEmpty } }
  }
}
#endif
