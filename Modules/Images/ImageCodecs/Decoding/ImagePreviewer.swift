internal import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A decoder of previews from the scans of a progressive JPEG while its bytes arrive. It makes no previews of other
/// formats.
///
/// ```swift
/// let previewer = ImagePreviewer(.resize(.fit(400, 400))) { preview in print(preview.size) }
/// for try await chunk in response.body { previewer.take(chunk) }
/// previewer.stop()
/// ```
///
/// Previews are made one at a time on another executor, so the transfer never waits for them. If several scans arrive
/// meanwhile, only the last is used. Until the file is complete, the previewer stores a second copy of its bytes.
public final class ImagePreviewer: Sendable {
  private struct State {
    var bytes = Data()
    var scans = ProgressiveScans()
    /// The number of bytes in the last preview.
    var used = 0
    var made = 0
    var work: Task<Void, Never>?
    var isStopped = false
    /// A counter of restarts.
    var round = 0
  }

  /// Makes a preview of a file, and returns the function that shows it, or `nil` if there is no preview.
  package typealias Maker = @Sendable (_ file: Data) async -> (@Sendable () -> Void)?

  private let previews: ImagePreviews
  /// The maximum size of the file in bytes.
  private let byteLimit: Int
  private let executor: (any TaskExecutor)?
  private let make: Maker
  private let state = Lock(State())

  /// Creates a previewer for one image.
  ///
  /// - Parameters:
  ///   - processor: The steps for each preview.
  ///   - scale: The number of pixels per point.
  ///   - previews: The limits on the previews.
  ///   - executor: The executor that makes the previews; `nil` means the cooperative pool.
  ///   - show: A closure that is called with each preview, in order, one at a time. All previews are
  ///     ``DecodedImage/isPartial``.
  public convenience init(
    _ processor: ImageProcessor = .none, scale: Double = 1, previews: ImagePreviews = .standard,
    executor: (any TaskExecutor)? = nil, show: @escaping @Sendable (DecodedImage) -> Void
  ) {
    let (decoder, rest) = processor.decoding(scale: scale)
    self.init(previews: previews, executor: executor) { file in
      guard let decoded = try? decoder.decode(file), let image = try? rest.process(decoded) else { return nil }
      let preview = image.asPreview()
      return { show(preview) }
    }
  }

  /// Creates a previewer for one image, with a function that makes the previews. The function is called with the files that are
  /// within the limits.
  package init(previews: ImagePreviews, executor: (any TaskExecutor)?, make: @escaping Maker) {
    let limits = ImageLimits { $0.pixels = min($0.pixels, previews.pixels) }
    (self.previews, self.executor, byteLimit) = (previews, executor, limits.bytes)
    self.make = { file in
      guard (try? ImageHeader(of: file, limits: limits)) != nil else { return nil }
      return await make(file)
    }
  }

  /// Appends bytes of the file.
  public func take(_ chunk: Data) {
    state.withLock { state in
      guard !state.isStopped, !state.scans.isOver else { return }
      // Without further previews, or if the file is too large, the bytes are not needed.
      guard state.made < previews.maximum, state.bytes.count + chunk.count <= byteLimit else {
        (state.bytes, state.isStopped) = (Data(), true)
        return
      }
      state.bytes.append(chunk)
      state.scans.take(chunk)
      if state.scans.isOver { state.bytes = Data() }
      begin(&state)
    }
  }

  /// Discards the bytes, because the transfer restarts.
  public func restart() {
    state.withLock { state in
      state.work?.cancel()
      (state.bytes, state.scans, state.used, state.work) = (Data(), ProgressiveScans(), 0, nil)
      state.round += 1
    }
  }

  /// Stops the previews. A preview that is being shown finishes.
  public func stop() {
    state.withLock { state in
      state.isStopped = true
      state.work?.cancel()
      (state.bytes, state.work) = (Data(), nil)
    }
  }

  /// Starts a preview of the last complete scan, unless one is being made.
  private func begin(_ state: inout State) {
    guard !state.isStopped, !state.scans.isOver, state.work == nil, state.made < previews.maximum,
      state.scans.end > state.used
    else { return }
    state.used = state.scans.end
    state.made += 1
    // The available bytes and an end-of-image marker.
    let file = state.bytes.prefix(state.used) + [0xFF, 0xD9]
    let round = state.round
    state.work = Task.detached(executorPreference: executor) { [self] in
      let show = await make(file)
      if let show, !Task.isCancelled, self.state.withLock({ $0.round == round }) { show() }
      self.state.withLock { state in
        guard state.round == round else { return }
        state.work = nil
        begin(&state)
      }
    }
  }
}

