/// The status page as HTML.
enum StatusHTML {
  static func text(_ document: StatusDocument) -> String {
    let traffic = document.traffic
    var rows: [(String, String)] = [
      ("Origin", document.origin), ("Mode", document.mode), ("Up", "\(document.uptimeSeconds) s"),
      ("Requests", "\(traffic.requests)"), ("Hits", "\(traffic.hits)"), ("Revalidations", "\(traffic.revalidations)"),
      ("Served stale", "\(traffic.stale)"), ("Collapsed", "\(traffic.collapsed)"), ("Misses", "\(traffic.misses)"),
      ("Without a cache", "\(traffic.bypasses)"),
      ("Origin failures", "\(traffic.failures)"), ("Gateway's own responses", "\(traffic.local)"),
      ("Errors", "\(traffic.errors)"), ("Incomplete", "\(traffic.aborted)"),
      ("Bytes sent", "\(traffic.bytesSent)"), ("Bytes saved", "\(traffic.bytesSaved)"),
    ]
    if let store = document.store {
      rows += [
        ("Entries in memory", store.memoryEntries.map(String.init)), ("Bytes in memory", store.memoryBytes.map(String.init)),
        ("Entries on disk", store.diskEntries.map(String.init)), ("Bytes on disk", store.diskBytes.map(String.init)),
      ].compactMap { row in row.1.map { (row.0, $0) } }
    }
    let table = rows.map { "<tr><th>\(escaped($0.0))</th><td>\(escaped($0.1))</td></tr>" }.joined(separator: "\n")
    return """
      <!doctype html>
      <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width">
      <title>Gateway</title>
      <style>
      body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem }
      table { border-collapse: collapse }
      th { font-weight: normal; text-align: left; padding-right: 2rem }
      td { text-align: right; font-variant-numeric: tabular-nums }
      tr { border-bottom: 1px solid #ddd }
      </style>
      <h1>Gateway</h1>
      <table>
      \(table)
      </table>
      <p><a href="/status.json">JSON</a></p>
      </html>

      """
  }

  private static func escaped(_ text: String) -> String {
    text.map { character in
      switch character {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      default: String(character)
      }
    }.joined()
  }
}
