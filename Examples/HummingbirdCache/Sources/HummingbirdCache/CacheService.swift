// A manager as a service of ServiceLifecycle. Copy this file without the `#if` around it.
import CacheManager
import ServiceLifecycle

/// A service that closes a manager when the application shuts down.
///
/// Add it after the downloader and before the services that use the manager, because a group ends its services in the reverse
/// order.
struct CacheService: Service {
  let manager: ResourceManager

  func run() async throws {
    // The manager is also closed if another service has failed, which cancels this one.
    try? await gracefulShutdown()
    await manager.close(within: .seconds(10))
  }
}
