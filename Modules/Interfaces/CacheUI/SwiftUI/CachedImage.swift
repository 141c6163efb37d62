#if canImport(SwiftUI)
public import Etagere
public import Foundation
public import SwiftUI

/// A view that loads and shows an image, from the cache if possible.
///
/// ```swift
/// CachedImage(url) { image in
///   image.resizable().scaledToFill()
/// } placeholder: { model in
///   if model.phase.error != nil {
///     Button("Retry", systemImage: "arrow.clockwise", action: model.retry)
///   } else {
///     ProgressView(value: model.progress?.fraction)
///   }
/// }
/// .downsampledToView()
/// .frame(width: 96, height: 96)
/// .clipped()
/// ```
///
/// The initializers with the label `url` have the form of those of `AsyncImage`, so the name of the type is all that changes. The
/// others also pass the model of the load. Unlike `AsyncImage`, the view shows an image in memory without a placeholder, and
/// revalidates a stale image while showing it.
///
/// For a decoder of one's own, limits or previews, use `transform(_:)` and `previews(_:)`. For header fields or a key, create
/// the view from a request.
///
/// An image without a label is hidden from assistive technology. Set a label with the initializer.
public struct CachedImage<Content: View>: View {
  private var request: ResourceRequest?
  private let scale: CGFloat
  private let transaction: Transaction
  private let content: (ImageModel) -> Content
  private var processor = ImageProcessor.none
  /// The transform in place of the processor, the scale and the resize.
  private var transform: ViewTransform?
  private var settings = ImageModel.Settings()
  /// Whether the content is hidden with the placeholder. Content that is made from the model decides by itself.
  private var hidesContent = false
  private var isDownsampled = false
  private var keepsLoading = false
  @Environment(\.resourceManager) private var manager
  @Environment(\.displayScale) private var displayScale

  /// Creates a view from the states of an image's load.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` for no image. A view loads only GET requests without a body.
  ///   - scale: The number of pixels per point. With ``downsampledToView()``, the display's scale is used.
  ///   - transaction: The transaction in which the phase changes after the start of the load.
  ///   - content: A closure that makes the view from the model, which contains the phase, the image, the progress and
  ///     `retry()`. Several views overlap, as in a `ZStack`. Without a view, the image is loaded nevertheless.
  public init(
    request: ResourceRequest?, scale: CGFloat = 1, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (ImageModel) -> Content
  ) {
    self.request = request
    self.scale = scale
    self.transaction = transaction
    self.content = content
  }

  /// Creates a view from the image of a request and a placeholder.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` for no image.
  ///   - scale: The number of pixels per point. With ``downsampledToView()``, the display's scale is used.
  ///   - label: The accessibility label of the image, or `nil` if the image is decorative.
  ///   - transaction: The transaction in which the phase changes after the start of the load.
  ///   - content: A closure that makes the view from the image.
  ///   - placeholder: A closure that makes the view shown without an image. Its argument contains the progress and the
  ///     error.
  public init<Loaded: View, Placeholder: View>(
    request: ResourceRequest?, scale: CGFloat = 1, label: Text? = nil, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (Image) -> Loaded, @ViewBuilder placeholder: @escaping (ImageModel) -> Placeholder
  ) where Content == _ConditionalContent<Loaded, Placeholder> {
    self.init(request: request, scale: scale, transaction: transaction) { model in
      if let image = model.image.flatMap({ Image($0, label: label) }) { content(image) } else { placeholder(model) }
    }
    hidesContent = true
  }

  /// Creates a view from the states of the load of a URL's image: see the initializer for a request.
  public init(
    _ url: URL?, scale: CGFloat = 1, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (ImageModel) -> Content
  ) {
    self.init(request: url.map { ResourceRequest($0) }, scale: scale, transaction: transaction, content: content)
  }

  /// Creates a view from the image of a URL and a placeholder: see the initializer for a request.
  public init<Loaded: View, Placeholder: View>(
    _ url: URL?, scale: CGFloat = 1, label: Text? = nil, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (Image) -> Loaded, @ViewBuilder placeholder: @escaping (ImageModel) -> Placeholder
  ) where Content == _ConditionalContent<Loaded, Placeholder> {
    self.init(
      request: url.map { ResourceRequest($0) }, scale: scale, label: label, transaction: transaction, content: content,
      placeholder: placeholder)
  }

  /// Creates a view that shows the image of a request in its original size, with a gray placeholder.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` for no image.
  ///   - scale: The number of pixels per point.
  ///   - label: The accessibility label of the image, or `nil` if the image is decorative.
  public init(
    request: ResourceRequest?, scale: CGFloat = 1, label: Text? = nil
  ) where Content == _ConditionalContent<Image, Color> {
    self.init(request: request, scale: scale, label: label) {
      $0
    } placeholder: { _ in
      Color.gray.opacity(0.3)
    }
  }

  /// Creates a view that shows the image of a URL in its original size: see the initializer for a request.
  public init(_ url: URL?, scale: CGFloat = 1, label: Text? = nil) where Content == _ConditionalContent<Image, Color> {
    self.init(request: url.map { ResourceRequest($0) }, scale: scale, label: label)
  }

