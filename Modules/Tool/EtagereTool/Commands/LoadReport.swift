#if Tool
import Etagere
import Foundation

/// The result of one load, as a line or as JSON.
struct LoadReport: Encodable {
  var url: String
  var source: String?
  var validation: String?
  var status: Int?
  var bytes: Int?
  var bytesOnWire: Int64?
  var ageSeconds: Double?
  var isStale: Bool?
  /// The error because of which a stale response was served.
  var fallbackReason: String?
  var milliseconds: Double
  var file: String?
  /// The image that was made.
  var image: ImageReport?
  var error: Failure?

  struct Failure: Encodable {
    var code: String
    var message: String
    var exitStatus: Int32

    init(_ error: CacheError, message: String, _ exit: ExitStatus) {
      code = Text.kebabCase(error.code.rawValue)
      self.message = message
      exitStatus = exit.rawValue
    }
  }

  init<Value>(_ url: String, _ resource: Resource<Value>, bytes: Int, took: Duration) {
    self.url = url
    self.bytes = bytes
    milliseconds = Text.milliseconds(took)
    source = Text.kebabCase(resource.source.rawValue)
    validation = Text.kebabCase(resource.validation.rawValue)
    status = resource.source == .revalidated ? 304 : resource.response.status.code
    bytesOnWire = resource.bytesOnWire
    ageSeconds = resource.age / .seconds(1)
    isStale = resource.isStale
    fallbackReason = resource.fallbackReason?.reason
  }

  init(_ url: String, _ error: CacheError, took: Duration) {
    self.url = url
    milliseconds = Text.milliseconds(took)
    status = error.status
    fail(error, ExitStatus(error))
  }

  mutating func fail(_ error: CacheError, _ exit: ExitStatus) {
    self.error = Failure(error, message: error.description, exit)
  }

  /// The source, status, received bytes, time and URL, then the image that was made, and why the response is stale.
  var line: String {
    var columns = [
      Text.left(source ?? "", 14), Text.right(status.map(String.init) ?? "-", 3), Text.right(Text.bytes(bytesOnWire ?? 0), 10),
      Text.right(Text.time(milliseconds) + " ms", 11), url,
    ]
    if let image { columns.append("(\(image.brief), \(Text.bytes(Int64(bytes ?? 0))))") }
    if let fallbackReason, let ageSeconds {
      columns.append("(stale, \(Text.seconds(.seconds(ageSeconds))) old: \(fallbackReason))")
    }
    return columns.joined(separator: "  ")
  }
}

/// The properties of an image, from the header of its file.
struct ImageReport: Encodable {
  var format: String
  var mediaType: String
  var width: Int?
  var height: Int?
  var frames: Int?
  var seconds: Double?
  /// The EXIF orientation, 1 to 8.
  var orientation: Int?
  var colorSpace: String?
  var bitDepth: Int?
  var hasAlpha: Bool?

  /// Returns `nil` if the bytes are not an image. Without an image engine, only the format is known.
  init?(_ data: Data) {
    guard let format = ImageFormat(of: data) else { return nil }
    (self.format, mediaType) = (format.name, format.mediaType)
    guard let header = try? ImageHeader(of: data) else { return }
    take(header)
  }

  init(_ header: ImageHeader) {
    (format, mediaType) = (header.format.name, header.format.mediaType)
    take(header)
  }

  private mutating func take(_ header: ImageHeader) {
    (width, height) = (header.size.width, header.size.height)
    (frames, orientation) = (header.frameCount, header.orientation.rawValue)
    seconds = header.isAnimated ? header.delays.reduce(.zero, +) / .seconds(1) : nil
    (colorSpace, bitDepth, hasAlpha) = (header.colorSpace, header.bitDepth, header.hasAlpha)
  }

  /// `400 × 300 WebP`
  var brief: String {
    guard let width, let height else { return format }
    return "\(width) × \(height) \(format)"
  }

  /// The name and value of each known property.
  var lines: [(String, String)] {
    var lines = [("format", "\(format) (\(mediaType))")]
    if let width, let height {
      lines.append(("dimensions", "\(width) × \(height) (\(Text.decimal(Double(width * height) / 1e6, 1)) megapixels)"))
    }
    if let frames { lines.append(("frames", seconds.map { "\(frames), \(Text.decimal($0, 2)) s" } ?? "\(frames)")) }
    if let orientation { lines.append(("orientation", "\(orientation) (\(Self.turn(orientation)))")) }
    if let colorSpace, let bitDepth, let hasAlpha {
      lines.append(("color", "\(colorSpace), \(bitDepth) bits, \(hasAlpha ? "with alpha" : "without alpha")"))
    }
    return lines
  }

  /// The operation that shows the image upright.
  private static func turn(_ orientation: Int) -> String {
    switch ImageOrientation(rawValue: orientation) {
    case .upMirrored: "mirrored left to right"
    case .down: "rotated by 180°"
    case .downMirrored: "mirrored top to bottom"
    case .leftMirrored: "mirrored along the diagonal"
    case .right: "rotated by 90° clockwise"
    case .rightMirrored: "mirrored along the other diagonal"
    case .left: "rotated by 90° counterclockwise"
    case .up, nil: "as stored"
    }
  }
}

/// The properties of one image, as lines or as JSON.
struct InspectReport: Encodable {
  /// One entry of the store.
  struct Cached: Encodable {
    /// The image that was made, or `nil` for the response itself.
    var transform: String?
    /// The request fields that select this response, if it has `Vary`.
    var variant: String?
    var bytes: Int64
    var isFresh: Bool

    init(_ entry: EntryDescription) {
      (transform, variant, bytes, isFresh) = (entry.transform, entry.variant, entry.bodyBytes, entry.isFresh)
    }
  }

  var target: String
  var bytes: Int?
  var image: ImageReport?
  var source: String?
  var status: Int?
  var etag: String?
  var lastModified: String?
  var cached: [Cached]?
  var error: LoadReport.Failure?

  init(target: String) { self.target = target }

  mutating func take(_ resource: Resource<Data>) {
    source = Text.kebabCase(resource.source.rawValue)
    status = resource.source == .revalidated ? 304 : resource.response.status.code
    etag = resource.response.headerFields.first(.eTag)?.value
    lastModified = resource.response.headerFields[.lastModified]
  }

  /// A line for each known property.
  var lines: [String] {
    guard let bytes else { return [] }
    var rows = image?.lines ?? []
    rows.append(("size", Text.bytes(Int64(bytes))))
    if let source, let status { rows.append(("response", "\(status), \(source)")) }
    if let etag { rows.append(("etag", etag)) }
    if let lastModified { rows.append(("modified", lastModified)) }
    for entry in cached ?? [] {
      let what = [entry.transform ?? "original", entry.variant].compactMap(\.self).joined(separator: ", ")
      rows.append(("cached", "\(Text.bytes(entry.bytes)), \(entry.isFresh ? "fresh" : "stale"), \(what)"))
    }
    return rows.map { "\(Text.left($0, 11))  \($1)" }
  }
}
#endif
