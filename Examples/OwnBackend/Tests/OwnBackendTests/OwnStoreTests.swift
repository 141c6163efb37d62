import CacheTesting
import Foundation
import Testing

@testable import OwnBackend

@Suite("A custom store, as its article shows it")
struct OwnStoreTests {
  @Test("the custom store fulfills the store contract", arguments: StoreContract.cases)
  func contract(_ statement: StoreContract.Case) async throws {
    try await statement.run(on: DictionaryStore())
  }

  @Test("the article contains the compiled source line for line")
  func page() throws {
    let root = URL(filePath: #filePath).appending(path: "../../../../..").standardized
    let articles = root.appending(path: "Modules/Core/Etagere/Etagere.docc/Articles")
    let page = try String(contentsOf: articles.appending(path: "WritingAStore.md"), encoding: .utf8)
    let file = root.appending(path: "Examples/OwnBackend/Sources/OwnBackend/DictionaryStore.swift")
    let source = try String(contentsOf: file, encoding: .utf8)
    let code = source.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix("import ") }
      .joined(separator: "\n").trimmingCharacters(in: .newlines)
    #expect(code.count > 1_000)
    #expect(page.contains(code))
  }
}