  /// Creates a view from the phases of a load, as `AsyncImage` does. A stale image is a success, even after an error.
  public init(
    url: URL?, scale: CGFloat = 1, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (AsyncImagePhase) -> Content
  ) {
    self.init(url, scale: scale, transaction: transaction) { model in
      content(model.asyncImagePhase)
    }
    hidesContent = true
  }

  /// Creates a view from the image and a placeholder, as `AsyncImage` does.
  public init<Loaded: View, Placeholder: View>(
    url: URL?, scale: CGFloat = 1, @ViewBuilder content: @escaping (Image) -> Loaded,
    @ViewBuilder placeholder: @escaping () -> Placeholder
  ) where Content == _ConditionalContent<Loaded, Placeholder> {
    self.init(url, scale: scale, content: content) { _ in placeholder() }
  }

  /// Creates a view that shows the image in its original size, as `AsyncImage` does.
  public init(url: URL?, scale: CGFloat = 1) where Content == _ConditionalContent<Image, Color> { self.init(url, scale: scale) }

  public var body: some View {
    let transform = transform ?? (isDownsampled ? .covering(processor) : .fixed(.displayImage(processor, scale: Double(scale))))
    if transform.isSized {
      GeometryReader { proxy in
        let size = proxy.size
        let scale = firstDisplayScale(of: Double(displayScale))
        let pixels = PixelSize(viewWidth: Double(size.width), height: Double(size.height), scale: scale)
        view(transform, pixels, scale).frame(width: size.width, height: size.height)
      }
    } else {
      view(transform, nil, Double(scale))
    }
  }

  private func view(_ transform: ViewTransform, _ size: PixelSize?, _ scale: Double) -> some View {
    ModelView(
      manager: manager, request: request, transform: transform, size: size, scale: scale, settings: settings,
      keepsLoading: keepsLoading, hidesContent: hidesContent, transaction: transaction, content: content
    )
    .id(ObjectIdentifier(manager))
  }

  // MARK: Settings

  /// Resizes the image to cover the view, in pixels of the display. The view takes all the space proposed to it. In a scroll view
  /// or a row of a list, give it a frame, because these propose no height.
  ///
  /// A view that is being resized loads the image again only in a few sizes.
  ///
  /// A codec that can decode to a smaller size never makes the full size. A list of small views therefore needs little
  /// memory.
  public func downsampledToView() -> Self { changed { $0.isDownsampled = true } }

  /// Changes the image, after a resize to the view's size.
  public func processed(by processor: ImageProcessor) -> Self { changed { $0.processor = processor } }

  /// Makes the image with a transform, in place of the processor, the scale and the resize to the view.
  ///
  /// ```swift
  /// CachedImage(url).transform(.displayImage(.circle, decoder: ImageDecoder { $0.firstFrameOnly = true }))
  /// ```
  public func transform(_ transform: ResourceTransform<DisplayImage>) -> Self { changed { $0.transform = .fixed(transform) } }

  /// Makes the image with a transform for the size of the view, in place of the processor and the resize to the view. The view
  /// takes all the space proposed to it, as with ``downsampledToView()``.
  ///
  /// ```swift
  /// CachedImage(url).transform { size, scale in
  ///   .displayImage(.covering(size) + .circle, scale: scale, storedAs: .automatic)
  /// }
  /// ```
  ///
  /// - Parameter transform: A closure that returns the transform for the view's size in pixels and the number of pixels per
  ///   point. It is also called with another size, to find out whether the transform has changed. For equal arguments, it must
  ///   return transforms with equal `id`s.
  public func transform(
    _ transform: @escaping @Sendable (_ size: PixelSize, _ scale: Double) -> ResourceTransform<DisplayImage>
  ) -> Self {
    changed { $0.transform = .laidOut(transform) }
  }

  /// Shows previews of a progressive JPEG while it arrives, where no image is shown.
  public func previews(_ previews: ImagePreviews? = .standard) -> Self { changed { $0.settings.previews = previews } }

  /// Keeps the image until that of another request is available, or the origin refuses the request. By default, the placeholder
  /// takes its place when the request changes.
  public func keepsPreviousImage(_ keeps: Bool = true) -> Self { changed { $0.settings.keepsPreviousImage = keeps } }

  /// Sets the time for which a load may read the disk before the placeholder is shown. The default is zero.
  ///
  /// During that time, the view shows nothing. Content that is made from the model is shown, and can read
  /// ``ImageModel/hidesPlaceholder``. See ``ImageModel/Settings/placeholderDelay``.
  public func placeholderDelay(_ delay: Duration) -> Self { changed { $0.settings.placeholderDelay = delay } }

  /// Sets whether an animated image plays when it appears. It never does if the user reduces motion. The controls are in
  /// ``ImageModel/player``.
  public func autoplays(_ autoplays: Bool = true) -> Self { changed { $0.settings.autoplays = autoplays } }

