#if Tool
import ArgumentParser
import CommandIO
import Etagere
import Foundation
import HTTPTypes

/// The command `etagere-cli cache stats | list | verify | remove URL | clear`.
struct CacheCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache", abstract: "Show, check or remove what the cache stores.",
    subcommands: [Stats.self, List.self, Verify.self, Remove.self, Clear.self])
}

extension CacheCommand {
  struct Stats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show the number of entries and their size.",
      discussion: """
        An entry is a stored response or a value made from one, such as a thumbnail. The size of an entry is what it occupies in \
        the cache folder. Fresh entries are served without a request. Stale ones are revalidated first.
        """)

    @OptionGroup var cache: CacheOptions
    @OptionGroup var reporting: ReportingOptions

    private struct Report: Encodable {
      var folder: String
      var entries: Int
      var fresh: Int
      var stale: Int
      var bytes: Int64
      var limit: Int64?
    }

    func run() async throws {
      let (path, store) = try cache.open(reporting)
      let entries = try await reading { () async throws(CacheError) in try await store?.entries() ?? [] }
      let now = SystemClock().now
      let fresh = entries.count { $0.metadata.freshness.isFresh(at: now) }
      let report = Report(
        folder: path, entries: entries.count, fresh: fresh, stale: entries.count - fresh,
        bytes: entries.reduce(0) { $0 + ($1.size ?? 0) }, limit: (store?.configuration ?? .init()).sizeLimit)
      guard !reporting.json else { return try Console.json(report) }
      Console.say("folder   \(report.folder)")
      Console.say("entries  \(report.entries) (\(report.fresh) fresh, \(report.stale) stale)")
      Console.say("size     \(Text.bytes(report.bytes))\(report.limit.map { " of \(Text.bytes($0))" } ?? ", no limit")")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the entries: size, age, fresh or stale, entity tag, URL.",
      discussion: """
        The columns have the same meaning as in 'etagere-cli cache stats'. After the URL, in parentheses, are the partition, the \
        request fields that select the response (Vary), and "transformed" for a value that was made from it.
        """)

    @OptionGroup var cache: CacheOptions
    @OptionGroup var reporting: ReportingOptions

    func run() async throws {
      let store = try cache.open(reporting).store
      let now = SystemClock().now
      let entries = try await reading { () async throws(CacheError) in try await store?.entries() ?? [] }
      if !entries.isEmpty { reporting.heading(Self.line("size", "age", "state", "etag", "URL")) }
      for entry in entries.sorted(by: Self.precedes) {
        let entry = await EntryDescription(entry, readingFrom: nil, at: now)
        guard !reporting.json else {
          try Console.json(entry)
          continue
        }
        Console.say(Self.line(Text.bytes(entry.bytes), entry.age, entry.state, entry.etag ?? "-", entry.name))
      }
    }

    private static func precedes(_ a: ListedEntry, _ b: ListedEntry) -> Bool {
      (a.key.resource, a.key.variant, a.key.transform) < (b.key.resource, b.key.variant, b.key.transform)
    }

    private static func line(_ size: String, _ age: String, _ state: String, _ etag: String, _ name: String) -> String {
      [Text.right(size, 10), Text.right(age, 7), Text.left(state, 5), Text.left(etag, 20), name].joined(separator: "  ")
    }
  }

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Read every entry and check every byte of it.",
      discussion: "Exits with status 65 if entries are damaged, unless --repair removed them all.")

    @Flag(help: "Remove damaged entries, and temporary files of processes that have ended.")
    var repair = false

    @OptionGroup var cache: CacheOptions
    @OptionGroup var reporting: ReportingOptions

    private struct Report: Encodable {
      var good: Int
      var bodyBytes: Int64
      var damaged: [String]
      var removed: Int
      var orphans: Int
    }

    func run() async throws {
      let store = try cache.open(reporting).store
      let repair = repair
      let usage = try await reading { () async throws(CacheError) in try await store?.usage() }
      let work = usage.map { "checking \(Text.entries($0.entries)), \(Text.bytes($0.bytes))" } ?? "checking"
      reporting.trace(work)
      let report = try await ProgressBar.during(
        isShown: reporting.showsProgress,
        { "\(ProgressBar.activity(Int($0 / .milliseconds(100)))) \(work), \(Text.seconds($0))" }
      ) {
        try await reading { () async throws(CacheError) in
          guard let store else { return VerificationReport() }
          return repair ? try await store.repair() : try await store.verify()
        }
      }
      let damaged = report.damaged.merging(report.unreadable) { damage, _ in damage }.map { "\($0): \($1)" }.sorted()
      for line in damaged { Console.complain(line) }
      if reporting.json {
        try Console.json(
          Report(
            good: report.good, bodyBytes: report.bodyBytes, damaged: damaged, removed: report.removed, orphans: report.orphans))
      } else {
        Console.say(
          "\(Text.entries(report.good + damaged.count)): \(report.good) good, \(damaged.count) damaged, \(report.removed) removed"
        )
        if report.orphans > 0 {
          reporting.heading("removed \(Text.count(report.orphans, "temporary file", "temporary files")) of ended processes")
        }
      }
      if damaged.count > report.removed { throw ToolFailure(status: .dataError) }
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Remove all entries of a URL.",
      discussion: "Removes every variant and every image that was made from them. Exits with status 1 if there was no entry.")

    @Argument(help: ArgumentHelp("The URL.", valueName: "URL"))
    var url: String

    @OptionGroup var cache: CacheOptions
    @OptionGroup var reporting: ReportingOptions

    func run() async throws {
      let manager = try cache.manager(reporting)
      let url = url
      let count = try await reading { () async throws(CacheError) in
        let request = try ResourceRequest(typed: url)
        let count = try await Self.count(request.url, manager.configuration.store)
        try await manager.remove(request.url)
        return count
      }
      if reporting.json {
        try Console.json(["removed": count])
      } else if count > 0 {
        Console.say("removed \(UserInformation.removed(fromURL: url))")
      }
      guard count > 0 else {
        Console.complain("\(UserInformation.removed(fromURL: url)): not in the cache")
        throw ToolFailure(status: .notCached)
      }
    }

    /// Returns the number of entries of a URL: responses, and values that were made from them.
    private static func count(_ url: URL, _ store: (any CacheStore)?) async throws(CacheError) -> Int {
      guard let store, let uri = ResourceID.uri(of: try HTTPRequest(resource: url)) else { return 0 }
      let resource = ResourceID.make(uri: uri)
      let variants = try await store.variants(of: resource)
      return try await variants.count + store.transforms(of: resource).count
    }
  }

  struct Clear: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Remove all entries.")

    @OptionGroup var cache: CacheOptions
    @OptionGroup var reporting: ReportingOptions

    func run() async throws {
      let (path, store) = try cache.open(reporting)
      let count = try await reading { () async throws(CacheError) in
        guard let store else { return 0 }
        let count = try await store.entries().count
        try await store.removeAll()
        return count
      }
      if reporting.json {
        try Console.json(["removed": count])
      } else {
        Console.say("removed \(Text.entries(count)) from \(path)")
      }
    }
  }
}

/// Reports in one line why the cache cannot be read.
private func reading<Value: Sendable>(_ work: @Sendable () async throws(CacheError) -> Value) async throws -> Value {
  do throws(CacheError) {
    return try await work()
  } catch {
    Console.complain(error.description)
    let status = ExitStatus(error)
    // An error of a file is one of the cache folder here, not one of a local file to load.
    throw ToolFailure(status: status == .noInput || status == .software ? .ioError : status)
  }
}
#endif
