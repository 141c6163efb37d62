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

  private let decoder: ImageDecoder
  private let processor: ImageProcessor
  private let previews: ImagePreviews
  private let executor: (any TaskExecutor)?
  private let show: @Sendable (DecodedImage) -> Void
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
  public init(
    _ processor: ImageProcessor = .none, scale: Double = 1, previews: ImagePreviews = .standard,
    executor: (any TaskExecutor)? = nil, show: @escaping @Sendable (DecodedImage) -> Void
  ) {
    var decoder = ImageDecoder(scale: scale)
    var steps = processor.steps
    if let sizing = steps.first?.sizing {
      decoder.size = sizing
      steps.removeFirst()
    }
    decoder.limits.pixels = min(decoder.limits.pixels, previews.pixels)
    self.decoder = decoder
    self.processor = ImageProcessor(steps)
    (self.previews, self.executor, self.show) = (previews, executor, show)
  }

  /// Appends bytes of the file.
  public func take(_ chunk: Data) {
    state.withLock { state in
      guard !state.isStopped, !state.scans.isOver else { return }
      // Without further previews, or if the decoder would refuse the file, the bytes are not needed.
      guard state.made < previews.maximum, state.bytes.count + chunk.count <= decoder.limits.bytes else {
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
      let image = preview(of: file)
      if let image, !Task.isCancelled, self.state.withLock({ $0.round == round }) { show(image) }
      self.state.withLock { state in
        guard state.round == round else { return }
        state.work = nil
        begin(&state)
      }
    }
  }

  private func preview(of file: Data) -> DecodedImage? {
    guard let decoded = try? decoder.decode(file), let image = try? processor.process(decoded) else { return nil }
    return DecodedImage(
      buffer: image.buffer, header: image.header, scale: image.scale, url: image.url, original: nil, isPartial: true, frames: nil)
  }
}
