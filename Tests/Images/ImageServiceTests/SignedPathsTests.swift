#if Service
import CacheTesting
import HTTPTypes
import Testing

@testable import ImageService

@Suite("Remembered paths")
struct SignedPathsTests {
  private let paths = SignedPaths([.random()])

  /// Asks for a path, and returns whether its signature was checked again.
  private func isChecked(_ path: String) throws -> Bool {
    var isChecked = false
    _ = try paths.signed(path) { _ throws(CacheError) in
      isChecked = true
      return SignedPath(
        operations: try ImageOperations("gray", maximumSide: 10),
        source: HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil),
        constant: nil)
    }
    return isChecked
  }

  @Test("a path is checked once, until the keys change")
  func keys() throws {
    #expect(try isChecked("/a"))
    #expect(try !isChecked("/a"))
    paths.setKeys([.random()])
    #expect(try isChecked("/a"))
  }

  @Test("a path that is verified while the keys change is not remembered")
  func changeMeanwhile() throws {
    _ = try paths.signed("/a") { _ throws(CacheError) in
      paths.setKeys([.random()])
      return SignedPath(
        operations: try ImageOperations("gray", maximumSide: 10),
        source: HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil),
        constant: nil)
    }
    #expect(try isChecked("/a"))
  }

  @Test("used paths stay among the latest 8,192, and others are forgotten")
  func limit() throws {
    for number in 0..<20_000 {
      _ = try isChecked("/\(number)")
      _ = try isChecked("/used")
    }
    #expect(try !isChecked("/19999"))
    #expect(try !isChecked("/used"))
    #expect(try isChecked("/0"))
  }

  @Test("a path of more than 1,024 bytes is checked each time, and so is one that is not valid")
  func exceptions() throws {
    let long = "/" + String(repeating: "a", count: 1_024)
    #expect(try isChecked(long))
    #expect(try isChecked(long))
    let refused = CacheError(.invalidSignature, reason: "no")
    for _ in 0..<2 {
      #expect(throws: CacheError.self) { try paths.signed("/b") { _ throws(CacheError) in throw refused } }
    }
    #expect(try isChecked("/b"))
  }
}
#endif
