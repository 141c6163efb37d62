internal import Etagere

/// The logic that the image views of UIKit and AppKit share: it shows the image of a model in a view.
///
/// The view owns the binding, so the load ends with the view.
@MainActor
package final class ImageViewBinding {
  /// The content of a view.
  package enum Content {
    /// Neither an image nor the placeholder, which is delayed.
    case nothing
    case placeholder
    case image(DisplayImage)

    /// Returns the system's image for the content. Without one, the placeholder takes its place.
    package func image<Image>(_ make: (DisplayImage) -> Image?, placeholder: Image?) -> Image? {
      switch self {
      case .nothing: nil
      case .placeholder: placeholder
      case .image(let image): make(image) ?? placeholder
      }
    }
  }

  /// A closure that changes the view. It receives the content, and the duration of a crossfade or `nil`.
  package typealias Display = @MainActor (_ content: Content, _ crossfade: Duration?) -> Void
  package typealias Completion = @MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void

  package private(set) var model: ImageModel
  private var manager: ResourceManager
  private var display: Display = { _, _ in }
  private var crossfade: Duration?
  private var completion: Completion?
  private var displayed = Content.nothing
  /// Whether the model is starting a load. An image that is available right after that appears without a crossfade.
  private var isStarting = false
  private var animation: Task<Void, Never>?
  private var animates = true
  /// A load of an image in the size of the view.
  private struct SizedLoad {
    /// The image that is loaded: none before the layout, one in the size of the view, or the whole one.
    enum Extent { case none, view, whole }

    let request: ResourceRequest
    let transform: ViewTransform
    var scale: Double
    /// The number of cancellations of the model. A cancelled load does not continue after a layout.
    let cancellations: Int
    var extent: Extent
  }

  private var sizedLoad: SizedLoad?

  package init(manager: ResourceManager) {
    self.manager = manager
    model = ImageModel(manager: manager)
  }

  deinit { animation?.cancel() }

  /// Loads an image into the view. An earlier load of the view is cancelled, and its completion is not called.
  ///
  /// - Parameters:
  ///   - transform: The transform. If it depends on the size of the view, the load waits for a size: see ``layOut(_:scale:)``.
  ///   - size: The size of the view in pixels, or `nil` before its layout.
  ///   - animates: Whether frames of an animation and a crossfade are shown. Not with reduced motion.
  package func load(
    _ request: ResourceRequest?, as transform: ViewTransform, size: PixelSize?, scale: Double, settings: ImageModel.Settings,
    manager: ResourceManager, animates: Bool, crossfade: Duration?, display: @escaping Display, completion: Completion?
  ) {
    if manager !== self.manager {
      self.manager = manager
      model.cancel()
      model.onChange = nil
      model = ImageModel(manager: manager)
    }
    (self.display, self.completion, self.animates) = (display, completion, animates)
    self.crossfade = animates ? crossfade : nil
    model.onChange = { [weak self] in self?.modelChanged() }
    model.settings = settings
    sizedLoad = nil
    if transform.isSized, let request {
      sizedLoad = SizedLoad(
        request: request, transform: transform, scale: scale, cancellations: model.cancellations,
        extent: size == nil ? .none : .view)
    }
    start { model.load(request, as: transform, size: size, scale: scale) }
    // The new load may have another placeholder.
    if model.image == nil { show(content, crossfade: nil) }
    update(crossfade: nil)
  }

  private func start(_ load: () -> Void) {
    animation?.cancel()
    animation = nil
    isStarting = true
    load()
    isStarting = false
  }

  /// Loads the image in the size of the view after a layout. A view without a size, such as one that takes the size of its image,
  /// loads the whole image. It loads a smaller one later if it is laid out in at most half the size of the image.
  ///
  /// - Parameters:
  ///   - size: The size of the view in pixels, or `nil` if it is empty.
  ///   - scale: The number of pixels per point.
  package func layOut(_ size: PixelSize?, scale: Double) {
    guard var load = sizedLoad, load.cancellations == model.cancellations else { return }
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
    update(crossfade: nil)
  }

  private func modelChanged() {
    guard !isStarting else { return }
    // Frames of an animation change without a crossfade.
    update(crossfade: animation == nil ? crossfade : nil)
  }

  private var content: Content {
    model.image.map { .image($0) } ?? (model.hidesPlaceholder ? .nothing : .placeholder)
  }

  private func show(_ content: Content, crossfade: Duration?) {
    displayed = content
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
    switch model.phase {
    case .loaded(let resource):
      end(.success(resource))
      animate(resource.value)
    case .failed(let error): end(.failure(error))
    case .empty, .loading, .stale: break
    }
  }

  private func end(_ result: Result<Resource<DisplayImage>, CacheError>) {
    let completion = completion
    self.completion = nil
    completion?(result)
  }

  private func animate(_ image: DisplayImage) {
    guard animates, image.frameCount > 1, animation == nil else { return }
    animation = Task { [weak self, weak model] in
      await model?.animate()
      if !Task.isCancelled { self?.animation = nil }
    }
  }
}

#if canImport(ObjectiveC)
/// The key of the binding that an image view owns. The shared object has one address in the whole process.
@MainActor let bindingKey = UnsafeRawPointer(Unmanaged.passUnretained(BindingKey.shared).toOpaque())

private final class BindingKey: Sendable {
  static let shared = BindingKey()
}
#endif
