import Foundation
import Testing

@Suite("The page about the architecture")
struct ArchitecturePageTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardized

  @Test("the listings of the page consist of lines of the code, in the order of the code")
  func listings() throws {
    let folder = Self.root.appending(path: "Modules/Core/CacheManager/Fetch")
    let page = try String(
      contentsOf: Self.root.appending(path: "Modules/Core/Etagere/Etagere.docc/Articles/Architecture.md"), encoding: .utf8)
    let sources = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .map { try Self.lines(of: String(contentsOf: $0, encoding: .utf8)) }
    // Every second part of the page is a listing.
    let listings = page.components(separatedBy: "\n```").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
    try #require(listings.count == 2)
    for listing in listings.map(Self.lines) {
      #expect(sources.contains { Self.contains($0, listing) }, "\(listing)")
    }
  }

  @Test("the folders and the types of the page exist")
  func names() throws {
    let module = Self.root.appending(path: "Modules/Core/CacheManager")
    let page = try String(
      contentsOf: Self.root.appending(path: "Modules/Core/Etagere/Etagere.docc/Articles/Architecture.md"), encoding: .utf8)
    let inside = try #require(page.components(separatedBy: "## Inside CacheManager").last)
    let names = Set(inside.matches(of: /`([A-Z][A-Za-z]+)(?:\.[a-z][A-Za-z]+)?`/).map { String($0.output.1) })
    let sources = try #require(FileManager.default.enumerator(at: module, includingPropertiesForKeys: nil))
      .compactMap { $0 as? URL }
    let folders = Set(sources.filter(\.hasDirectoryPath).map(\.lastPathComponent))
    let code = try sources.filter { $0.pathExtension == "swift" }.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
    #expect(names.count > 20)
    for name in names where !folders.contains(name) {
      let isDeclared = try code.contains(Regex("(class|struct|enum|protocol) \(name)\\b"))
      #expect(isDeclared || Self.others.contains(name), "\(name)")
    }
    for folder in folders where !folder.hasSuffix(".docc") { #expect(inside.contains("`\(folder)`"), "\(folder)") }
  }

  /// Names of tests, of parts of a type, and of other modules.
  private static let others: Set<String> = ["TransactionCostTests", "DiskCache", "DownloadRequest", "Alternatives"]

  private static func lines(of text: String) -> [Substring] {
    text.split(separator: "\n").map { Substring($0.trimmingCharacters(in: .whitespaces)) }.filter { !$0.isEmpty }
  }

  /// Whether the lines of a listing follow each other in a file, perhaps with other lines between them.
  private static func contains(_ file: [Substring], _ listing: [Substring]) -> Bool {
    var rest = file[...]
    return listing.allSatisfy { line in
      guard let index = rest.firstIndex(of: line) else { return false }
      rest = rest[(index + 1)...]
      return true
    }
  }
}
