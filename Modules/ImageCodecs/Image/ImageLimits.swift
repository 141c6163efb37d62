public import CacheCore

/// How large a picture may be, looked at in its header before there are pixels: 1,340 bytes can unfold to 289 million of them.
///
/// What is beyond is refused with `CacheError.Code.imageLimitExceeded`; the reason names the picture's size and the limit.
public struct ImageLimits: Hashable, Sendable {
  /// Of the file, in bytes.
  public var bytes = 64 << 20
  /// Of one frame: width times height, as stored. A decoded pixel has up to four bytes.
  public var pixels = 100_000_000
  /// Of the width, and of the height.
  public var side = 65_535
  /// How many frames.
  public var frames = 2_000
  /// How long decoding one frame may take. It is looked at between pieces of the picture; within one call of a codec nothing can
  /// stop it, which is why the other limits come first.
  public var time: Duration = .seconds(20)

  /// The usual limits, but for what `change` sets.
  public init(_ change: (inout ImageLimits) -> Void = { _ in }) { change(&self) }

  /// 64 MiB, 100 million pixels, 65,535 a side, 2,000 frames, 20 seconds.
  public static let standard = ImageLimits()

  func check(bytes count: Int, _ format: ImageFormat) throws(CacheError) {
    guard count <= bytes else { throw exceeded(format, "the file has \(count) bytes, the limit is \(bytes)") }
  }

  func check(_ header: ImageHeader) throws(CacheError) {
    let (size, format) = (header.size, header.format)
    guard !size.isEmpty else { throw CacheError(.decodingFailed, reason: "\(format): the picture has no pixels (\(size))") }
    guard size.width <= side, size.height <= side else {
      throw exceeded(format, "the picture has \(size) pixels, the limit of a side is \(side)")
    }
    guard size.area <= pixels else {
      throw exceeded(format, "the picture has \(size) = \(size.area) pixels, the limit is \(pixels)")
    }
    try check(frames: header.frameCount, format)
  }

  func check(frames count: Int, _ format: ImageFormat) throws(CacheError) {
    guard count <= frames else { throw exceeded(format, "the picture has \(count) frames, the limit is \(frames)") }
  }

  func exceededTime(_ format: ImageFormat, _ work: String) -> CacheError {
    exceeded(format, "\(work) took longer than the limit of \(time)")
  }

  private func exceeded(_ format: ImageFormat, _ what: String) -> CacheError {
    CacheError(.imageLimitExceeded, reason: "\(format): \(what)")
  }

  /// In text, as it stands in cache keys: a value that a looser limit has let through is none for who has a tighter one.
  var parameters: String { self == .standard ? Self.standardParameters : written }

  /// Written once: every transform of pictures has them in its identity.
  private static let standardParameters = standard.written

  private var written: String { "\(bytes),\(pixels),\(side),\(frames),\(time.components.seconds).\(time.components.attoseconds)" }
}

extension CacheError.Code {
  /// A picture is larger, has more frames or takes longer than allowed: see ``ImageLimits``.
  public static let imageLimitExceeded = Self(rawValue: "imageLimitExceeded")
}
