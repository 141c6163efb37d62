public import Etagere

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The state of an ``ImageModel``.
public enum ImagePhase: Sendable {
  /// There is nothing to load, because the URL is `nil` or the view has no size yet.
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

extension ImageModel {
  /// The settings of a model that are not those of a request or a transform.
  ///
  /// ```swift
  /// let model = ImageModel()
  /// model.settings.previews = .standard
  /// ```
  public struct Settings: Hashable, Sendable {
    /// The previews of a progressive JPEG that is arriving, or `nil` for none. The transform makes them from the bytes so far.
    ///
    /// A preview appears only where no image is shown, with the phase `loading` and ``ImageModel/isPreview``. After an error or a
    /// cancellation it is removed.
    public var previews: ImagePreviews?
    /// Whether the image stays until that of another request is available, or the origin refuses the request. Otherwise it is
    /// removed when the load begins.
    ///
    /// It also stays if the load fails for another reason, with the phase `failed`. Without a request, no image is shown. A
    /// preview is not kept. Do not set it for rows that a list reuses: they would show the images of other rows.
    public var keepsPreviousImage = false
    /// The time for which a load may read the disk before the placeholder is shown. With zero, the default, or less, the
    /// placeholder is shown at once, unless the image is in memory.
    ///
    /// During that time ``ImageModel/hidesPlaceholder`` is set, and the views show nothing. An image that arrives meanwhile
    /// appears without a transition, as from memory. The time ends early only with an error, and begins again if the view
    /// disappears meanwhile. A load that does not read the disk has none. A placeholder that is shown already stays. A few
    /// frames, such as 50 ms, are enough for a thumbnail on disk.
    public var placeholderDelay = Duration.zero
    /// Whether an animated image plays when it appears. Otherwise its first frame is shown until ``AnimationPlayer/play()``.
    ///
    /// It is also read when ``ImageModel/animate()`` begins. The views do not set it if the user reduces motion.
    public var autoplays = true

    /// Creates settings and applies `change` to the default values.
    public init(_ change: (inout Settings) -> Void = { _ in }) { change(&self) }
  }
}

extension ImageModel {
  /// Loads the image of a URL with the transform `displayImage(_:scale:)` and shows it: see ``load(_:as:)``.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` to show no image.
  ///   - processor: The steps that change the image, such as a resize to the view's size in pixels.
  ///   - scale: The number of pixels per point.
  ///   - options: The options of the load.
  public func load(
    _ url: URL?, _ processor: ImageProcessor = .none, scale: Double = 1, options: RequestOptions = RequestOptions()
  ) {
    load(url.map { ResourceRequest($0, options: options) }, as: .displayImage(processor, scale: scale))
  }

  /// Whether a loading indicator should be shown: an image is loading, and neither an image nor a preview is shown. It is `false`
  /// for an image in memory, during a revalidation, and while the placeholder is delayed.
  public var showsLoadingIndicator: Bool {
    if case .loading = phase { image == nil && !hidesPlaceholder } else { false }
  }
}

/// The load of a model: a request, and the transform that makes the image.
struct ImageTarget {
  /// The identity of a load. Loads with equal identities show the same image in the same size.
  struct Identity: Equatable {
    var resource: RequestIdentity
    var transform: String
    var policy: LoadPolicy?
  }

  let identity: Identity
  var request: ResourceRequest
  let transform: ResourceTransform<DisplayImage>

  init(_ request: ResourceRequest, _ transform: ResourceTransform<DisplayImage>, _ manager: ResourceManager) {
    self.request = request
    self.request.options.policy = request.options.policy ?? manager.imagePolicy
    self.transform = transform
    identity = Identity(
      resource: manager.identity(of: request), transform: transform.id, policy: self.request.options.policy)
  }

  /// Whether the load revalidates an image in memory. Under other policies, a stale image that is returned needs no revalidation.
  func revalidates(_ cached: Resource<DisplayImage>) -> Bool { cached.isStale && identity.policy == .staleWhileRevalidate }
}

/// The wait of a view for its image, which is reported to an observer. Its release ends it as cancelled.
///
/// The observer may call the model, so the model must be in its new state when a wait begins or ends.
@MainActor
final class ViewWaits {
  private var wait: ViewWait?

  /// Begins the wait for an image, unless it is shown or has a wait. Another wait ends as cancelled.
  func begin(_ request: ResourceRequest, _ manager: ResourceManager, shown: RequestIdentity?) {
    guard let observer = request.options.observer.resolved(manager.configuration.observer) else { return }
    let resource = manager.identity(of: request)
    guard shown != resource, wait?.resource != resource else { return }
    let next = ViewWait(request.url, resource, observer, manager.configuration.clock)
    end(.failure(.cancelled), of: nil)
    wait = next
    next.begin()
  }

  /// Ends the wait, with the result if it is that of the resource, or else as cancelled.
  func end(_ result: Result<ResourceSource, CacheError>, of resource: RequestIdentity?) {
    guard let ended = wait else { return }
    wait = nil
    ended.end(ended.resource == resource ? result : .failure(.cancelled))
  }
}

/// One wait. It ends at most once, and only after it has begun.
@MainActor
private final class ViewWait {
  let resource: RequestIdentity
  private let id = LoadID()
  private let url: LoadURL
  private let observer: any LoadObserver
  private let clock: any CacheClock
  private let start: Duration
  private var (hasBegun, isOver) = (false, false)

