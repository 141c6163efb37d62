import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CacheManager

@Suite("The tables of all options")
struct OptionTableTests {
  /// Returns the names in the first column of the tables under a heading of the article.
  private func names(under heading: String) throws -> Set<String> {
    let parts = try text(of: "Etagere/Etagere.docc/Articles/Defaults.md").components(separatedBy: "\n### Of a ")
    let part = try #require(parts.first { $0.hasPrefix(heading) }).components(separatedBy: "\n## ")[0]
    return names(in: part)
  }

  /// Returns the names in the first column of tables.
  private func names(in tables: String) -> Set<String> {
    let cells = tables.split(separator: "\n").filter { $0.hasPrefix("| `") }.compactMap { $0.split(separator: "|").first }
    return Set(cells.flatMap { $0.split(separator: "`").filter { !$0.contains { $0 == " " || $0 == "," } } }.map(String.init))
  }

  private func text(of article: String) throws -> String {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    return try String(contentsOf: root.appending(path: "Modules/Core/\(article)"), encoding: .utf8)
  }

  private func properties(of value: Any) -> Set<String> {
    Set(Mirror(reflecting: value).children.compactMap(\.label).map { $0.hasPrefix("_") ? String($0.dropFirst()) : $0 })
  }

  @Test("they list every setting of a manager and every option of a request")
  func complete() throws {
    let settings = properties(of: ResourceManager.Configuration())
    let options = properties(of: RequestOptions())
    #expect(try names(under: "manager") == settings)
    #expect(try names(under: "request alone") == options.subtracting(settings))
    #expect(try replaceable() == settings.intersection(options))
    #expect(try irreplaceable() == settings.subtracting(options))
  }

  /// The options that belong to a load itself, and not to its environment.
  private static let ofLoad: Set<String> = [
    "downloader", "hooks", "alternatives", "callbackQueue", "key", "partition", "reads", "writes", "expiration", "priority",
  ]

  private static let ofEnvironment: [String: @Sendable (inout RequestOptions) -> Void] = [
    "memory": { $0.memory = .disabled }, "store": { $0.store = .disabled }, "validator": { $0.validator = .disabled },
    "observer": { $0.observer = .disabled }, "clock": { $0.clock = ManualClock() },
    "interceptor": { $0.interceptor = .disabled }, "executor": { $0.executor = SteppedExecutor() },
    "policy": { $0.policy = .reload }, "staleFallback": { $0.staleFallback = .never },
    "storagePolicy": { $0.storagePolicy = .originals }, "timeout": { $0.timeout = .seconds(1) },
    "idleTimeout": { $0.idleTimeout = .seconds(1) }, "storeWriteTimeout": { $0.storeWriteTimeout = .disabled },
    "storeReadTimeout": { $0.storeReadTimeout = .disabled }, "acceptedStatuses": { $0.acceptedStatuses = .init(200..<201) },
    "redirectLimit": { $0.redirectLimit = 1 }, "allowsInsecureRedirects": { $0.allowsInsecureRedirects = true },
    "networkAccess": { $0.networkAccess = .cellular }, "maximumBodySize": { $0.maximumBodySize = 1 },
  ]

  @Test("an option of the environment gives a request an environment of its own, and no option is forgotten")
  func environment() throws {
    #expect(Self.ofLoad.union(Self.ofEnvironment.keys) == properties(of: RequestOptions()))
    #expect(Self.ofLoad.isDisjoint(with: Self.ofEnvironment.keys))
    let environment = Environment(ResourceManager.Configuration(), InvalidationLog())
    #expect(try environment.resolving(RequestOptions { $0.key = "a" }) === environment)
    for (name, change) in Self.ofEnvironment {
      #expect(try environment.resolving(RequestOptions(change)) !== environment, "\(name)")
    }
  }

  /// Returns the settings of a manager that a request can replace, according to the last column.
  private func replaceable() throws -> Set<String> {
    let lines = try text(of: "Etagere/Etagere.docc/Articles/Defaults.md").split(separator: "\n")
    return names(in: lines.filter { $0.hasSuffix("| yes |") }.joined(separator: "\n"))
  }

  /// Returns the settings that have a reason why no request can replace them.
  private func irreplaceable() throws -> Set<String> {
    let parts = try text(of: "CacheManager/CacheManager.docc/CacheManager.md").components(separatedBy: "### What no request can")
    return names(in: try #require(parts.dropFirst().first).components(separatedBy: "\n## ")[0])
  }
}
