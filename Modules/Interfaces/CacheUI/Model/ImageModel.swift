public import Etagere
public import Observation

/// The state of one image in a view. All views of this package are thin layers over it.
///
/// ```swift
/// let model = ImageModel()
/// model.load(url, .fill(96, 96) + .circle, scale: 2)
/// // in the view:
/// if let image = model.image { show(image) } else { showPlaceholder() }
/// ```
///
/// ``load(_:as:)`` is the general form, for a request and a transform. The others are shorthands for it:
///
/// ```swift
/// let transform = ResourceTransform.displayImage(.circle, decoder: ImageDecoder { $0.firstFrameOnly = true })
/// let model = ImageModel()
/// model.load(ResourceRequest(url, options: options), as: transform)
/// ```
///
/// - An image in memory is shown when ``load(_:as:)`` returns, so no placeholder flashes.
/// - A stale cached image is shown immediately and revalidated. The image changes only if the origin returns another one.
/// - After a call of ``load(_:as:)``, no result of an earlier load is shown, so a list can reuse its rows.
///   ``Settings/keepsPreviousImage`` keeps an earlier image. Releasing the model cancels its load.
///
/// Views observe each property separately (Observation). A view that reads only ``image`` is not updated by ``progress``.
@MainActor @Observable
public final class ImageModel {
  /// The state of the load.
  public private(set) var phase = ImagePhase.empty
  /// The image to show, or `nil` for a placeholder. For an animated image, the current frame.
  ///
  /// While an image is loaded in a different size, the previous size stays. The image of another URL is removed before its
  /// successor is loaded, unless ``Settings/keepsPreviousImage`` is set. After an error, a stale or previous image stays, unless
  /// the origin refused the request with a permanent 4xx status such as 404. The statuses 408, 425 and 429 are temporary.
  public private(set) var image: DisplayImage?
  /// Whether ``image`` is a preview of an image that is arriving: see ``Settings/previews``.
  public private(set) var isPreview = false
  /// Whether the placeholder should not be shown yet, because the image may be on disk: see ``Settings/placeholderDelay``.
  public private(set) var hidesPlaceholder = false
  /// The progress of the transfer, or `nil` if no bytes are being received.
  public private(set) var progress: LoadProgress?
  /// The controls of an animated image.
  public let player = AnimationPlayer()

  /// The settings of the loads that begin after a change.
  @ObservationIgnored public var settings = Settings()
  @ObservationIgnored private let manager: ResourceManager
  @ObservationIgnored private var target: ImageTarget?
  @ObservationIgnored private var task: Task<Void, Never>?
  /// A number that changes at each start and end of a load. A task with another number delivers nothing.
  @ObservationIgnored private var generation = 0
  /// The resource that ``image`` is from. It changes only with the image, so a view that reads it is not updated by a 304.
  package private(set) var shown: (revision: Revision, key: CacheKey)?
  /// The identity of the request that ``image`` is from. The load may be one of another request, which has failed.
  @ObservationIgnored private var shownRequest: RequestIdentity?
  @ObservationIgnored private var placeholderWait: Task<Void, Never>?
  @ObservationIgnored private let waits = ViewWaits()
  /// Whether the load was cancelled or slowed down because the view disappeared, or waits for the view to appear.
  @ObservationIgnored private var isSuspended = false
  /// The uptime at which the image of the first load was shown before that load.
  @ObservationIgnored private var preparedAt: Duration?
  /// Whether the first load, or a load of no image, was requested.
  @ObservationIgnored private var hasLoaded = false
  /// The number of calls of ``load(_:as:)`` and ``cancel()``.
  @ObservationIgnored package private(set) var calls = 0
  /// Whether the load of a request begins when the view has a size.
  @ObservationIgnored private var awaitsLayout = false
  /// The last load in the size of a view.
  @ObservationIgnored private var viewLoad: (resource: RequestIdentity, size: PixelSize)?
  /// A function that makes the changes of an event, such as a new image. It calls its argument once, immediately. Changes in
  /// ``load(_:as:)``, previews, progress and frames of an animation are made without it.
  @ObservationIgnored package var transition: @MainActor (_ change: () -> Void) -> Void = { $0() }
  /// A closure that is called after each change, in the same turn of the main actor.
  @ObservationIgnored package var onChange: (@MainActor () -> Void)?

  /// Creates a model without an image.
  public init(manager: ResourceManager = .shared) { self.manager = manager }

  deinit {
    task?.cancel()
    placeholderWait?.cancel()
  }

  // MARK: Loading

