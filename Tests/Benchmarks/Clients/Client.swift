#if Origin
import Foundation

/// Where a benchmark's resource is, as text and as a URL: nobody is to pay for making one of the other.
struct Address: Sendable {
  let text: String
  let url: URL

  init(_ text: String) throws {
    guard let url = URL(string: text) else { throw BenchmarkFailure("\(text) is no URL") }
    (self.text, self.url) = (text, url)
  }
}

/// One of the ways to have a resource that are compared. Each reads every body to its end, and takes nothing but 200 for an
/// answer.
protocol Client: Sendable {
  /// Reads the whole body into memory.
  ///
  /// - Parameter inspect: is shown all of it, in one piece.
  func load(_ address: Address, _ inspect: @Sendable (UnsafeRawBufferPointer) -> Void) async throws
  /// Reads the body as it comes, and keeps nothing of it.
  ///
  /// - Parameter take: is shown piece after piece.
  func stream(_ address: Address, _ take: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) async throws
  /// Reads the body into a file.
  func save(_ address: Address, to file: URL) async throws
  /// Lets go of connections.
  func close() async throws
}

extension Client {
  func save(_ address: Address, to file: URL) async throws {
    let sink = try FileSink(file)
    try await stream(address) { try sink.append($0) }
    sink.finish()
  }
}
#endif
