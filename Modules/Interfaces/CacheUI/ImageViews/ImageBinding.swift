public import Etagere

#if canImport(UIKit) && !os(watchOS)
internal import UIKit
#elseif canImport(AppKit) && !targetEnvironment(macCatalyst)
internal import AppKit
#endif

/// The image of an object that shows one, such as a bar item, a text attachment or a view of one's own. The image views and the
/// buttons of UIKit and AppKit have such bindings in `setImage(from:)`.
///
/// ```swift
/// let binding = ImageBinding { content, crossfade in
///   if case .image(let image) = content { show(image) } else { showPlaceholder() }
/// }
/// binding.load(ResourceRequest(url), as: .displayImage(.fill(72, 72), scale: 3))
/// ```
///
/// - An image in memory is displayed before `load(_:as:)` returns.
/// - A later load ends the earlier one, whose image is not displayed any more.
/// - The object that shows the image owns the binding. Releasing the binding ends its load. The binding retains its closures, so
///   they reference their owner weakly.
@MainActor
public final class ImageBinding {
  /// The content that an object displays.
  public enum Content: Sendable {
    /// Neither an image nor the placeholder, which is delayed: see ``ImageModel/Settings/placeholderDelay``.
    case nothing
    /// The placeholder, during a load, after an error and without a URL.
    case placeholder
    /// The image, or the current frame of an animation.
    case image(DisplayImage)

    /// Returns the system's image for the content, or the placeholder if the system cannot make one.
    ///
    /// - Parameters:
    ///   - make: A function that makes the system's image, such as `\.uiImage` or `\.nsImage`.
    ///   - placeholder: The system's image of the placeholder, or `nil` for no placeholder.
    public func platformImage<Image>(_ make: (DisplayImage) -> Image?, placeholder: Image? = nil) -> Image? {
      switch self {
      case .nothing: nil
      case .placeholder: placeholder
      case .image(let image): make(image) ?? placeholder
      }
    }
  }

  /// A closure that displays content. It receives the content, and the duration of the crossfade to it, or `nil` for none.
  public typealias Display = @MainActor (_ content: Content, _ crossfade: Duration?) -> Void
  /// A closure that receives the result of a load.
  public typealias Completion = @MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void

  /// The model of the image, which cancels, retries and reports progress.
  public let model: ImageModel
  /// A closure that shows or hides a loading indicator.
  ///
  /// It is called when ``ImageModel/showsLoadingIndicator`` changes. A new closure is called at once if the indicator is visible.
  /// The closure that it replaces hides the indicator before.
  public var loadingIndicator: (@MainActor (_ isVisible: Bool) -> Void)? {
    willSet { if isIndicating { loadingIndicator?(false) } }
    didSet { if isIndicating { loadingIndicator?(true) } }
  }

  /// Whether the object is visible, which is the default. While it is not, an animation stands still and holds only the frame
  /// shown. A load continues.
  public var isVisible = true {
    didSet {
      if !isVisible {
        animation?.cancel()
        animation = nil
      }
      animate()
    }
  }

  let manager: ResourceManager
  private let display: Display
  private var isIndicating = false
  private var crossfade: Duration?
  private var completion: Completion?
  private var displayed = Content.nothing
  /// The image of the model that is displayed.
  private var shown: (revision: Revision, key: CacheKey)?
  /// Whether the model is starting a load. An image that is available right after that appears without a crossfade.
  private var isStarting = false
  private var animation: Task<Void, Never>?
  /// The last layout of a caller of ``layOut(width:height:scale:)``.
  private var layout: (size: PixelSize?, scale: Double)?
  /// A load of an image in the size of the view.
  private struct SizedLoad {
    /// The image that is loaded: none before the layout, one in the size of the view, or the whole one.
    enum Extent { case none, view, whole }

    let request: ResourceRequest
    let transform: ViewTransform
    var scale: Double
    /// The number of calls of the model's `load` and `cancel`. After another call, the load does not continue after a layout.
    var calls: Int
    var extent: Extent
  }

  private var sizedLoad: SizedLoad?

