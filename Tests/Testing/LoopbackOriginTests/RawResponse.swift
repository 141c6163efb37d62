#if Origin
/// A response as received.
struct RawResponse: Sendable {
  var head: String
  var body: [UInt8] = []
  /// The sizes of its chunks.
  var chunks: [Int] = []

  var lines: [String] { head.split(separator: "\r\n").map { String($0) } }

  var status: Int { lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? -1 }

  var text: String { String(decoding: body, as: UTF8.self) }

  /// The values of a field, one per line.
  func values(_ name: String) -> [String] {
    lines.dropFirst().compactMap { line in
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0].lowercased() == name.lowercased() else { return nil }
      return String(parts[1].drop { $0 == " " })
    }
  }

  subscript(_ name: String) -> String? { values(name).first }
}
#endif
