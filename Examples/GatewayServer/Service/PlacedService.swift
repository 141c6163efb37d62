#if Gateway
import CacheCore
import NIOCore
import ServiceLifecycle

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// A server that says which place it could not open.
struct PlacedService<Server: Service>: Service {
  let server: Server
  let place: HostAndPort

  func run() async throws {
    do {
      try await server.run()
    } catch let error as IOError {
      throw CacheError(
        .other, reason: "can't listen on \(place): \(String(cString: strerror(error.errnoCode)))", errno: error.errnoCode,
        underlying: error)
    }
  }
}

extension Service {
  /// The same, with the place in its error.
  func naming(_ place: HostAndPort) -> any Service { PlacedService(server: self, place: place) }
}
#endif
