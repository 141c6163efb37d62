public import Etagere
public import Observation

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The state of one image in a view. All views of this package are thin layers over it.
///
/// ```swift
/// let model = ImageModel()
/// model.load(url, .fill(96, 96) + .circle, scale: 2)
/// // in the view:
/// if let image = model.image { show(image) } else { showPlaceholder() }
/// ```
///
/// - An image in memory is shown when ``load(_:_:scale:options:)`` returns, so no placeholder flashes.
/// - A stale cached image is shown immediately and revalidated. The image changes only if the origin returns a
///   different one.
/// - After a call of ``load(_:_:scale:options:)``, no result of an earlier load is shown. A list can therefore reuse
///   its rows.
/// - Releasing the model cancels its load.
///
/// Views observe each property separately (Observation). A view that reads only ``image`` is not updated by
/// ``progress``.
@MainActor @Observable
public final class ImageModel {
  /// The state of the load.
  public private(set) var phase = ImagePhase.empty
  /// The image to show, or `nil` for a placeholder. For an animated image, the current frame.
  ///
  /// While an image is loaded in a different size, the previous size stays. After an error, a stale image stays, unless
  /// the origin refused the request with a permanent 4xx status such as 404. The statuses 408, 425 and 429 are
  /// temporary.
  public private(set) var image: DisplayImage?
  /// The progress of the transfer, or `nil` if no bytes are being received.
  public private(set) var progress: LoadProgress?

  /// The identity of a load. Loads with equal identities show the same image in the same size.
  private struct Identity: Equatable {
    var resource: ResourceIdentity
    var transform: String
    var policy: LoadPolicy?
  }

  private struct ResourceIdentity: Equatable {
    /// The key in the options or that of the manager or, without one, the URL.
    var key: String
    var isURL: Bool
    var partition: String?
    /// The stores of the options. A response in another store is another resource.
    var stores: [StoreChoice]
  }

  private struct Target {
    var identity: Identity
    var request: ResourceRequest
    var transform: ResourceTransform<DisplayImage>
  }

  @ObservationIgnored private let manager: ResourceManager
  @ObservationIgnored private var target: Target?
  @ObservationIgnored private var task: Task<Void, Never>?
  /// A number that changes at each start and end of a load. A task with another number delivers nothing.
  @ObservationIgnored private var generation = 0
  /// The resource that ``image`` is from. It changes only with the image, so a view that reads it is not updated by a
  /// 304.
  package private(set) var shown: (revision: Revision, key: CacheKey)?
  /// Whether the load was cancelled or slowed down because the view disappeared.
  @ObservationIgnored private var isSuspended = false
  /// A closure that is called after each change, in the same turn of the main actor.
  @ObservationIgnored package var onChange: (@MainActor () -> Void)?

  /// Creates a model without an image.
  public init(manager: ResourceManager = .shared) { self.manager = manager }

  deinit { task?.cancel() }

  // MARK: Loading

  /// Loads an image and shows it. A load of another image is cancelled.
  ///
  /// The policy is that of `options`, or else that of the manager. If the manager has `standard`, the model uses
  /// `staleWhileRevalidate`. If the same load is already running, the call has no effect. Two loads are the same if key or
  /// URL, processor, scale, partition, policy and the stores of the options are equal.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` to show no image.
  ///   - processor: The steps that change the image, such as a resize to the view's size in pixels.
  ///   - scale: The number of pixels per point.
  ///   - options: The options of the load.
  public func load(
    _ url: URL?, _ processor: ImageProcessor = .none, scale: Double = 1, options: RequestOptions = RequestOptions()
  ) {
    guard let url else { return clear() }
    var options = options
    options.policy = options.policy ?? manager.imagePolicy
    let transform = ResourceTransform.displayImage(processor, scale: scale)
    let key = manager.key(of: url, options)
    let identity = Identity(
      resource: ResourceIdentity(
        key: key ?? url.absoluteString, isURL: key == nil, partition: options.partition, stores: options.ownStores),
      transform: transform.id, policy: options.policy)
    let former = target?.identity
    if task != nil || isSuspended, identity == former { return resume() }
    target = Target(identity: identity, request: ResourceRequest(url, options: options), transform: transform)
    start(keepingImage: former?.resource == identity.resource, keepingPhase: former == identity)
  }

  /// Loads the image again after an error. Has no effect during a load or without a URL.
  public func retry() {
    guard target != nil, task == nil else { return }
    start(keepingImage: true, keepingPhase: false)
  }

  /// Ends the load. The current image stays. Without an image, the phase becomes `failed` with `CacheError.cancelled`.
  public func cancel() {
    guard task != nil || isSuspended else { return }
    stop()
    isSuspended = false
    if case .stale(let resource) = phase { phase = .loaded(resource) } else { phase = .failed(.cancelled) }
    onChange?()
  }

  // MARK: Visibility

  /// Cancels or slows down the load of a view that is no longer visible. The phase and the image do not change.
  /// ``load(_:_:scale:options:)`` resumes the load.
  ///
  /// - Parameter keepsLoading: Whether the load continues with the lowest priority. A load that has begun to receive
  ///   bytes then keeps its priority. If `false`, the load is cancelled.
  public func disappear(keepsLoading: Bool = false) {
    guard task != nil, !isSuspended, !(keepsLoading && progress != nil) else { return }
    isSuspended = true
    stop()
    if keepsLoading { run(priority: .veryLow) }
  }

  /// Continues the load that ``disappear(keepsLoading:)`` cancelled or slowed down.
  private func resume() {
    guard isSuspended else { return }
    isSuspended = false
    let slow = task
    run(priority: nil)
    // The new task starts first, so both share one transfer, which gets the higher priority.
    if let slow { Task { slow.cancel() } }
  }

