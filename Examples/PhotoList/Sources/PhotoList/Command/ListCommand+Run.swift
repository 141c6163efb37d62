import CacheUI
import Foundation
import LoopbackOrigin

extension ListCommand {
  /// The exit statuses of the command.
  enum Status: Int32, Sendable {
    case success = 0
    case differences = 1
    case usage = 64
    case unavailable = 69
  }

  /// Runs the command of these arguments and returns its exit status.
  @MainActor
  static func run(_ arguments: [String]) async -> Status {
    do {
      return try await ListCommand(arguments).run()
    } catch let error as UsageError {
      complain("\(error) (see PhotoList --help)")
      return .usage
    } catch {
      complain("\(error)")
      return .unavailable
    }
  }

  @MainActor
  private func run() async throws -> Status {
    switch self {
    case .help:
      Self.say(Self.usage)
      return .success
    case .measure(let isJSON): return try await Self.measure(isJSON: isJSON)
    case .serve(let port, let lifetime):
      let content = try ListContent()
      let server = try await ImageServer.start(content, lifetime: .seconds(lifetime), port: port, link: ImageServer.slowLink)
      Self.say("serving \(ListRow.all.count) images at \(server.url), fresh for \(lifetime) s")
      try await server.run()
      return .success
    }
  }

  @MainActor
  private static func measure(isJSON: Bool) async throws -> Status {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "etagere-photolist-\(Revision.random())", directoryHint: .isDirectory)
    defer { try? FileManager.default.removeItem(at: folder) }
    let content = try ListContent()
    if !isJSON { say(introduction(content)) }
    let report = try await Comparison.run(content, folder: folder, link: ImageServer.slowLink) { if !isJSON { say($0) } }
    if isJSON {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      say(String(decoding: try encoder.encode(report), as: UTF8.self))
    }
    for difference in report.differences { complain(difference) }
    guard report.differences.isEmpty else { return .differences }
    if !isJSON { say("\nEvery count and every pixel is as expected.") }
    return .success
  }

  private static func introduction(_ content: ListContent) -> String {
    let sizes = zip(ListRow.all, content.files).reduce(into: (symbols: [Int](), photographs: [Int]())) { sizes, pair in
      if pair.0.kind == .symbol { sizes.symbols.append(pair.1.bytes.count) } else { sizes.photographs.append(pair.1.bytes.count) }
    }
    let photographs = sizes.photographs.map { String(format: "%.2f", Double($0) / 1_000_000) }.joined(separator: ", ")
    let (smallest, largest) = (sizes.symbols.min() ?? 0, sizes.symbols.max() ?? 0)
    return """
      \(sizes.symbols.count) images of \(smallest) to \(largest) bytes and photographs of \(photographs) MB.
      The link has 2 Mbit/s and 5 ms in each direction. All rows appear in one turn of the main actor.

      """
  }

  private static func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }

  private static func complain(_ line: String) {
    try? FileHandle.standardError.write(contentsOf: Data("PhotoList: \(line)\n".utf8))
  }
}
