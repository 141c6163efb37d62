#if Tool
import Etagere
import LoopbackOrigin

/// What the shaped link allows, by arithmetic: the physical limit beside which the demo puts its times.
struct DemoLink: Sendable {
  static let bitsPerSecond = 2_000_000
  static let latency = Duration.milliseconds(5)

  static var link: NetworkLink { NetworkLink(bitsPerSecond: bitsPerSecond, latency: latency) }

  /// There and back.
  static var roundTrip: Duration { latency * 2 }

  /// How long so many bytes occupy the link.
  static func transmission(_ bytes: Int) -> Duration { .seconds(1) * (Double(bytes) * 8 / Double(bitsPerSecond)) }
}
#endif
