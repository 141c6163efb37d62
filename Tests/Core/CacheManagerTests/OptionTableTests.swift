import CacheCore
import CacheManager
import Foundation
import Testing

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