  // MARK: Animation

  /// Shows the frames of an animated image in ``image``, timed by the manager's clock. Returns immediately for a still
  /// image.
  ///
  /// The animation ends after the last loop, with another image, or when the calling task is cancelled. Run it while
  /// the view is visible.
  public func animate() async {
    guard let animated = phase.resource?.value, animated.frameCount > 1, let origin = shown else { return }
    let clock = manager.configuration.clock
    var deadline = clock.uptime
    var loops = 0
    while true {
      for index in 0..<animated.frameCount {
        // A frame that cannot be decoded ends the animation. The previous frame stays.
        guard let frame = try? await animated.frame(index) else { return }
        let wait = deadline - clock.uptime
        if wait > .zero { guard (try? await clock.sleep(for: wait)) != nil else { return } }
        guard !Task.isCancelled, shown?.revision == origin.revision, shown?.key == origin.key else { return }
        if index > 0 || loops > 0 {
          image = frame
          onChange?()
        }
        // A late frame delays the following frames, so that none is skipped.
        deadline = max(deadline, clock.uptime) + animated.delays[index]
      }
      loops += 1
      if let limit = animated.loopCount, loops >= limit { return }
    }
  }

  // MARK: Transitions

  private func clear() {
    stop()
    isSuspended = false
    guard target != nil else { return }
    (target, shown) = (nil, nil)
    if image != nil { image = nil }
    phase = .empty
    onChange?()
  }

  private func stop() {
    task?.cancel()
    finish()
  }

  private func finish() {
    task = nil
    generation += 1
    if progress != nil { progress = nil }
  }

  /// Shows the image from memory, and starts a load if necessary.
  ///
  /// - Parameters:
  ///   - keepingImage: Whether the current image is from the same resource.
  ///   - keepingPhase: Whether the current image also has the same size and can serve as the cached one.
  private func start(keepingImage: Bool, keepingPhase: Bool) {
    guard let target else { return }
    stop()
    isSuspended = false
    if let cached = manager.cachedInMemory(target.request, as: target.transform) {
      // Under other policies, a stale image that is returned needs no revalidation.
      let isRevalidated = cached.isStale && target.identity.policy == .staleWhileRevalidate
      if case .loaded = phase, !isRevalidated, isShown(cached) { return }
      show(cached, isStale: isRevalidated)
      if !isRevalidated { return }
    } else if keepingPhase, let resource = phase.resource {
      show(resource, isStale: true)
    } else {
      if !keepingImage, image != nil { (image, shown) = (nil, nil) }
      phase = .loading
      onChange?()
    }
    run(priority: nil)
  }

  /// Starts a load of the target.
  ///
  /// - Parameter priority: The priority, or `nil` for that of the options.
  private func run(priority: LoadPriority.Level?) {
    guard var target else { return }
    if let priority { target.request.options.priority = priority }
    let events = manager.events(for: target.request, as: target.transform)
    generation += 1
    let generation = generation
    // The task starts in a later turn of the main actor. If the load is replaced before that, the task does nothing.
    task = Task { [weak self] in
      guard !Task.isCancelled else { return }
      do throws(CacheError) {
        for try await event in events {
          guard let self, self.generation == generation else { return }
          self.receive(event)
        }
      } catch {
        guard let self, self.generation == generation else { return }
        self.fail(error)
      }
    }
  }

  private func receive(_ event: ResourceEvent<DisplayImage>) {
    switch event {
    case .progress(let progress):
      self.progress = progress
      onChange?()
    case .stale(let resource):
      // The image may already be shown from memory.
      if case .stale(let former) = phase, former.revision == resource.revision { return }
      show(resource, isStale: true)
    case .final(let resource):
      isSuspended = false
      finish()
      show(resource, isStale: false)
    }
  }

  private func show(_ resource: Resource<DisplayImage>, isStale: Bool) {
    let isSame = isShown(resource)
    // The displayed object stays if the origin has no other image.
    let resource = isSame ? resource.with(phase.resource?.value ?? resource.value) : resource
    phase = isStale ? .stale(resource) : .loaded(resource)
    if !isSame || image == nil {
      shown = (resource.revision, resource.key)
      image = resource.value
    }
    onChange?()
  }

  private func isShown(_ resource: Resource<DisplayImage>) -> Bool {
    shown?.revision == resource.revision && shown?.key == resource.key
  }

  private func fail(_ error: CacheError) {
    isSuspended = false
    finish()
    if error.isRefusal, image != nil { (image, shown) = (nil, nil) }
    phase = .failed(error)
    onChange?()
  }
}

extension ResourceManager {
  /// The policy for images in views, unless their options set one.
  var imagePolicy: LoadPolicy { configuration.policy == .standard ? .staleWhileRevalidate : configuration.policy }
}

extension CacheError {
  /// Whether the origin refused the request permanently, so that an earlier response must not be shown.
  fileprivate var isRefusal: Bool {
    guard let status else { return false }
    return (400..<500).contains(status) && ![408, 425, 429].contains(status)
  }
}

/// The choice of a store by the options of a load.
enum StoreChoice: Equatable {
  /// The manager's store, or one that adapts it.
  case inherited
  case disabled
  case replaced(ComponentID)

  fileprivate init<Store>(_ override: Override<Store>?, id: (Store) -> ComponentID) {
    switch override {
    case nil, .adapted?: self = .inherited
    case .disabled?: self = .disabled
    case .use(let store)?: self = .replaced(id(store))
    }
  }
}

extension RequestOptions {
  /// The choices of the memory and of the durable store.
  var ownStores: [StoreChoice] { [StoreChoice(memory) { $0.id }, StoreChoice(store) { $0.id }] }
}