  /// Sets the options of the load, in place of those of the request.
  public func requestOptions(_ options: RequestOptions) -> Self { changed { $0.request?.options = options } }

  /// Continues the load with the lowest priority when the view disappears. By default, the load is cancelled.
  public func keepsLoadingOffscreen() -> Self { changed { $0.keepsLoading = true } }

  private func changed(_ change: (inout Self) -> Void) -> Self {
    var view = self
    change(&view)
    return view
  }
}

/// The view that owns the model.
private struct ModelView<Content: View>: View {
  /// The values whose change starts another load.
  private struct Load: Equatable {
    var resource: RequestIdentity?
    var policy: LoadPolicy?
    var transform: String
    var scale: Double
  }

  let manager: ResourceManager
  let request: ResourceRequest?
  let transform: ViewTransform
  /// The size of the view in pixels, or `nil` before its layout.
  let size: PixelSize?
  let scale: Double
  let settings: ImageModel.Settings
  let keepsLoading: Bool
  let hidesContent: Bool
  let transaction: Transaction
  let content: (ImageModel) -> Content
  @State private var model: ImageModel
  @State private var isVisible = false
  @Environment(\.accessibilityReduceMotion) private var reducesMotion

  init(
    manager: ResourceManager, request: ResourceRequest?, transform: ViewTransform, size: PixelSize?, scale: Double,
    settings: ImageModel.Settings, keepsLoading: Bool, hidesContent: Bool, transaction: Transaction,
    content: @escaping (ImageModel) -> Content
  ) {
    self.manager = manager
    self.request = request
    self.transform = transform
    self.size = size
    self.scale = scale
    self.settings = settings
    self.keepsLoading = keepsLoading
    self.hidesContent = hidesContent
    self.transaction = transaction
    self.content = content
    _model = State(initialValue: ImageModel(manager: manager))
  }

  var body: some View {
    let load = Load(
      resource: request.map { RequestIdentity($0) }, policy: request?.options.policy,
      transform: transform.id(scale: scale), scale: scale)
    // The content of the first evaluation has an image in memory. SwiftUI may draw it before "onAppear". The initializer does not
    // look the image up, because it runs at each evaluation of the parent.
    let _ = prepare()
    // A container, because SwiftUI applies these modifiers to each view of the content. Content without views would never appear,
    // and its image would never load.
    ZStack { content(model) }
      .opacity(hidesContent && model.hidesPlaceholder ? 0 : 1)
      .onAppear {
        isVisible = true
        start()
      }
      .onDisappear {
        isVisible = false
        model.disappear(keepsLoading: keepsLoading)
      }
      // A view that has disappeared loads when it appears again. SwiftUI may draw it before "onAppear".
      .onChange(of: load) { if isVisible { start() } else { model.reset(for: request) } }
      .onChange(of: size) { if isVisible, transform.isSized, !model.covers(size) { start() } }
      .task(id: Playback(revision: model.shown?.revision, key: model.shown?.key, reducesMotion: reducesMotion)) {
        await model.animate()
      }
  }

  private var currentSettings: ImageModel.Settings {
    var settings = settings
    if reducesMotion { settings.autoplays = false }
    return settings
  }

  private func prepare() {
    model.settings = currentSettings
    model.prepare(request, as: transform, size: size, scale: scale)
  }

  private func start() {
    model.transition = { [transaction] change in withTransaction(transaction, change) }
    model.settings = currentSettings
    model.load(request, as: transform, size: size, scale: scale)
  }
}

/// The values whose change starts the frames of another image, or plays or pauses the image.
private struct Playback: Equatable {
  var revision: Revision?
  var key: CacheKey?
  var reducesMotion: Bool
}

extension ImageModel {
  /// The phase in the form of `AsyncImage`.
  fileprivate var asyncImagePhase: AsyncImagePhase {
    if let image = image.flatMap({ Image($0) }) { return .success(image) }
    return phase.error.map { .failure($0) } ?? .empty
  }
}

extension Image {
  /// Creates a SwiftUI image from a display image, with a size in points according to its scale.
  ///
  /// - Parameters:
  ///   - image: The image.
  ///   - label: The accessibility label, or `nil` for a decorative image.
  public init?(_ image: DisplayImage, label: Text? = nil) {
    guard let drawn = image.cgImage else { return nil }
    if let label {
      self.init(drawn, scale: CGFloat(image.scale), label: label)
    } else {
      self.init(decorative: drawn, scale: CGFloat(image.scale))
    }
    if image.isTemplate { self = renderingMode(.template) }
  }
}

extension EnvironmentValues {
  /// The manager that loads the images of ``CachedImage``. The default is `ResourceManager.shared`.
  public var resourceManager: ResourceManager {
    get { self[ResourceManagerKey.self] }
    set { self[ResourceManagerKey.self] = newValue }
  }
}

private struct ResourceManagerKey: EnvironmentKey {
  static var defaultValue: ResourceManager { .shared }
}

extension View {
  /// Sets the manager that loads the images of the views inside this view.
  public func resourceManager(_ manager: ResourceManager) -> some View { environment(\.resourceManager, manager) }
}
#endif