  /// Loads the image of a request and shows it. A load of another image is cancelled.
  ///
  /// The policy is that of the request's options, or else that of the manager. If the manager has `standard`, the model uses
  /// `staleWhileRevalidate`. If the same load is already running, the call has no effect. Two loads are the same if the `id` of
  /// the transform, key or URL, header fields, partition, policy and the stores of the options are equal.
  ///
  /// A request that is not a GET, or has a body, is not sent. The phase is `failed` with `CacheError.Code.misuse`. Its response
  /// would be in no cache, so load it once with `ResourceManager.load(_:as:)`, and show the value.
  ///
  /// If the transform throws, the phase is `failed` with its error. The image of the same resource that another transform
  /// has made stays. The model shows an image in the size that the transform gives it.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` to show no image.
  ///   - transform: The transform that makes the image, such as `displayImage(_:decoder:scale:storedAs:)`.
  public func load(_ request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>) {
    let delaysPlaceholder = !isPlaceholderShown
    (hasLoaded, awaitsLayout) = (true, false)
    calls += 1
    guard let request else { return clear() }
    let former = target?.identity
    let next = ImageTarget(request, transform, manager)
    if next.identity == former {
      if task != nil || isSuspended { return resume() }
      if let preparedAt, manager.configuration.clock.uptime - preparedAt < Self.preparedTime { return self.preparedAt = nil }
    }
    target = next
    start(keepingPhase: former == next.identity, delayingPlaceholder: delaysPlaceholder)
  }

  /// The time after which a load looks up the image that was shown before it. A view may appear long after its first evaluation.
  private static let preparedTime = Duration.seconds(1)

  /// Shows the image of the first load before it, if it is in memory. Otherwise, only hides a placeholder that is delayed.
  ///
  /// A view calls it in its body, so that the image is in its first frame. It starts no load, because the view may never appear.
  /// A call of ``load(_:as:size:scale:)`` that follows within a second does not look up the image again.
  package func prepare(_ request: ResourceRequest?, as transform: ViewTransform, size: PixelSize?, scale: Double) {
    guard target == nil, !hasLoaded, let request, request.isPlainGet, size != nil || !transform.isSized else { return }
    let next = ImageTarget(request, transform.resolved(size, scale: scale), manager)
    guard let cached = manager.cachedInMemory(next.request, as: next.transform) else {
      if settings.placeholderDelay > .zero, !hidesPlaceholder, manager.readsDisk(request) { hidesPlaceholder = true }
      return
    }
    target = next
    isSuspended = next.revalidates(cached)
    preparedAt = isSuspended ? nil : manager.configuration.clock.uptime
    show(cached, isStale: isSuspended)
  }

  /// Loads the image of a view. If the transform depends on the size of the view, no image is shown without a size.
  ///
  /// The first load of a resource has exactly the view's size. After that, a resized view starts few loads:
  /// ``PixelSize/resized(from:)``.
  ///
  /// - Parameters:
  ///   - size: The size of the view in pixels, or `nil` before its layout.
  ///   - scale: The number of pixels per point, for a transform that depends on the size.
  package func load(_ request: ResourceRequest?, as transform: ViewTransform, size: PixelSize?, scale: Double) {
    if case .fixed(let transform) = transform { return load(request, as: transform) }
    guard let request, let size else {
      viewLoad = nil
      if let request { awaitLayout(request) } else { load(nil) }
      return
    }
    let resource = manager.identity(of: request)
    let former = viewLoad.flatMap { $0.resource == resource ? $0.size : nil }
    let next = former.map(size.resized) ?? size
    viewLoad = (resource, next)
    load(request, as: transform.resolved(next, scale: scale))
  }

  /// Whether the last load in the size of a view suffices for a size. Without a size, any load does.
  package func covers(_ size: PixelSize?) -> Bool {
    guard let viewLoad else { return false }
    return size.map { $0.resized(from: viewLoad.size) == viewLoad.size } ?? true
  }

  /// Loads the image again after an error. Has no effect during a load or without a URL.
  public func retry() {
    guard target != nil, task == nil else { return }
    start(keepingPhase: false, delayingPlaceholder: false)
  }

  /// Ends the load. The current image stays, unless it is a preview. Without an image, the phase becomes `failed` with
  /// `CacheError.cancelled`.
  public func cancel() {
    calls += 1
    guard task != nil || isSuspended || awaitsLayout else { return }
    stop()
    (isSuspended, awaitsLayout) = (false, false)
    showPlaceholder()
    if isPreview { removeImage() }
    if case .stale(let resource) = phase { phase = .loaded(resource) } else { phase = .failed(.cancelled) }
    endWait(.failure(.cancelled))
    onChange?()
  }

