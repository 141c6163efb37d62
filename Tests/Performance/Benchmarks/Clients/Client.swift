#if Origin
import Foundation

/// A resource's address as text and as a URL, so that no client pays for a conversion.
struct Address: Sendable {
  let text: String
  let url: URL

  init(_ text: String) throws {
    guard let url = URL(string: text) else { throw BenchmarkFailure("'\(text)' is not a URL") }
    (self.text, self.url) = (text, url)
  }
}

/// One of the compared ways to load a resource. Each reads every body to its end and accepts no status but 200.
protocol Client: Sendable {
  /// Reads the whole body into memory.
  ///
  /// - Parameter inspect: The closure that receives the whole body.
  func load(_ address: Address, _ inspect: @Sendable (UnsafeRawBufferPointer) -> Void) async throws
  /// Reads the body as it arrives, without collecting it.
  ///
  /// - Parameter take: The closure that receives each chunk.
  func stream(_ address: Address, _ take: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) async throws
  /// Reads the body into a file.
  func save(_ address: Address, to file: URL) async throws
  /// Closes the client's connections.
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