  /// Creates a binding without an image, which displays nothing before its first load.
  ///
  /// - Parameters:
  ///   - manager: The manager that loads the images.
  ///   - display: The closure that displays the content. The binding retains it.
  public init(manager: ResourceManager = .shared, display: @escaping Display) {
    self.manager = manager
    self.display = display
    model = ImageModel(manager: manager)
    model.onChange = { [weak self] in self?.modelChanged() }
  }

  deinit { animation?.cancel() }

  // MARK: Loading

  /// Loads an image and displays it. An earlier load of the binding is cancelled, and its completion is not called.
  ///
  /// Until the image is available, the placeholder is displayed. The earlier image stays if it is that of the same resource in
  /// another size, or if ``ImageModel/Settings/keepsPreviousImage`` is set. With reduced motion, there is no crossfade, and an
  /// animated image shows its first frame until ``AnimationPlayer/play()``.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` to display only the placeholder.
  ///   - transform: The transform that makes the image, in the size that it chooses.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - settings: The settings of the model.
  ///   - completion: A closure that is called once on the main actor, unless another load of this binding begins before.
  public func load(
    _ request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>, crossfade: Duration? = nil,
    settings: ImageModel.Settings = ImageModel.Settings(), completion: Completion? = nil
  ) {
    load(
      request, as: .fixed(transform), size: nil, scale: 1, settings: settings, animates: !Self.reducesMotion,
      crossfade: crossfade, completion: completion)
  }

