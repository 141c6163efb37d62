internal import CacheCore
public import CacheManager
public import ImageCodecs

/// An event of an image load.
public enum ImageEvent: Sendable {
  /// Bytes were received.
  case progress(LoadProgress)
  /// A preview of a progressive JPEG, with less detail than the final image.
  case preview(DecodedImage)
  /// A stored image that may be outdated. The final image follows, or the stream throws.
  case stale(Resource<DecodedImage>)
  /// The final image, after which no event follows.
  case final(Resource<DecodedImage>)
}

/// The events of one image's load.
struct ImageEvents: AsyncSequence, Sendable {
  let start: @Sendable (EventChannel<ImageEvent>) -> Void

  func makeAsyncIterator() -> some AsyncIteratorProtocol<ImageEvent, CacheError> {
    EventIterator(merging: ImageEvent.merge, start: start)
  }
}

extension ImageEvent {
  /// Merges two previews, or two progress reports, that the consumer has not taken yet into the later one.
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
