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
