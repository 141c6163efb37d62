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

/// A server whose errors name the address that it could not open.
struct PlacedService<Server: Service>: Service {
  let server: Server
  let place: HostAndPort

  func run() async throws {
    do {
      try await server.run()
    } catch let error as IOError {
      throw CacheError(
        .other, reason: "cannot listen on \(place): \(String(cString: strerror(error.errnoCode)))", errno: error.errnoCode,
        underlying: error)
    }
  }
}

extension Service {
  /// Returns the service with the address in its errors.
  func naming(_ place: HostAndPort) -> any Service { PlacedService(server: self, place: place) }
}
#endif
