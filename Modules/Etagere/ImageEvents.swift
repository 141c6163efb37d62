public import CacheCore
public import CacheManager
public import ImageCodecs

/// What the stream of a picture's load yields.
public enum ImageEvent: Sendable {
  /// Bytes came.
  case progress(LoadProgress)
  /// The picture as far as it has come: a progressive JPEG, with less detail than it will have.
  case preview(DecodedImage)
  /// A stored picture that may be outdated; the final one follows, or the stream throws.
  case stale(Resource<DecodedImage>)
  /// The result. Nothing follows.
  case final(Resource<DecodedImage>)
}

/// The events of one picture's load, as an asynchronous sequence: see
/// `ResourceManager.imageEvents(for:_:scale:previews:options:)`. Used once.
public struct ImageEvents: AsyncSequence, Sendable {
  public typealias Element = ImageEvent
  public typealias Failure = CacheError

  let start: @Sendable (EventChannel<ImageEvent>) -> Void

  /// Pulls one event after the other.
  public final class AsyncIterator: AsyncIteratorProtocol {
    private let start: @Sendable (EventChannel<ImageEvent>) -> Void
    private let channel = EventChannel<ImageEvent>(merging: ImageEvent.merge)
    private var isStarted = false

    init(start: @escaping @Sendable (EventChannel<ImageEvent>) -> Void) { self.start = start }

    deinit { channel.abandon() }

    public func next() async throws(CacheError) -> ImageEvent? {
      if !isStarted {
        isStarted = true
        start(channel)
      }
      return try await channel.next()
    }

    public func next(isolation actor: isolated (any Actor)?) async throws(CacheError) -> ImageEvent? { try await next() }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(start: start) }
}

extension ImageEvent {
  /// Of two previews, or reports of progress, that nobody has taken yet the later one is enough.
  fileprivate static func merge(_ earlier: Self, _ later: Self) -> Self? {
    switch (earlier, later) {
    case (.progress, .progress), (.preview, .preview): later
    default: nil
    }
  }

  init(_ event: ResourceEvent<DecodedImage>) {
    switch event {
    case .progress(let progress): self = .progress(progress)
    case .stale(let old): self = .stale(old)
    case .final(let resource): self = .final(resource)
    }
  }
}
