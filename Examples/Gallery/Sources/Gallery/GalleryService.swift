import CacheCore
import Foundation
import GatewayServer
import HTTPServing
import LoopbackOrigin
import NIOCore
import ServiceLifecycle

/// The settings of the gallery.
struct GallerySettings: Sendable {
  var listen = HostAndPort(host: "127.0.0.1", port: 8080)
  /// The link between the origin and the gateway.
  var link = NetworkLink(bitsPerSecond: 8_000_000, latency: .milliseconds(20))
  /// The folder of the disk cache. It is removed at the end.
  var folder = FileManager.default.temporaryDirectory.appending(path: "etagere-gallery-\(UUID().uuidString)")
}

/// The origin, the gateway in front of it, and the page in front of both.
struct GalleryService: Service {
  let settings: GallerySettings
  let group: any EventLoopGroup
  /// Called with the page's port when it is open.
  var onRunning: @Sendable (Int) async -> Void = { _ in }
  var shutdownIdleTime = TimeAmount.seconds(2)
  /// Whether requests wait for the disk without a limit.
  var waitsForDisk = false

  func run() async throws {
    defer { try? FileManager.default.removeItem(at: settings.folder) }
    let origin = try await GalleryOrigin.start(link: settings.link)
    do {
      try await gateway(origin).run()
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
  }

  private func gateway(_ origin: GalleryOrigin) throws(CacheError) -> GatewayService {
    guard let address = OriginAddress("http://127.0.0.1:\(origin.port)") else {
      throw CacheError(.invalidConfiguration, reason: "invalid address of the origin")
    }
    var gateway = GatewaySettings(origin: address, listen: settings.listen)
    gateway.shutdownIdleTime = shutdownIdleTime
    gateway.cache = CacheSettings {
      // The largest body in memory is a sixteenth of this: 128 KiB. Larger images are cached only on disk.
      $0.memory = 2 << 20
      $0.folder = settings.folder.path(percentEncoded: false)
      $0.disk = 64 << 20
      $0.waitsForDisk = waitsForDisk
    }
    var service = GatewayService(settings: gateway, group: group)
    service.onRunning = { [onRunning] in await onRunning($0.listen) }
    service.fronting = { next, cache in
      guard let cache else { return next }
      return GalleryResponder(next: next, cache: cache, origin: origin)
    }
    return service
  }
}