  init(_ url: URL, _ resource: RequestIdentity, _ observer: any LoadObserver, _ clock: any CacheClock) {
    (self.url, self.resource, self.observer, self.clock) = (LoadURL(url), resource, observer, clock)
    start = clock.uptime
  }

  deinit {
    guard hasBegun, !isOver else { return }
    observer.viewEndsWait(id, for: url, with: .failure(.cancelled), after: clock.uptime - start)
  }

  func begin() {
    guard !isOver else { return }
    hasBegun = true
    observer.viewWaits(id, for: url)
  }

  func end(_ result: Result<ResourceSource, CacheError>) {
    isOver = true
    guard hasBegun else { return }
    observer.viewEndsWait(id, for: url, with: result, after: clock.uptime - start)
  }
}

extension ResourceManager {
  /// The policy for images in views, unless their options set one.
  var imagePolicy: LoadPolicy { configuration.policy == .standard ? .staleWhileRevalidate : configuration.policy }

  /// Whether the load of a view may read the durable store.
  func readsDisk(_ request: ResourceRequest) -> Bool {
    let options = request.options
    switch options.policy ?? imagePolicy {
    case .reload, .memoryElseReload: return false
    default:
      return request.isPlainGet && options.reads.contains(.disk) && options.store.resolved(configuration.store) != nil
    }
  }
}

extension CacheError {
  /// Whether the origin refused the request permanently, so that an earlier response must not be shown.
  var isRefusal: Bool {
    guard let status else { return false }
    return (400..<500).contains(status) && ![408, 425, 429].contains(status)
  }
}

/// The transform of a view: the same for all sizes of the view, or one for each size.
package enum ViewTransform: Sendable {
  case fixed(ResourceTransform<DisplayImage>)
  /// A closure that returns the transform for the view's size in pixels, or for the whole image if the view takes the size of its
  /// image, and the number of pixels per point.
  case sized(@Sendable (_ size: PixelSize?, _ scale: Double) -> ResourceTransform<DisplayImage>)

  /// A transform for the size of a view that always has one after its layout.
  package static func laidOut(
    _ transform: @escaping @Sendable (_ size: PixelSize, _ scale: Double) -> ResourceTransform<DisplayImage>
  ) -> ViewTransform {
    .sized { size, scale in transform(size ?? probe, scale) }
  }

  /// A size that stands for all sizes in the identity of a transform.
  private static let probe = PixelSize(256, 256)

  /// A transform that resizes the image to cover the view, and then changes it.
  package static func covering(_ processor: ImageProcessor = .none) -> ViewTransform {
    .sized { size, scale in .displayImage(.covering(size) + processor, scale: scale) }
  }

  /// Whether the transform depends on the size of the view.
  package var isSized: Bool { if case .sized = self { true } else { false } }

  /// Returns the transform for a size.
  package func resolved(_ size: PixelSize?, scale: Double) -> ResourceTransform<DisplayImage> {
    switch self {
    case .fixed(let transform): transform
    case .sized(let transform): transform(size, scale)
    }
  }

  /// Returns the identity of the transform, whatever the size of the view.
  package func id(scale: Double) -> String { resolved(Self.probe, scale: scale).id }
}

extension ImageProcessor {
  /// Returns a resize to the smallest size that covers a view, or `none` if the view has no size yet. The image keeps
  /// its aspect ratio and is not enlarged, so it suits views that fit or fill their content.
  ///
  /// - Parameters:
  ///   - width: The width of the view in points.
  ///   - height: The height of the view in points.
  ///   - scale: The number of pixels per point.
  public static func covering(width: Double, height: Double, scale: Double) -> ImageProcessor {
    covering(PixelSize(viewWidth: width, height: height, scale: scale))
  }

  /// Returns a resize to the smallest size that covers a view of a size in pixels, or `none` without a size: see
  /// ``covering(width:height:scale:)``.
  public static func covering(_ size: PixelSize?) -> ImageProcessor { size.map { .resize(.fill($0.width, $0.height)) } ?? .none }
}

extension PixelSize {
  /// Creates the size of a view in pixels, rounded up, or `nil` for lengths that no view on a screen has.
  package init?(viewWidth width: Double, height: Double, scale: Double) {
    guard let width = Self.side(width, scale), let height = Self.side(height, scale) else { return nil }
    self.init(width, height)
  }

  private static func side(_ length: Double, _ scale: Double) -> Int? {
    let pixels = (length * scale).rounded(.up)
    return pixels >= 1 && pixels <= 65_536 ? Int(pixels) : nil
  }

  /// Returns the size in which a view that now has this size loads its image again, after a load in `former`.
  ///
  /// The image of a view that has shrunk to not less than half of a side stays. Other sizes are rounded up to quarters of a power
  /// of two, so that a window that is being resized starts a few loads and not one for each frame.
  package func resized(from former: PixelSize) -> PixelSize {
    let isCovered = width <= former.width && height <= former.height
    if isCovered, former.width <= 2 * width, former.height <= 2 * height { return former }
    return PixelSize(Self.roundedUp(width), Self.roundedUp(height))
  }

  private static func roundedUp(_ side: Int) -> Int {
    guard side > 4 else { return side }
    let step = (1 << (Int.bitWidth - 1 - side.leadingZeroBitCount)) / 4
    return (side + step - 1) / step * step
  }
}

/// Returns the first scale that a display can have. UIKit reports 0 for a view that has never been in a window.
package func firstDisplayScale(of scales: Double...) -> Double { scales.first { $0 >= 1 && $0 <= 16 } ?? 2 }
