#if Origin
import CacheCore
import CacheManager
import Foundation

/// A client that uses a `ResourceManager` with an engine, a validator, and optionally a memory store. It has no disk store.
struct ManagerClient: Client {
  private let manager: ResourceManager
  private let open: OpenDownloader

  /// The layers of a manager that can load into a file.
  static let fileLayers: [ClientKind.Layer] = [.manager]

  init(_ manager: ResourceManager, _ open: OpenDownloader) { (self.manager, self.open) = (manager, open) }

  func load(_ address: Address, _ inspect: @Sendable (UnsafeRawBufferPointer) -> Void) async throws {
    let resource = try await manager.load(address.url)
    guard resource.source == .network else { throw BenchmarkFailure("\(address.text) came from \(resource.source)") }
    resource.data.withUnsafeBytes(inspect)
  }

  func stream(_ address: Address, _ take: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) async throws {
    throw BenchmarkFailure("the manager loads whole resources or files")
  }

  func save(_ address: Address, to file: URL) async throws {
    let resource = try await manager.load(address.url, to: file)
    guard resource.source == .network else { throw BenchmarkFailure("\(address.text) came from \(resource.source)") }
  }

  func close() async {
    await manager.close()
    await open.close()
  }
}
#endif
