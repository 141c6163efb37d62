#if Redis && Origin && Service && SQLite
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import ImageCodecs
import LoopbackOrigin

/// The origin of all members: the versioned resources and images. Some responses are slow, break off or lie, in ways that a
/// client can notice.
struct SoakOrigin: Sendable {
  /// The number of images.
  static let images = 24

  let server: OriginServer
  private let faults: DeliveryFaults

  /// Starts the origin.
  static func start(_ versions: SharedVersions, _ counts: SharedCounts, seed: UInt64) async throws -> SoakOrigin {
    let server = try await OriginServer.start(logLimit: 0)
    let faults = DeliveryFaults(seed: seed)
    server.setFallback { request in
      if let (number, image) = image(request.path) {
        let delivery = faults.delivery(length: image.count)
        counts.addRequest(.image(number))
        if delivery.isFault { counts.addFault(.image(number)) }
        if let status = delivery.status { return OriginResponse(text: "an error\n", status: status) }
        return OriginResponse(
          image, contentType: "image/png", etag: .strong(request.path), fields: [.cacheControl: "max-age=600"],
          delivery: delivery.delivery)
      }
      guard let resource = VersionedResource(request.head) else {
        return OriginResponse(text: "there is no resource \(request.path)\n", status: .notFound)
      }
      // The client has received a complete response before such a stall, and would use the connection for another resource.
      let isPart = request.fields.contains(.range) || request.fields.contains(.ifNoneMatch)
      let language = resource.varies ? request.fields[.acceptLanguage] : nil
      return versions.request(resource.number) { version in
        let delivery = faults.delivery(length: resource.length(version), sendsPart: isPart)
        counts.addRequest(.resource(resource.number))
        if delivery.isFault { counts.addFault(.resource(resource.number)) }
        return response(resource, version, language, delivery)
      }
    }
    return SoakOrigin(server: server, faults: faults)
  }

  private static func response(
    _ resource: VersionedResource, _ version: UInt64, _ language: String?, _ delivery: DeliveryFaults.Delivery
  ) -> OriginResponse {
    if let status = delivery.status { return OriginResponse(text: "an error\n", status: status) }
    if delivery.hasBadCoding {
      // It may not be stored, because a cache cannot know that the bytes are not of this coding.
      return OriginResponse(
        resource.body(version, language), fields: [.contentEncoding: "gzip", .cacheControl: "no-store"],
        delivery: delivery.delivery)
    }
    var fields: HTTPFields = [
      .eTag: resource.etag(version, language), .cacheControl: "max-age=\(resource.lifetime)",
    ]
    // A 304 repeats this field, so a cache that updates the stored fields has the time of the last confirmation.
    fields[.sentAt] = "\(SystemClock().uptime.saturatedNanoseconds)"
    if resource.varies { fields[.vary] = "Accept-Language" }
    if let tag = resource.tag, let name = HTTPField.Name("Cache-Tag") { fields[name] = tag }
    return OriginResponse(
      resource.body(version, language), fields: fields, acceptsRanges: true, delivery: delivery.delivery)
  }

  /// Sets the share of the responses that are disturbed.
  func disturb(_ share: Double?) { faults.set(share) }

  /// Returns the image of a path such as `/image/7/3.png`, which names its number and its version.
  private static func image(_ path: String) -> (number: Int, data: Data)? {
    let parts = path.split(separator: "/")
    guard parts.count == 3, parts[0] == "image", let number = Int(parts[1]), (0..<images).contains(number),
      let version = Int(parts[2].prefix { $0 != "." })
    else { return nil }
    let image = OriginImage(number: number, version: version)
    let pixels = PixelBuffer(size: image.size, channels: .rgb) { bytes in
      for index in 0..<image.size.width * image.size.height {
        let color = image.color(x: index % image.size.width, y: index / image.size.width)
        for channel in 0..<3 { bytes[index * 3 + channel] = color[channel] }
      }
    }
    return pixels.flatMap { try? ImageEncoder(.png).encode(DecodedImage($0)) }.map { (number, $0) }
  }
}

/// An image of the origin. Its size depends on its number, and its colors on its version.
struct OriginImage {
  var number: Int
  var version: Int

  var size: PixelSize { PixelSize(60 + number * 4, 40 + number * 2) }

  /// The red, green and blue of a pixel.
  func color(x: Int, y: Int) -> [UInt8] {
    [x * 255 / size.width, y * 3 + version * 40, x ^ y].map { UInt8(truncatingIfNeeded: $0) }
  }
}

/// The random deliveries of an origin.
final class DeliveryFaults: Sendable {
  struct Delivery {
    var delivery = OriginDelivery()
    /// The status of an error, or `nil` for a response with the resource.
    var status: HTTPResponse.Status?
    /// Whether the response states a content coding that its bytes do not have.
    var hasBadCoding = false
    /// Whether a client must refuse the response, or gets none. A response that is only slow is no fault.
    var isFault = false
  }

  /// The share of disturbed responses while the origin is not disturbed in particular.
  private static let share = 0.04
  /// The bytes that a response lacks whose length is a lie.
  static let excess = 10

  private let state: Lock<(generator: SplitMix, share: Double)>

  init(seed: UInt64) { state = Lock((SplitMix(state: seed), Self.share)) }

  func set(_ share: Double?) { state.withLock { $0.share = share ?? Self.share } }

  /// - Parameter sendsPart: Whether the response may be shorter than `length`. It then does not become silent after its end.
  func delivery(length: Int, sendsPart: Bool = false) -> Delivery {
    state.withLock { state in
      guard Double.random(in: 0..<1, using: &state.generator) < state.share else { return Delivery() }
      var delivery = Self.random(length, &state.generator)
      if sendsPart, case .stall = delivery.delivery.fault { delivery.delivery.fault = .stallBeforeHead }
      delivery.isFault = delivery.delivery.headDelay == .zero && delivery.delivery.bodyDelay == .zero
      return delivery
    }
  }

  private static func random(_ length: Int, _ generator: inout SplitMix) -> Delivery {
    let position = Int.random(in: 0...max(0, length - 1), using: &generator)
    let delay = Duration.milliseconds(Int64.random(in: 20...1_500, using: &generator))
    switch Int.random(in: 0..<17, using: &generator) {
    case 0, 1: return Delivery(delivery: OriginDelivery(headDelay: delay))
    case 2, 3: return Delivery(delivery: OriginDelivery(bodyDelay: delay))
    case 4: return Delivery(delivery: .fault(.stallBeforeHead))
    case 5: return Delivery(delivery: .fault(.stall(afterBodyBytes: position)))
    case 6: return Delivery(delivery: .fault(.cut(afterBodyBytes: position)))
    case 7: return Delivery(delivery: .fault(.reset(afterBodyBytes: min(position, 100_000))))
    case 8: return Delivery(delivery: .fault(.resetBeforeHead))
    case 9: return Delivery(delivery: .fault(.closeMidHead))
    case 10: return Delivery(delivery: OriginDelivery(framing: .claimedLength(length + excess)))
    case 11: return Delivery(delivery: .fault(.malformedChunk(afterBodyBytes: position)))
    case 12: return Delivery(delivery: .fault(.garbage))
    case 13: return Delivery(delivery: .fault(.closeAfterwards))
    case 14: return Delivery(status: .internalServerError)
    case 15: return Delivery(status: .serviceUnavailable)
    default: return Delivery(hasBadCoding: true)
    }
  }
}
#endif