  // MARK: Visibility

  /// Cancels or slows down the load of a view that is no longer visible. The phase and the image do not change.
  /// ``load(_:as:)`` resumes the load.
  ///
  /// - Parameter keepsLoading: Whether the load continues with the lowest priority. A load that has begun to receive
  ///   bytes then keeps its priority. If `false`, the load is cancelled.
  public func disappear(keepsLoading: Bool = false) {
    // The delay of the placeholder begins again with the view.
    placeholderWait?.cancel()
    placeholderWait = nil
    defer { endWait(.failure(.cancelled)) }
    guard task != nil, !isSuspended, !(keepsLoading && progress != nil) else { return }
    isSuspended = true
    stop()
    if keepsLoading { run(priority: .veryLow) }
  }

  /// Continues the load that ``disappear(keepsLoading:)`` cancelled or slowed down.
  private func resume() {
    if hidesPlaceholder, placeholderWait == nil { delayPlaceholder() }
    if isSuspended {
      isSuspended = false
      let slow = task
      run(priority: nil)
      // The new task starts first, so both share one transfer, which gets the higher priority.
      if let slow { Task { slow.cancel() } }
    }
    if case .loading = phase, let target { beginWait(target.request) }
  }

  /// Removes the image of another request from a view that has disappeared, unless the settings keep it, for `prepare`.
  package func reset(for request: ResourceRequest?) {
    let resource = request.map(manager.identity)
    guard !settings.keepsPreviousImage, let target, target.identity.resource != resource else { return }
    clear()
    (hasLoaded, viewLoad) = (false, nil)
  }

  // MARK: Animation

  /// Shows the frames of an animated image in ``image``, timed by the manager's clock and controlled by ``player``. For a still
  /// image, returns immediately.
  ///
  /// Run it while the view is visible: it ends with another image, or when the calling task is cancelled. A later call continues
  /// from the current frame. Of several calls at the same time, for several views of the model, one shows the frames, and the
  /// next one continues when its task is cancelled. The task retains the model, so cancel it with the view.
  public func animate() async {
    await player.run(manager.configuration.clock, autoplays: settings.autoplays) { frame in
      image = frame
      onChange?()
    }
  }

  // MARK: Transitions

  /// Shows no image, or the previous one, until the view has a size.
  private func awaitLayout(_ request: ResourceRequest) {
    let delaysPlaceholder = !isPlaceholderShown && manager.readsDisk(request)
    (hasLoaded, awaitsLayout) = (true, true)
    clear(keepingImage: settings.keepsPreviousImage && !isPreview, delayingPlaceholder: delaysPlaceholder)
    beginWait(request)
  }

  /// Begins the wait for an image, unless the view already waits for it or shows it in another size.
  private func beginWait(_ request: ResourceRequest) { waits.begin(request, manager, shown: isPreview ? nil : shownRequest) }

  private func endWait(_ result: Result<ResourceSource, CacheError>) { waits.end(result, of: target?.identity.resource) }

  private func clear(keepingImage: Bool = false, delayingPlaceholder: Bool = false) {
    stop()
    (isSuspended, preparedAt) = (false, nil)
    let (wasEmpty, wasHidden) = (target == nil && image == nil, hidesPlaceholder)
    target = nil
    if !keepingImage { removeImage() }
    if delayingPlaceholder { delayPlaceholder() } else { showPlaceholder() }
    let isChanged = !wasEmpty || hidesPlaceholder != wasHidden
    if isChanged { phase = .empty }
    if !awaitsLayout { endWait(.failure(.cancelled)) }
    if isChanged { onChange?() }
  }

  private func removeImage() {
    (shown, shownRequest) = (nil, nil)
    if image != nil { image = nil }
    player.reset(nil, autoplays: false)
    if isPreview { isPreview = false }
  }

