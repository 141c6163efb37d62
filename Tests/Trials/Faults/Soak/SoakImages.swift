#if Redis && Origin && Service && SQLite
import CacheCore
import CacheTesting
import Foundation
import ImageCodecs
import ImageService

/// The first results of the image services by path. Each must be the image that its operations describe, and every later result
/// must have the same bytes.
final class SoakImages: Sendable {
  private static let most = 2_000

  private let state = Lock((results: [String: Data](), paths: [String]()))

  /// Checks a result. The oldest paths are forgotten.
  func check(_ data: Data, _ path: String, _ expected: ExpectedImage) throws {
    let first = state.withLock { $0.results[path] }
    if let first { return try require(first == data, "\(data.count) bytes, but \(first.count) other ones before") }
    try expected.check(data)
    state.withLock { state in
      guard state.results.updateValue(data, forKey: path) == nil else { return }
      state.paths.append(path)
      if state.paths.count > Self.most { state.results[state.paths.removeFirst()] = nil }
    }
  }
}

/// The image that the service must return for an image of the origin.
struct ExpectedImage {
  /// The operations of the clients.
  enum Operations: String, CaseIterable {
    case png = "width=30,format=png"
    case webP = "fit=48x48,format=webp"
    case jpeg = "fill=40x40,format=jpeg"
    case rotated = "rotate=90,format=png"
  }

  var operations: Operations
  var source: OriginImage

  var contentType: String {
    switch operations {
    case .png, .rotated: "image/png"
    case .webP: "image/webp"
    case .jpeg: "image/jpeg"
    }
  }

  /// Checks the format and the size, and each pixel of a result that is not scaled.
  func check(_ data: Data) throws {
    let header = try ImageHeader(of: data)
    let format: ImageFormat =
      switch operations {
      case .png, .rotated: .png
      case .webP: .webp
      case .jpeg: .jpeg
      }
    try require(header.format == format, "format \(header.format)")
    let size = expectedSize
    // A scaled side is rounded.
    try require(
      abs(header.size.width - size.width) <= 1 && abs(header.size.height - size.height) <= 1,
      "\(header.size.width) × \(header.size.height) pixels, not \(size.width) × \(size.height)")
    guard operations == .rotated else { return }
    try require(header.size == size, "\(header.size.width) × \(header.size.height) pixels after a rotation")
    let pixels = try ImageDecoder().decode(data).pixels.bytes
    try require(pixels.count == size.width * size.height * 4, "\(pixels.count) bytes of pixels")
    for index in 0..<size.width * size.height {
      let (x, y) = (index % size.width, index / size.width)
      // Clockwise: the left column of the source is the top row, from the bottom up.
      let color = source.color(x: y, y: source.size.height - 1 - x)
      try require(Array(pixels[index * 4..<index * 4 + 3]) == color, "a wrong pixel at \(x), \(y)")
    }
  }

  private var expectedSize: PixelSize {
    let size = source.size
    func scaled(_ factor: Double) -> PixelSize {
      PixelSize(Int((Double(size.width) * factor).rounded()), Int((Double(size.height) * factor).rounded()))
    }
    return switch operations {
    case .png: scaled(30 / Double(size.width))
    case .webP: scaled(48 / Double(max(size.width, size.height)))
    case .jpeg: PixelSize(40, 40)
    case .rotated: PixelSize(size.height, size.width)
    }
  }
}

/// A client of an image service.
struct SoakImageClient: Sendable {
  let log: SoakLog
  let running: RunningService
  let images: SoakImages
  let key: SigningKey
  let origin: String
  let isOver: SoakSwitch

  func run(_ generator: SplitMix) async {
    let (clock, start) = (SystemClock(), SystemClock().uptime)
    var generator = generator
    while !isOver.isOn {
      try? await clock.sleep(for: .milliseconds(Int64.random(in: 40...300, using: &generator)))
      guard let service = running.value else { continue }
      // A new version each minute, so that the caches also evict.
      let minute = Int((clock.uptime - start) / .seconds(60))
      let version = max(0, minute - Int.random(in: 0..<3, using: &generator))
      let image = Int.random(in: 0..<SoakOrigin.images, using: &generator)
      let source = "\(origin)/image/\(image)/\(version).png"
      let operations = ExpectedImage.Operations.allCases.randomElement(using: &generator) ?? .png
      let expected = ExpectedImage(operations: operations, source: OriginImage(number: image, version: version))
      let path = key.path(for: source, operations: operations.rawValue)
      let name = "a request to \(log.member.name) for \(path)"
      let attempt = SoakLog.Attempt(name: name, source: .image(image), start: clock.uptime)
      let number = log.begin(name)
      let reply = await service.get(path).reply
      log.end(number)
      log.count(.loads)
      switch reply {
      case .response(200, let type, let data):
        do {
          try require(type == expected.contentType, "type '\(type)'")
          try images.check(data, path, expected)
        } catch {
          log.fail(.wrong, "\(name): a wrong image of \(data.count) bytes: \(error)")
        }
      case .response(let status, _, let data):
        let text = "status \(status): \(String(decoding: data.prefix(300), as: UTF8.self))"
        // The statuses of the documented problems of a source that fails.
        if status >= 500 || status == 422 {
          log.fail(.status, attempt, text)
        } else {
          log.fail(.wrong, "\(name): \(text)")
        }
      case .none(let reason): log.fail(.connection, attempt, reason)
      }
    }
  }
}
#endif
