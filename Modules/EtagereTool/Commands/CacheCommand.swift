#if Tool
import ArgumentParser
import Etagere
import Foundation

/// `etagere cache stats | list | verify | remove URL | clear`
struct CacheCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache", abstract: "Looks into the cache, and tidies it.",
    subcommands: [Stats.self, List.self, Verify.self, Remove.self, Clear.self])
}

extension CacheCommand {
  struct Stats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "How much is stored.")

    @OptionGroup var cache: CacheFolder

    private struct Report: Encodable {
      var folder: String
      var entries: Int
      var bytes: Int64
      var limit: Int64?
      var fresh: Int
      var stale: Int
    }

    func run() async throws {
      let store = try cache.open()
      let entries = try await reading { () async throws(CacheError) in try await store.entries() }
      let now = SystemClock().now
      let fresh = entries.count { $0.metadata.freshness.isFresh(at: now) }
      let report = Report(
        folder: store.path, entries: entries.count, bytes: entries.reduce(0) { $0 + ($1.size ?? 0) },
        limit: store.configuration.sizeLimit, fresh: fresh, stale: entries.count - fresh)
      guard !cache.json else { return try Console.json(report) }
      Console.say("folder   \(report.folder)")
      Console.say("entries  \(report.entries) (\(report.fresh) fresh, \(report.stale) to be validated)")
      Console.say("size     \(Text.bytes(report.bytes)) of \(report.limit.map(Text.bytes) ?? "any")")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "What is stored: size, age, freshness, entity tag, URL.")

    @OptionGroup var cache: CacheFolder

    private struct Row: Encodable {
      var url: String
      var variant: String?
      var bytes: Int64
      var status: Int
      var ageSeconds: Double
      var isFresh: Bool
      var etag: String?
      var lastModified: String?
      var revision: String
      var storedAt: String?
      var usedAt: String?
    }

    func run() async throws {
      let store = try cache.open()
      let now = SystemClock().now
      let entries = try await reading { () async throws(CacheError) in try await store.entries() }
      for entry in entries.sorted(by: { $0.key.resource < $1.key.resource }) {
        let metadata = entry.metadata
        let fields = metadata.response.headerFields
        let age = metadata.freshness.age(at: now)
        let isFresh = metadata.freshness.isFresh(at: now)
        guard !cache.json else {
          try Console.json(
            Row(
              url: ResourceID.readable(entry.key.resource), variant: entry.key.variant.isEmpty ? nil : entry.key.variant,
              bytes: metadata.bodyLength ?? 0, status: metadata.response.status.code, ageSeconds: age / .seconds(1),
              isFresh: isFresh, etag: fields[.eTag], lastModified: fields[.lastModified],
              revision: metadata.revision.description, storedAt: entry.storedAt.map { HTTPDate($0).description },
              usedAt: entry.lastUsed.map { HTTPDate($0).description }))
          continue
        }
        Console.say(
          [
            Text.right(Text.bytes(metadata.bodyLength ?? 0), 9), Text.right(Text.seconds(age), 7),
            Text.left(isFresh ? "fresh" : "stale", 5),
            Text.left(fields[.eTag] ?? "-", 20), entry.key.description,
          ].joined(separator: "  "))
      }
    }
  }

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Reads every entry whole and checks it.",
      discussion: "Ends with status 82 when there are damaged entries, unless --repair has removed them.")

    @Flag(help: "Remove damaged entries, and what ended processes left behind.")
    var repair = false

    @OptionGroup var cache: CacheFolder

    private struct Report: Encodable {
      var good: Int
      var bodyBytes: Int64
      var damaged: [String]
      var removed: Int
      var orphans: Int
    }

    func run() async throws {
      let store = try cache.open()
      let repair = repair
      let report = try await reading { () async throws(CacheError) in
        repair ? try await store.repair() : try await store.verify()
      }
      let damaged = report.damaged.merging(report.unreadable) { damage, _ in damage }.map { "\($0): \($1)" }.sorted()
      for line in damaged { Console.complain(line) }
      if cache.json {
        try Console.json(
          Report(
            good: report.good, bodyBytes: report.bodyBytes, damaged: damaged, removed: report.removed, orphans: report.orphans))
      } else {
        Console.say("\(report.good) good (\(Text.bytes(report.bodyBytes))), \(damaged.count) damaged, \(report.removed) removed")
        if report.orphans > 0 { Console.say("\(report.orphans) removed that ended processes had left half written") }
      }
      if damaged.count > report.removed { throw ToolFailure(status: .damagedEntries) }
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Removes a URL, with all its variants.")

    @Argument(help: "The URL.")
    var url: String

    @OptionGroup var cache: CacheFolder

    func run() async throws {
      let manager = try cache.manager()
      let url = url
      let isStored = try await reading { () async throws(CacheError) in
        let request = try ResourceRequest(url)
        guard try await manager.contains(request.url) else { return false }
        try await manager.remove(request.url)
        return true
      }
      if cache.json {
        try Console.json(["removed": isStored ? 1 : 0])
      } else if isStored {
        Console.say("removed \(url)")
      }
      guard isStored else {
        Console.complain("\(url): not in the cache")
        throw ToolFailure(status: .notCached)
      }
    }
  }

  struct Clear: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Removes everything.")

    @OptionGroup var cache: CacheFolder

    func run() async throws {
      let store = try cache.open()
      let count = try await reading { () async throws(CacheError) in
        let count = try await store.entries().count
        try await store.removeAll()
        return count
      }
      if cache.json { try Console.json(["removed": count]) } else { Console.say("removed \(count) entries from \(store.path)") }
    }
  }

  /// Says in one line why the cache can't be read.
  static func reading<Value: Sendable>(
    _ work: @Sendable () async throws(CacheError) -> Value
  ) async throws -> Value {
    do throws(CacheError) {
      return try await work()
    } catch {
      Console.complain(error.description)
      let status = ExitStatus(error)
      throw ToolFailure(status: status == .cannotReadFile || status == .other ? .cacheUnusable : status)
    }
  }
}

private func reading<Value: Sendable>(_ work: @Sendable () async throws(CacheError) -> Value) async throws -> Value {
  try await CacheCommand.reading(work)
}
#endif
