internal import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes pictures of a progressive JPEG's scans while its bytes come. Of anything else it makes none.
///
/// ```swift
/// let previewer = ImagePreviewer(.resize(.fit(400, 400))) { preview in print(preview.size) }
/// for try await chunk in response.body { previewer.take(chunk) }
/// previewer.stop()
/// ```
///
/// One preview is made at a time, elsewhere: bytes never wait for it, and scans that come meanwhile are passed over but for the
/// last. While they come the bytes are held here a second time.
public final class ImagePreviewer: Sendable {
  private struct State {
    var bytes = Data()
    var scans = ProgressiveScans()
    /// Of how many bytes the last preview was made.
    var used = 0
    var made = 0
    var work: Task<Void, Never>?
    var isStopped = false
    /// Counted up when the bytes begin anew.
    var round = 0
  }

  private let decoder: ImageDecoder
  private let processor: ImageProcessor
  private let previews: ImagePreviews
  private let executor: (any TaskExecutor)?
  private let show: @Sendable (DecodedImage) -> Void
  private let state = Lock(State())

  /// A previewer of one picture.
  ///
  /// - Parameters:
  ///   - processor: what is done to each preview.
  ///   - scale: how many of its pixels make a point.
  ///   - previews: how many, and of what.
  ///   - executor: where they are made; nil: on the cooperative pool.
  ///   - show: called with each, in order, one at a time. They are all ``DecodedImage/isPartial``.
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

  /// The next bytes.
  public func take(_ chunk: Data) {
    state.withLock { state in
      guard !state.isStopped, !state.scans.isOver else { return }
      // No further one is made, or the decoder would refuse the file: nothing is gathered for nobody.
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

  /// The bytes begin anew: those that came broke off.
  public func restart() {
    state.withLock { state in
      state.work?.cancel()
      (state.bytes, state.scans, state.used, state.work) = (Data(), ProgressiveScans(), 0, nil)
      state.round += 1
    }
  }

  /// Nothing is shown from here on, but for a preview that is being shown right now.
  public func stop() {
    state.withLock { state in
      state.isStopped = true
      state.work?.cancel()
      (state.bytes, state.work) = (Data(), nil)
    }
  }

  /// Begins a preview of the last scan that is whole, unless one is being made.
  private func begin(_ state: inout State) {
    guard !state.isStopped, !state.scans.isOver, state.work == nil, state.made < previews.maximum,
      state.scans.end > state.used
    else { return }
    state.used = state.scans.end
    state.made += 1
    // What is there, and that it ends here.
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
