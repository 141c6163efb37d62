public import Etagere

/// The state of an ``ImageModel``.
public enum ImagePhase: Sendable {
  /// There is nothing to load because the URL is `nil`.
  case empty
  /// The image is loading.
  case loading
  /// A cached image is shown while it is revalidated.
  case stale(Resource<DisplayImage>)
  /// The load ended with an image. If the origin could not be reached, it is a cached image and
  /// `Resource.fallbackReason` is the error.
  case loaded(Resource<DisplayImage>)
  /// The load ended with an error. ``ImageModel/retry()`` loads again.
  case failed(CacheError)

  /// The resource of a stale or loaded image.
  public var resource: Resource<DisplayImage>? {
    switch self {
    case .stale(let resource), .loaded(let resource): resource
    case .empty, .loading, .failed: nil
    }
  }

  /// The error of a failed load.
  public var error: CacheError? { if case .failed(let error) = self { error } else { nil } }

  /// Whether a load is running, either for an image or for its revalidation.
  public var isLoading: Bool {
    switch self {
    case .loading, .stale: true
    case .empty, .loaded, .failed: false
    }
  }
}