  /// Loads an image with a transform for the size in which it is displayed. The load begins when
  /// ``layOut(width:height:scale:)`` has stated a size, and again after the size has grown.
  ///
  /// ```swift
  /// binding.load(ResourceRequest(url), as: { size, scale in .displayImage(.covering(size) + .circle, scale: scale) })
  /// binding.layOut(width: 48, height: 48, scale: 3)
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` to display only the placeholder.
  ///   - transform: A closure that returns the transform for the size in pixels and the number of pixels per point. The size is
  ///     `nil` for a view that takes the size of its image. The binding retains the closure.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - settings: The settings of the model.
  ///   - completion: A closure that is called once on the main actor, unless another load of this binding begins before.
  public func load(
    _ request: ResourceRequest?,
    as transform: @escaping @Sendable (_ size: PixelSize?, _ scale: Double) -> ResourceTransform<DisplayImage>,
    crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(), completion: Completion? = nil
  ) {
    load(
      request, as: .sized(transform), size: layout?.size, scale: layout?.scale ?? 1, settings: settings,
      animates: !Self.reducesMotion, crossfade: crossfade, completion: completion)
  }

  /// Loads an image with a transform for all sizes, or one for each size.
  ///
  /// - Parameters:
  ///   - size: The size of the view in pixels, or `nil` before its layout.
  ///   - animates: Whether animations play by themselves, and a crossfade is shown. It is `false` with reduced
  ///     motion.
  package func load(
    _ request: ResourceRequest?, as transform: ViewTransform, size: PixelSize?, scale: Double, settings: ImageModel.Settings,
    animates: Bool, crossfade: Duration?, completion: Completion?
  ) {
    self.completion = completion
    self.crossfade = animates ? crossfade : nil
    model.settings = settings
    if !animates { model.settings.autoplays = false }
    sizedLoad = nil
    start { model.load(request, as: transform, size: size, scale: scale) }
    if transform.isSized, let request {
      sizedLoad = SizedLoad(
        request: request, transform: transform, scale: scale, calls: model.calls, extent: size == nil ? .none : .view)
    }
    // The new load may have another placeholder.
    if model.image == nil { show(content, crossfade: nil) }
    update(crossfade: nil)
  }

  /// Ends the load without a call of its completion, and hides the indicator. Another binding takes the place of this one.
  func end() {
    (completion, model.onChange, loadingIndicator) = (nil, nil, nil)
    model.cancel()
  }

  private func start(_ load: () -> Void) {
    isStarting = true
    load()
    isStarting = false
  }

  // MARK: Layout

  /// States the size in which the image is displayed, in points. Call it after each layout, such as in `layoutSubviews()`.
  ///
  /// It loads the image of a transform for the size, if that has not been loaded or is too small. An empty size stands for a view
  /// that takes the size of its image: the whole image is loaded. A load that begins after the call uses the size, unless it is
  /// empty. The call has no effect on other loads, or after `cancel()` of the model.
  ///
  /// - Parameters:
  ///   - width: The width in points.
  ///   - height: The height in points.
  ///   - scale: The number of pixels per point. With a number that no display has, such as 0, it is 2.
  public func layOut(width: Double, height: Double, scale: Double) {
    let scale = firstDisplayScale(of: scale)
    let size = PixelSize(viewWidth: width, height: height, scale: scale)
    layout = (size, scale)
    layOut(size, scale: scale)
  }

  /// Loads the image in the size of the view after a layout. A view without a size, such as one that takes the size of its image,
  /// loads the whole image. It loads a smaller one later if it is laid out in at most half the size of the image.
  ///
  /// - Parameters:
  ///   - size: The size of the view in pixels, or `nil` if it is empty.
  ///   - scale: The number of pixels per point.
  package func layOut(_ size: PixelSize?, scale: Double) {
    guard var load = sizedLoad, load.calls == model.calls else { return }
    switch load.extent {
    case .none: break
    case .view: guard !model.covers(size) else { return }
    case .whole:
      guard let size else { return }
      if let whole = model.phase.resource?.value.size, size.width > whole.width / 2 || size.height > whole.height / 2 { return }
    }
    load.extent = size == nil ? .whole : .view
    load.scale = scale
    sizedLoad = load
    start {
      if size == nil { return model.load(load.request, as: load.transform.resolved(nil, scale: scale)) }
      model.load(load.request, as: load.transform, size: size, scale: scale)
    }
    sizedLoad?.calls = model.calls
    update(crossfade: nil)
  }

  // MARK: Changes

  private func modelChanged() {
    guard !isStarting else { return }
    // Frames of an animation change without a crossfade.
    let isSame = model.shown.map { $0.revision == shown?.revision && $0.key == shown?.key } ?? false
    update(crossfade: isSame && model.player.frameCount > 1 ? nil : crossfade)
  }

  private var content: Content {
    model.image.map { .image($0) } ?? (model.hidesPlaceholder ? .nothing : .placeholder)
  }

  private func show(_ content: Content, crossfade: Duration?) {
    (displayed, shown) = (content, model.shown)
    display(content, crossfade)
  }

  private func update(crossfade: Duration?) {
    let content = content
    switch (displayed, content) {
    case (.nothing, .nothing), (.placeholder, .placeholder): break
    case (.image(let former), .image(let image)) where image.isSame(as: former): break
    // An image from disk appears like one from memory.
    case (.nothing, _), (_, .placeholder), (_, .nothing): show(content, crossfade: nil)
    default: show(content, crossfade: crossfade)
    }
    if isIndicating != model.showsLoadingIndicator {
      isIndicating = model.showsLoadingIndicator
      loadingIndicator?(isIndicating)
    }
    switch model.phase {
    case .loaded(let resource): end(.success(resource))
    case .failed(let error): end(.failure(error))
    case .empty, .loading, .stale: break
    }
    animate()
  }

  private func end(_ result: Result<Resource<DisplayImage>, CacheError>) {
    let completion = completion
    self.completion = nil
    completion?(result)
  }

  private func animate() {
    guard isVisible, model.player.frameCount > 1, animation == nil else { return }
    animation = Task { [weak self, weak model] in
      // The model may show another animated image without a load of this view.
      while !Task.isCancelled, (model?.player.frameCount ?? 0) > 1 { await model?.animate() }
      if !Task.isCancelled { self?.animation = nil }
    }
  }
}

extension ImageBinding {
  /// Whether the user has asked the system for less motion. Linux has no such setting, and on watchOS it is not read.
  static var reducesMotion: Bool {
    #if canImport(UIKit) && !os(watchOS)
    UIAccessibility.isReduceMotionEnabled
    #elseif canImport(AppKit) && !targetEnvironment(macCatalyst)
    NSWorkspace.shared.accessibilityDisplayShouldReduceMotion
    #else
    false
    #endif
  }
}
