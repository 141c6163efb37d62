public import Etagere

/// The state of an ``ImageModel``.
public enum ImagePhase: Sendable {
  /// There is nothing to load, because the URL is `nil`.
  case empty
  /// The image is loading.
  case loading
  /// A cached image is shown while it is revalidated.
  case stale(Resource<DisplayImage>)
  /// The load has ended with an image. If the origin could not be reached, the image is a cached one, and
  /// `Resource.fallbackReason` is the error.
  case loaded(Resource<DisplayImage>)
  /// The load has ended with an error. ``ImageModel/retry()`` loads again.
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

  /// Whether a load is running: the image is loading, or it is revalidated.
  public var isLoading: Bool {
    switch self {
    case .loading, .stale: true
    case .empty, .loaded, .failed: false
    }
  }
}
