#if Tool
import Etagere
import LoopbackOrigin

/// The simulated link, and the shortest times that it permits. The demo compares its times with these.
struct DemoLink: Sendable {
  static let bitsPerSecond = 2_000_000
  static let latency = Duration.milliseconds(5)

  static var link: NetworkLink { NetworkLink(bitsPerSecond: bitsPerSecond, latency: latency) }

  static var roundTrip: Duration { latency * 2 }

  /// Returns the time that this number of bytes occupies the link.
  static func transmission(_ bytes: Int) -> Duration { .seconds(1) * (Double(bytes) * 8 / Double(bitsPerSecond)) }
}
#endif