  /// Removes the image of another request than the target's. The settings may keep an image, but no preview.
  private func removeFormerImage(_ target: ImageTarget) {
    if shownRequest != target.identity.resource, !settings.keepsPreviousImage || isPreview { removeImage() }
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
  ///   - keepingPhase: Whether the resource of the phase is that of the load and can serve as the cached one.
  ///   - delayingPlaceholder: Whether no placeholder was shown before the load.
  private func start(keepingPhase: Bool, delayingPlaceholder: Bool) {
    guard let target else { return }
    stop()
    (isSuspended, preparedAt) = (false, nil)
    guard target.request.isPlainGet else {
      removeFormerImage(target)
      return show(CacheError(.misuse, reason: "a view loads only GET requests without a body").about(target.request.url.address))
    }
    if let cached = manager.cachedInMemory(target.request, as: target.transform) {
      let isRevalidated = target.revalidates(cached)
      if case .loaded = phase, !isRevalidated, isShown(cached) { return shownRequest = target.identity.resource }
      // The load begins first, because the closures that learn of a change may cancel it.
      if isRevalidated { run(priority: nil) }
      show(cached, isStale: isRevalidated)
    } else if keepingPhase, let resource = phase.resource {
      run(priority: nil)
      show(resource, isStale: true)
    } else {
      removeFormerImage(target)
      phase = .loading
      if delayingPlaceholder, manager.readsDisk(target.request) { delayPlaceholder() } else { showPlaceholder() }
      run(priority: nil)
      beginWait(target.request)
      onChange?()
    }
  }

  /// Starts a load of the target.
  ///
  /// - Parameter priority: The priority, or `nil` for that of the options.
  private func run(priority: LoadPriority.Level?) {
    guard var target else { return }
    if let priority { target.request.options.priority = priority }
    let (manager, previews) = (manager, settings.previews)
    generation += 1
    let generation = generation
    // The task starts in a later turn of the main actor. If the load is replaced before that, the task does nothing.
    task = Task { [weak self] in
      guard !Task.isCancelled else { return }
      do throws(CacheError) {
        if let previews {
          for try await event in manager.previewedEvents(for: target.request, as: target.transform, previews: previews) {
            guard let self, self.generation == generation else { return }
            switch event {
            case .preview(let image): self.show(preview: image)
            case .event(let event): self.receive(event)
            }
          }
        } else {
          for try await event in manager.events(for: target.request, as: target.transform) {
            guard let self, self.generation == generation else { return }
            self.receive(event)
          }
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
      change { show(resource, isStale: true) }
    case .final(let resource):
      isSuspended = false
      finish()
      change { show(resource, isStale: false) }
    }
  }

  /// Makes the changes of an event in the transition. What appears instead of a hidden placeholder appears like an image in
  /// memory, without a transition.
  private func change(_ change: () -> Void) {
    if hidesPlaceholder { change() } else { transition(change) }
  }

  /// Whether a placeholder is shown. It stays until the image is available, because hiding it would be a flash, too.
  private var isPlaceholderShown: Bool { hasLoaded && image == nil && !hidesPlaceholder }

  /// Hides the placeholder for the time of the settings, if no image is shown.
  private func delayPlaceholder() {
    placeholderWait?.cancel()
    let (clock, delay) = (manager.configuration.clock, settings.placeholderDelay)
    guard delay > .zero, image == nil else { return showPlaceholder() }
    if !hidesPlaceholder { hidesPlaceholder = true }
    placeholderWait = Task { [weak self] in
      guard (try? await clock.sleep(for: delay)) != nil, !Task.isCancelled, let self else { return }
      self.showPlaceholder()
      self.onChange?()
    }
  }

  /// Ends the delay of the placeholder.
  private func showPlaceholder() {
    placeholderWait?.cancel()
    placeholderWait = nil
    if hidesPlaceholder { hidesPlaceholder = false }
  }

  /// Shows a preview, unless an image is shown, which has more detail.
  private func show(preview: DisplayImage) {
    guard image == nil || isPreview else { return }
    showPlaceholder()
    (image, shownRequest) = (preview, target?.identity.resource)
    if !isPreview { isPreview = true }
    onChange?()
  }

  private func show(_ resource: Resource<DisplayImage>, isStale: Bool) {
    let isSame = isShown(resource)
    // The displayed object stays if the origin has no other image.
    let resource = isSame ? resource.with(phase.resource?.value ?? resource.value) : resource
    phase = isStale ? .stale(resource) : .loaded(resource)
    shownRequest = target?.identity.resource
    if !isSame || image == nil {
      let continues = shown?.revision == resource.revision
      shown = (resource.revision, resource.key)
      let keepsFrame = player.reset(resource.value, autoplays: settings.autoplays, continues: continues)
      if !keepsFrame { image = resource.value }
    }
    showPlaceholder()
    if isPreview { isPreview = false }
    endWait(.success(resource.source))
    onChange?()
  }

  private func isShown(_ resource: Resource<DisplayImage>) -> Bool {
    shown?.revision == resource.revision && shown?.key == resource.key
  }

  private func fail(_ error: CacheError) {
    isSuspended = false
    finish()
    change { show(error) }
  }

  private func show(_ error: CacheError) {
    showPlaceholder()
    if error.isRefusal || isPreview { removeImage() }
    phase = .failed(error)
    endWait(.failure(error))
    onChange?()
  }
}