extension DecodedImage {
  /// Returns the image as a preview: a still image that is partial.
  package func asPreview() -> DecodedImage {
    DecodedImage(buffer: buffer, header: header, scale: scale, url: url, original: nil, isPartial: true, frames: nil)
  }
}

/// The limits on the previews of a progressive JPEG.
public struct ImagePreviews: Hashable, Sendable {
  /// The number of previews per image. With zero or less, there are none. Each decodes all bytes received so far.
  public var maximum = 4
  /// The maximum width times height of the file. Larger files have no previews, because the codec stores all
  /// coefficients, whatever the target size.
  public var pixels = 25_000_000

  /// Creates limits and applies `change` to the default values.
  public init(_ change: (inout ImagePreviews) -> Void = { _ in }) { change(&self) }

  /// Up to four previews of up to 25 million pixels.
  public static let standard = ImagePreviews()
}

/// A finder of the scan ends of a progressive JPEG while its bytes arrive (ISO/IEC 10918-1, annexes B and G). It reads
/// each byte once.
struct ProgressiveScans {
  private enum State {
    /// Before the marker at the start of the file.
    case start(Int)
    /// Before a marker, and within a marker.
    case marker, kind
    /// Within the length of a segment, and within the segment.
    case length(UInt8), restOfLength(UInt8, Int), segment(UInt8, Int)
    /// Within entropy-coded data, and after a byte in it that may begin a marker.
    case numbers, escape(Int)
  }

  private var state = State.start(0)
  private var position = 0
  private var isProgressive = false

  /// The number of bytes up to the end of the last complete scan that another scan follows, or 0.
  private(set) var end = 0
  /// Whether there is nothing more to find: the file is complete, damaged, or not a progressive JPEG.
  private(set) var isOver = false

  mutating func take(_ chunk: Data) {
    chunk.withUnsafeBytes { bytes in
      var next = 0
      while next < bytes.count, !isOver {
        switch state {
        case .segment(let kind, let rest):
          let skipped = min(rest, bytes.count - next)
          next += skipped
          state = skipped < rest ? .segment(kind, rest - skipped) : behind(kind)
        case .numbers:
          let found = bytes[next...].firstIndex(of: 0xFF)
          if let found { state = .escape(position + found) }
          next = found.map { $0 + 1 } ?? bytes.count
        default:
          step(bytes[next])
          next += 1
        }
      }
      position += bytes.count
    }
  }

  private mutating func step(_ byte: UInt8) {
    switch state {
    case .start(let index):
      guard byte == [0xFF, 0xD8][index] else { return isOver = true }
      state = index == 0 ? .start(1) : .marker
    case .marker:
      guard byte == 0xFF else { return isOver = true }
      state = .kind
    case .kind: begin(byte)
    case .length(let kind): state = .restOfLength(kind, Int(byte) << 8)
    case .restOfLength(let kind, let high):
      let length = high | Int(byte)
      guard length >= 2 else { return isOver = true }
      state = length == 2 ? behind(kind) : .segment(kind, length - 2)
    case .escape(let start):
      switch byte {
      case 0x00, 0xD0...0xD7: state = .numbers
      case 0xFF: break
      case 0xD9: isOver = true
      default:
        end = start
        begin(byte)
      }
    case .segment, .numbers: break
    }
  }

  private mutating func begin(_ kind: UInt8) {
    switch kind {
    case 0xFF: break
    case 0x01, 0xD0...0xD7: state = .marker
    case 0x00, 0xD8, 0xD9: isOver = true
    // The frame header declares the coding. Sequential files have one scan, and no codec reads the other variants.
    case 0xC0, 0xC1, 0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF: isOver = true
    default:
      if kind == 0xC2 { isProgressive = true }
      state = .length(kind)
    }
  }

  private mutating func behind(_ kind: UInt8) -> State {
    guard kind == 0xDA else { return .marker }
    if !isProgressive { isOver = true }
    return .numbers
  }
}
