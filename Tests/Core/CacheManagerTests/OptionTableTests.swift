import CacheCore
import CacheManager
import Foundation
import Testing

@Suite("The tables of all options")
struct OptionTableTests {
  /// Returns the names in the first column of the tables under a heading of the article.
  private func names(under heading: String) throws -> Set<String> {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    let file = root.appending(path: "Modules/Core/Etagere/Etagere.docc/Articles/Defaults.md")
    let parts = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n### Of a ")
    let part = try #require(parts.first { $0.hasPrefix(heading) }).components(separatedBy: "\n## ")[0]
    let cells = part.split(separator: "\n").filter { $0.hasPrefix("| `") }.compactMap { $0.split(separator: "|").first }
    return Set(cells.flatMap { $0.split(separator: "`").filter { !$0.contains { $0 == " " || $0 == "," } } }.map(String.init))
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
  }
}
